"""Who is held in Claude Code, how long, and who is not: the Stop hook, rung by the real client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hosts.agents import TIRED, launcher, obey, stops_after_each_task
from tests.hosts.chores import WORK, assert_all_done, one_task, three_tasks
from tests.hosts.talk import Request, Say, Script, says

if TYPE_CHECKING:
    from tests.hosts.claude import Claude, ClaudeRan
    from tests.hosts.machine import Machine
    from tests.hosts.model import Model


@pytest.fixture(autouse=True)
def _skill(with_skill: None) -> None:
    """Have the skill in the user's own skill folder."""


def test_it_holds_until_the_list_is_done_and_lets_go(claude: Claude, model: Model, machine: Machine) -> None:
    """An agent that wants to stop after each task is sent back with the next command, once each time."""
    three_tasks(machine)
    model.play(stops_after_each_task(WORK))

    ran = claude("/harness run")

    assert (ran.code, ran.result) == (0, TIRED)
    assert_all_done(machine)
    # After the start, the first task, the failed attempt and the second task.
    assert len(ran.blocks()) == 4
    # The page brings the same hooks along: each event still fires once.
    assert len(ran.hooks("Stop")) == 5


@pytest.mark.release
def test_a_fork_is_another_session(claude: Claude, model: Model, machine: Machine) -> None:
    """A fork of the session that works on the list is not held, although it remembers the same."""
    one_task(machine)
    forks: list[ClaudeRan] = []

    def forked(request: Request) -> Script:
        harness = launcher(request.everything)
        request = yield request.shell(f"{harness} start && echo id=$CLAUDE_CODE_SESSION_ID")
        session = request.last.rpartition("id=")[2].split()[0]
        forks.append(claude("FORKED: and now?", "--resume", session, "--fork-session"))
        yield from obey(request, harness, "claim", WORK)

    model.play(forked)
    model.play(says("I only look."), when="FORKED")

    claude("/harness run")

    assert [(fork.result, fork.blocks()) for fork in forks] == [("I only look.", [])]
    assert machine.statuses == ["completed"]


@pytest.mark.release
@pytest.mark.parametrize("place", ["sub-directory", "worktree"])
def test_it_holds_wherever_it_was_started(claude: Claude, model: Model, machine: Machine, place: str) -> None:
    """The list is found from a sub-directory and from a linked work tree."""
    one_task(machine)
    where = machine.project / "deep" / "down"
    where.mkdir(parents=True)
    if place == "worktree":
        where = machine.project.parent / "worktree"
        machine.run("git", "worktree", "add", "-q", where).check()
    model.play(stops_when_open)

    ran = claude("/harness run", cwd=where)

    assert len(ran.blocks()) == 1
    assert machine.statuses == ["completed"]


def stops_when_open(request: Request) -> Script:
    """Open a session, stop, be sent back, and do what there is to do."""
    harness = launcher(request.everything)
    yield request.shell(f"{harness} start")
    request = yield Say(TIRED)
    yield from obey(request, harness, "claim", {"task-001": ["touch $(git rev-parse --show-toplevel)/one"]})

"""Who is held in Claude Code, how long, and who is not: the Stop hook, rung by the real client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hosts.agents import TIRED, idles, launcher, obey, stops_after_each_task
from tests.hosts.chores import WORK, assert_all_done, one_task, three_tasks
from tests.hosts.talk import Request, Say, Script, says

if TYPE_CHECKING:
    from tests.hosts.claude import Claude, ClaudeRan
    from tests.hosts.machine import Machine
    from tests.hosts.model import Model


@pytest.fixture(autouse=True)
def _skill(with_skill: None) -> None:
    """Have the skill in the person's own skill folder."""


def test_it_holds_until_the_list_is_done_and_lets_go_then(
    claude: Claude, model: Model, machine: Machine
) -> None:
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
def test_eight_idle_turns_in_a_row_are_enough(claude: Claude, model: Model, machine: Machine) -> None:
    """An agent whose commands change no task is let go at the ninth stop, and the log says so."""
    one_task(machine)
    model.play(idles)

    ran = claude("/harness run")

    assert ran.code == 0
    assert len(ran.blocks()) == 8
    assert "WARN" in machine.log
    assert machine.statuses == ["pending"]
    assert machine.marker.exists()


@pytest.mark.release
def test_another_session_in_the_folder_stops_freely(claude: Claude, model: Model, machine: Machine) -> None:
    """While one session works on the list, another one asks something else and ends at once."""
    one_task(machine)
    others: list[ClaudeRan] = []

    def visited(request: Request) -> Script:
        harness = launcher(request.everything)
        request = yield request.shell(f"{harness} start")
        others.append(claude("SOMETHING ELSE: what day is it?"))
        yield Say(TIRED)
        yield from obey(request, harness, "claim", WORK)

    model.play(visited)
    model.play(says("Saturday."), when="SOMETHING ELSE")

    ran = claude("/harness run")

    assert [(other.result, other.blocks()) for other in others] == [("Saturday.", [])]
    assert len(ran.blocks()) == 1
    assert machine.statuses == ["completed"]


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


@pytest.mark.release
def test_a_list_against_the_contract_holds_once(claude: Claude, model: Model, machine: Machine) -> None:
    """A misspelt status is shown to the agent once, with the command that finds it; then it may stop."""
    one_task(machine)

    def misspells(request: Request) -> Script:
        request = yield request.shell(f"{launcher(request.everything)} start")
        yield request.shell("sed -i s/pending/pendign/ harness-tasks.json")
        yield Say("I am done.")
        yield Say("I cannot repair that.")

    model.play(misspells)

    ran = claude("/harness run")

    assert (ran.code, ran.result) == (0, "I cannot repair that.")
    assert [" check" in reason and "pendign" in reason for reason in ran.blocks()] == [True]


@pytest.mark.release
def test_a_torn_list_is_restored_and_worked_on(claude: Claude, model: Model, machine: Machine) -> None:
    """A list that is no JSON any more holds the agent; the next command restores it, and the work goes on."""
    one_task(machine)

    def tears(request: Request) -> Script:
        harness = launcher(request.everything)
        request = yield request.shell(f"{harness} start")
        request = yield request.shell('printf \'{"version": 2, "tas\' > harness-tasks.json')
        request = yield Say("I am done.")
        yield from obey(request, harness, "claim", WORK)

    model.play(tears)

    ran = claude("/harness run")

    assert len(ran.blocks()) == 1
    assert machine.statuses == ["completed"]


@pytest.mark.release
def test_a_switch_silences_it(claude: Claude, model: Model, machine: Machine) -> None:
    """With HARNESS_DISABLED=1 no hook says anything, whatever is left to do."""
    one_task(machine)
    model.play(starts_and_stops)

    ran = claude("/harness run", env={"HARNESS_DISABLED": "1"})

    assert (ran.code, ran.blocks(), ran.hooks_heard()) == (0, [], [])


def starts_and_stops(request: Request) -> Script:
    yield request.shell(f"{launcher(request.everything)} start")
    yield Say(TIRED)

"""Codex: the page by the real `skills` CLI and `$harness run`, hooks that hold it, and its own sandbox."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.hosts.agents import (
    DONE,
    follows_the_page,
    launcher,
    obey,
    opens_the_page,
    stops_after_each_task,
)
from tests.hosts.chores import WORK, assert_all_done, one_task, three_tasks
from tests.hosts.codex import Codex
from tests.hosts.machine import Machine
from tests.hosts.model import Model
from tests.hosts.talk import Request, Say, Script


@pytest.mark.release
def test_what_is_typed_brings_the_page(codex: Codex, model: Model, machine: Machine, published: Path) -> None:
    """`$harness:harness run` puts the whole page into the conversation, from which the list gets done.

    Of the hooks Codex has nothing to say but that they were not looked at.
    """
    codex.take_skill(published)
    one_task(machine)
    model.play(follows_the_page(WORK))

    ran = codex("$harness:harness run").check()

    assert "## The loop" in model.requests[0].said_by("user")
    assert DONE in ran.out
    assert [line for line in ran.out.splitlines() if "hooks.json" in line] == []
    assert _held(model) == 0
    assert machine.statuses == ["completed"]


@pytest.mark.release
def test_the_short_name_is_enough(codex: Codex, model: Model, machine: Machine, published: Path) -> None:
    """`$harness run` names the skill, whose page the agent reads itself; it is held to the end."""
    codex.take_skill(published)
    three_tasks(machine)
    model.play(opens_the_page(stops_after_each_task(WORK)))

    codex("$harness run").check()

    assert_all_done(machine)
    # After the start, the first task, the failed attempt and the second task.
    assert _held(model) == 4


def _held(model: Model) -> int:
    """Return how often the agent was sent back: a hook's prompt stands at the end of a request."""
    return sum("<hook_prompt" in request.last for request in model.requests)


# -- in its own sandbox it hears at once what the user must type, and so started it works


@pytest.mark.release
def test_in_its_own_sandbox_codex_hears_at_once_what_the_user_must_type(
    codex: Codex, model: Model, machine: Machine, published: Path
) -> None:
    """Its sandbox closes the git directory: nothing is half made, no session is left, and nobody is held."""
    machine.skills_add(published)
    one_task(machine)
    codex.settle(sandbox="workspace-write")

    def starts(request: Request) -> Script:
        yield request.shell(f"{launcher(request.everything)} start")
        yield Say("The user must act.")

    model.play(starts)

    codex("$harness:harness run").check()

    roots = json.dumps([str(machine.project / ".git")])
    assert f"codex -c 'sandbox_workspace_write.writable_roots={roots}'" in model.requests[1].last
    assert len(model.requests) == 2
    assert machine.state["sessions"] == []
    assert (machine.statuses, machine.state["tasks"][0]["attempts"]) == (["pending"], 0)


@pytest.mark.release
@pytest.mark.parametrize("place", ["project", "linked work tree"])
def test_so_started_codex_works_in_it(
    codex: Codex, model: Model, machine: Machine, published: Path, place: str
) -> None:
    """To the final check, although nothing in the home can be written, as where no test runs in `/tmp`."""
    machine.skills_add(published, "-g")
    one_task(machine)
    codex.settle(sandbox="workspace-write")
    where, told = machine.project, re.compile(r"codex -c 'sandbox_workspace_write\.(.+)'")
    if place != "project":
        where = machine.project.with_name("linked")
        machine.run("git", "worktree", "add", "-q", where).check()
    settings = ["exclude_slash_tmp=true"]

    def works(request: Request) -> Script:
        request = yield from obey(request, launcher(request.everything), "start", WORK)
        settings.extend(told.findall(request.last))
        yield Say(DONE)

    for _ in range(2):
        model.play(works)
        words = [word for each in settings for word in ("-c", f"sandbox_workspace_write.{each}")]
        codex("$harness:harness run", *words, cwd=where).check()

    assert machine.statuses == ["completed"], model.requests[-1].everything[-2000:]
    assert "1 of 1 checks of completed tasks pass on a clean checkout" in model.requests[-1].everything

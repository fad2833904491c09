"""Codex in its own sandbox: it hears at once what the user must type, and so started it works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.hosts.agents import DONE, launcher, obey
from tests.hosts.chores import WORK, one_task
from tests.hosts.codex import Codex
from tests.hosts.machine import Machine
from tests.hosts.model import Model
from tests.hosts.talk import Request, Say, Script


@pytest.mark.release
def test_in_its_own_sandbox_codex_hears_at_once_what_the_user_must_type(
    codex: Codex, model: Model, machine: Machine, published: Path
) -> None:
    """Its sandbox closes the git directory: nothing is half made, no session is left, and nobody is held."""
    machine.skills_add(published)
    one_task(machine)
    codex.settle(sandbox="workspace-write")
    heard: list[str] = []

    def starts(request: Request) -> Script:
        request = yield request.shell(f"{launcher(request.everything)} start")
        heard.append(request.last)
        yield Say("The user must act.")

    model.play(starts)

    codex("$harness:harness run").check()

    roots = json.dumps([str(machine.project / ".git")])
    assert len(heard) == 1
    assert f"codex -c 'sandbox_workspace_write.writable_roots={roots}'" in heard[0]
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

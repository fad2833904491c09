"""`harness hooks install` in the real clients: what it writes is what they load, and it holds them."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

from tests.conftest import CHECKOUT, for_release
from tests.hosts.agents import DONE, TIRED, launcher
from tests.hosts.chores import one_task
from tests.hosts.talk import Say

if TYPE_CHECKING:
    from tests.hosts.codex import Codex
    from tests.hosts.machine import Machine
    from tests.hosts.model import Model
    from tests.hosts.talk import Request, Script


def would_rather_stop(request: Request) -> Script:
    """Open a session and want to stop; when that is refused, do the task and stop."""
    harness = launcher(request.everything)
    yield request.shell(f"{harness} start")
    request = yield Say(TIRED)
    assert f"{harness} claim" in request.everything, "nobody has held it"
    final = f"{harness} validate --all --committed"
    yield request.shell(f"{harness} claim && echo one > one && {harness} finish && {final}")
    yield Say(DONE)


@pytest.mark.parametrize(
    ("name", "scope"),
    # What the others are told and answer is recorded in tests/hookio; test_claude_stop.py holds Claude Code.
    [
        ("codex", "user"),
        *for_release(("claude", "project"), ("gemini", "user"), ("copilot", "project")),
    ],
)
def test_installed_hooks_speak_at_the_start_and_hold_to_the_end(
    request: pytest.FixtureRequest, machine: Machine, model: Model, name: str, scope: str
) -> None:
    """There is no skill here: what to type is known from the hooks alone."""
    client = request.getfixturevalue(name)
    one_task(machine)
    env = client.env if name == "codex" else {}
    said = machine.harness("hooks", "install", "--agent", name, "--scope", scope, env=env).check()
    assert "What to do in " in said.out
    model.play(would_rather_stop)

    # Copilot asks before a command outside of the project is run, and nobody is there to answer.
    flags = ["--allow-all-paths"] if name == "copilot" else []
    ran = client("Work through the list.", *flags).check()

    assert DONE in ran.out
    assert machine.statuses == ["completed"]
    assert not machine.enable_flag.exists()


@pytest.mark.release
def test_the_doctor_sees_what_a_sandbox_forbids_and_its_cure_helps(codex: Codex, machine: Machine) -> None:
    """Without its cure nothing could be committed."""
    one_task(machine)
    doctor = (CHECKOUT / "bin" / "harness", "doctor", "--json")
    sandbox = ("codex", "sandbox", "-c", 'sandbox_mode="workspace-write"')
    env = {**codex.env, "CODEX_SESSION_ID": "as-in-a-session"}

    closed = machine.run(*sandbox, "--", *doctor, env=env)
    (said,) = [each for each in json.loads(closed.out)["found"] if "nothing can be committed" in each["what"]]
    options = shlex.split(said["cure"].partition(": codex ")[2])
    opened = machine.run(*sandbox, *options, "--", *doctor, env=env).check()

    assert closed.code == 1
    assert "nothing can be committed" not in opened.out

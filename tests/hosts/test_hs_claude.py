"""`hs` with the provider `claude` hands turns to the real Claude Code, and has the last word on its tools."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.hosts.claude import Claude
from tests.hosts.machine import Machine, Ran
from tests.hosts.model import Model
from tests.hosts.talk import Request, Say, Script, says

Hs = Callable[..., Ran]


def environment(claude: Claude) -> dict[str, str]:
    # As root, too: nothing is asked of it that it refuses to root.
    quiet = {name: value for name, value in claude.env.items() if name != "IS_SANDBOX"}
    return {
        **quiet,
        "HARNESS_HOME": str(claude.machine.home / ".harness"),
        "PYTHONPATH": str(CHECKOUT),
    }


@pytest.fixture
def hs(claude: Claude, machine: Machine) -> Hs:
    def run(*words: str, env: Mapping[str, str | None] | None = None) -> Ran:
        changed = {**environment(claude), **(env or {})}
        variables = {name: value for name, value in changed.items() if value is not None}
        return machine.run(
            sys.executable, "-m", "harness_lib.hs", "--provider", "claude", *words, env=variables
        )

    return run


def worker(request: Request) -> Script:
    request = yield request.shell("touch made; echo from the tool")
    assert "from the tool" in request.last
    request = yield Say("It is made.")
    yield Say(f"Before: {request.said_by('assistant')}")


@pytest.mark.release
def test_it_works_goes_on_and_is_counted(hs: Hs, model: Model, machine: Machine) -> None:
    model.play(worker)

    done = hs("--json", "make it").check()
    again = hs("--continue", "what did you say?").check()

    kinds = [event["type"] for event in done.events]
    assert [kind for kind in kinds if kind.startswith("tool")] == [
        "tool_start", "tool_run", "tool_output", "tool_done",
    ]  # fmt: skip
    assert "".join(event["text"] for event in done.events if event["type"] == "text") == "It is made."
    last = done.events[-1]
    assert (last["output"], last["stop"], last["error"]) == ("It is made.", "end", None)
    assert last["tokens_in"] > 0
    assert last["cost"] > 0
    assert (machine.project / "made").exists()
    # One conversation: the second turn knows the first.
    assert again.out.startswith("Before: ")
    assert "It is made." in again.out


@pytest.mark.release
def test_read_only_changes_nothing(hs: Hs, model: Model) -> None:
    model.play(says("I have only read."))

    assert hs("--approve", "read-only", "look").check().out == "I have only read.\n"
    offered = model.requests[0].tools
    assert {"Bash", "Edit", "Write"} & offered == set()
    assert "Read" in offered


@pytest.mark.release
def test_where_nobody_can_be_asked_no_command_runs(hs: Hs, model: Model, machine: Machine) -> None:
    def denied(request: Request) -> Script:
        request = yield request.shell("touch made")
        assert "there is none here" in request.last
        yield Say("I may not.")

    model.play(denied)

    assert hs("--approve", "ask", "make it").check().out == "I may not.\n"
    assert not (machine.project / "made").exists()


@pytest.mark.release
def test_what_the_user_asks_for_is_passed_on(hs: Hs, model: Model) -> None:
    model.play(says("Yes."))

    done = hs("--system", "Answer as a pirate.", "--model", "claude-sonnet-4-5", "--max-turns", "3",
              "--max-cost", "1", "hello", env={"HARNESS_THINKING": "low"})  # fmt: skip

    assert done.check().out == "Yes.\n"
    asked = model.requests[0]
    assert "Answer as a pirate." in asked.said_by("system")
    assert asked.body["model"] == "claude-sonnet-4-5"


@pytest.mark.release
def test_who_is_not_logged_in_is_told(hs: Hs) -> None:
    done = hs("hello", env={"ANTHROPIC_API_KEY": None})

    assert done.code == 1
    assert "Claude Code says: Not logged in" in done.err
    assert "/login (start claude, and type it there)" in done.err


@pytest.mark.release
def test_ctrl_c_ends_its_tools_and_the_session_goes_on(
    hs: Hs, claude: Claude, model: Model, machine: Machine, tmp_path: Path
) -> None:
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)

    def sleeper(request: Request) -> Script:
        yield request.shell(f"exec sleep 600 > {fifo}")

    model.play(sleeper)
    command = [sys.executable, "-m", "harness_lib.hs", "--provider", "claude", "sleep"]
    run = subprocess.Popen(
        command,
        cwd=machine.project,
        env=machine.env(environment(claude)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with fifo.open("rb") as alive:
        run.send_signal(signal.SIGINT)
        assert run.wait() == 130
        assert alive.read() == b""
    model.play(says("I go on."))

    assert hs("--continue", "and now?").check().out == "I go on.\n"
    (kept,) = (machine.home / ".harness/sessions").glob("*/native/claude.json")
    assert json.loads(kept.read_text())["session"] in str(model.requests[-1].body)

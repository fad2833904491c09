"""What Claude Code asks about, our gates and a person decide; and whatever ends hs ends it, too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hs.person import person
from tests.loop.claude.playing import INIT, Json, Stage, answer, asks, call, came_to, result, text
from tests.loop.conftest import Hs, bodies, session_of
from tests.loop.source_files import write_program

CLAUDE = ("--provider", "claude")


def with_a_call() -> list[Json]:
    return [
        INIT, *call("Bash", command="make"), asks("Bash", command="make"), came_to("made"),
        *text("Done."), result("Done."),
    ]  # fmt: skip


def test_by_itself_everything_it_asks_about_may_run(hs: Hs, stage: Stage) -> None:
    stage.plays(with_a_call())

    assert hs(*CLAUDE, "go").out == "Done.\n"
    assert stage.answers == [{"behavior": "allow", "updatedInput": {"command": "make"}}]


def test_where_nobody_can_be_asked_the_answer_is_no(hs: Hs, stage: Stage) -> None:
    stage.plays(with_a_call())

    hs(*CLAUDE, "--approve", "ask", "go", through=("setsid", "-w"))

    (said,) = stage.answers
    assert said["behavior"] == "deny"
    assert "there is none here" in said["message"]


def test_read_only_takes_the_tools_away(hs: Hs, stage: Stage) -> None:
    stage.plays(with_a_call())

    hs(*CLAUDE, "--approve", "read-only", "go")

    assert {"--tools=Read,Glob,Grep", "--strict-mcp-config"} <= set(stage.starts[0]["argv"])
    assert stage.answers[0]["behavior"] == "deny"


def test_a_gate_changes_what_runs(hs: Hs, stage: Stage, home: Path) -> None:
    stage.plays(with_a_call())
    gate = home / ".harness" / "hooks.d" / "tool_gate" / "20-dry"
    write_program(gate, '#!/bin/sh\nsed \'s/"make"/"make -n"/\'\n')

    hs(*CLAUDE, "go")

    assert stage.answers == [{"behavior": "allow", "updatedInput": {"command": "make -n"}}]


def test_what_nobody_knows_is_refused_and_the_turn_goes_on(hs: Hs, stage: Stage) -> None:
    stage.plays([INIT, {"asks": {"subtype": "hook_callback"}}, *text("Done."), result("Done.")])

    assert hs(*CLAUDE, "go").out == "Done.\n"
    answered = [heard["answered"] for heard in stage.heard if "answered" in heard]
    assert answered[0]["response"]["subtype"] == "error"


def test_a_person_is_asked_and_always_is_about_the_first_word(stage: Stage, project: Path) -> None:
    more = [*call("Bash", "toolu_2", command="rm x"), asks("Bash", "toolu_2", command="rm x")]
    stage.plays([*with_a_call()[:-6], *more, came_to("no", "toolu_2"), *text("Done."), result("Done.")])

    with person(*CLAUDE, "--approve", "ask", "go", cwd=project, env={}) as typed:
        typed.sees("a = always (bash make), n = no, or say why not:")
        typed.types("a\n")
        typed.sees("a = always (bash rm), n = no, or say why not:")
        typed.types("n\n")
        typed.sees("Done.")
        assert typed.leaves() == 0

    assert [said["behavior"] for said in stage.answers] == ["allow", "deny"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_hs_the_session_goes_on(
    number: signal.Signals, hs: Hs, stage: Stage, home: Path, project: Path, tmp_path: Path
) -> None:
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    child = ["sh", "-c", f"exec sleep 600 >{str(fifo)!r}"]
    # Who has answered the question has heard what came before it.
    begun = [INIT, *call("Bash", command="make"), asks("Bash", command="make")]
    stage.plays([*begun, {"starts": child}, {"hangs": True}], answer("Again."))
    command = [sys.executable, "-m", "harness_lib.hs", *CLAUDE, "go"]
    run = subprocess.Popen(command, cwd=project, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with fifo.open("rb") as alive:
        # Its tool runs from here on.
        run.send_signal(number)
        run.communicate(timeout=60)
        if number != signal.SIGKILL:
            assert run.returncode == 130
            # The end of the file comes when nobody is left who could write.
            assert alive.read() == b""
        else:
            os.killpg(stage.starts[0]["group"], signal.SIGKILL)

    written = bodies(session_of(home))
    assert written[1][0] == "0002-assistant.md"
    assert "tool_call id=toolu_1 name=Bash" in written[1][1]
    assert hs("--continue", "and now?").out == "Again.\n"
    assert "--resume=c-1" in stage.starts[1]["argv"]

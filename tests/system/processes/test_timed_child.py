"""A command that nobody waits for: its output is kept, and its time is bounded."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from harness_lib.system.processes import process, timed_child


def run(command: str, place: Path, seconds: float = 30.0) -> int:
    log = place / "logs" / "it.log"
    return timed_child.start(command, env=os.environ, cwd=place, log=log, seconds=seconds).wait()


@pytest.mark.parametrize(
    ("command", "code"), [("true", 0), ("exit 3", 3), ("kill -9 $$", 137), ("no-such-program", 127)]
)
def test_it_ends_as_the_command_does(tmp_path: Path, command: str, code: int) -> None:
    assert run(command, tmp_path) == code


def test_what_commands_say_is_added_to_the_log(tmp_path: Path) -> None:
    run("echo one; echo two >&2", tmp_path)
    run("echo three; pwd", tmp_path)
    assert (tmp_path / "logs" / "it.log").read_text().split() == ["one", "two", "three", str(tmp_path)]


@pytest.mark.parametrize("stubborn", ["", "trap '' TERM; "], ids=["obeys", "stubborn"])
def test_one_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path, stubborn: str) -> None:
    pid = tmp_path / "pid"
    command = f"{stubborn}sleep 600 & echo $! > {pid}; wait; sleep 600"
    assert run(command, tmp_path, seconds=0.5) == timed_child.TIMED_OUT
    while process.alive(int(pid.read_text())):
        time.sleep(0.01)

"""Programs that we start are heard to their end, or given up when their time is over."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_lib.system.processes import child, process, runner
from tests.waiting import number_in, until


def test_what_a_program_says_and_how_it_ends_is_its_answer(tmp_path: Path) -> None:
    command = ["sh", "-c", "pwd; echo no >&2; cat; exit 3"]
    answer = child.ask(command, env=os.environ, cwd=tmp_path, seconds=60)
    assert answer == (3, f"{tmp_path}\n", "no\n")


def test_who_takes_too_long_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match="timed out after"):
        child.ask(["sleep", "600"], env=os.environ, cwd=tmp_path, seconds=0.1)


def test_each_line_is_heard_when_it_is_said(tmp_path: Path) -> None:
    heard: list[str] = []
    code = "import sys; print('one'); print('two', file=sys.stderr); sys.exit(5)"
    assert child.follow([sys.executable, "-u", "-c", code], heard.append, env=os.environ, cwd=tmp_path) == 5
    assert sorted(heard) == ["one\n", "two\n"]


def test_a_piped_child_is_told_and_heard_and_complains_elsewhere(tmp_path: Path) -> None:
    with (tmp_path / "errors").open("wb") as errors:
        process = child.start(
            ["sh", "-c", "read x; echo got $x; echo bad >&2"],
            env=os.environ,
            cwd=tmp_path,
            stdin=child.PIPE,
            output=child.PIPE,
            errors=errors,
        )
    assert process.communicate(b"this\n", timeout=60)[0] == b"got this\n"
    assert (tmp_path / "errors").read_bytes() == b"bad\n"


def test_a_thread_that_begins_after_its_start_was_interrupted_touches_no_descriptor(tmp_path: Path) -> None:
    late: list[Callable[[], child.Child]] = []

    def interrupted(begin: Callable[[], child.Child]) -> child.Child:
        late.append(begin)
        raise KeyboardInterrupt

    command = child.Command(["touch", "made"], os.environ, interrupted)
    with pytest.raises(KeyboardInterrupt):
        child.start_noted(command, lambda _: None, cwd=tmp_path, output=child.NOTHING)
    # It has the number of one that was closed.
    with (tmp_path / "other").open("w") as other:
        with pytest.raises(IndexError):
            late[0]()
        os.fstat(other.fileno())
    assert not (tmp_path / "made").exists()


# -- one that nobody waits for


def run(command: str, place: Path, seconds: float = 30.0) -> int:
    log = place / "logs/it.log"
    return runner.start_timed(command, env=os.environ, cwd=place, log=log, seconds=seconds).wait()


@pytest.mark.parametrize(
    ("command", "code"), [("true", 0), ("exit 3", 3), ("kill -9 $$", 137), ("no-such-program", 127)]
)
def test_it_ends_as_the_command_does(tmp_path: Path, command: str, code: int) -> None:
    assert run(command, tmp_path) == code


def test_what_commands_say_is_added_to_the_log(tmp_path: Path) -> None:
    run("echo one; echo two >&2", tmp_path)
    run("echo three; pwd", tmp_path)
    assert (tmp_path / "logs/it.log").read_text().split() == ["one", "two", "three", str(tmp_path)]


def test_one_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    """Who ignores that it shall end has five seconds, as long as the slowest of these takes."""
    running = [
        runner.start_timed(
            f"{trap}sleep 600 & echo $! > {tmp_path}/{name}; wait; sleep 600",
            env=os.environ,
            cwd=tmp_path,
            log=tmp_path / "it.log",
            seconds=0.5,
        )
        for name, trap in {"obeys": "", "stubborn": "trap '' TERM; "}.items()
    ]
    assert [each.wait() for each in running] == [runner.TIMED_OUT] * 2
    left = [number_in(tmp_path / name) for name in ("obeys", "stubborn")]
    until("their end", lambda: not any(map(process.alive, left)))

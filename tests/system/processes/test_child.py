"""Programs that we start are heard to their end, or given up when their time is over."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness_lib.system.processes import child


def test_what_a_program_says_and_how_it_ends_is_its_answer(tmp_path: Path) -> None:
    command = ["sh", "-c", "pwd; echo no >&2; cat; exit 3"]
    answer = child.ask(command, env=os.environ, cwd=tmp_path, seconds=60)
    assert answer == (3, f"{tmp_path}\n".encode(), b"no\n")


@pytest.mark.parametrize("way", [child.ask, child.exit_code])
def test_who_takes_too_long_is_given_up(way: object, tmp_path: Path) -> None:
    assert callable(way)
    with pytest.raises(TimeoutError, match="timed out after"):
        way(["sleep", "600"], env=os.environ, cwd=tmp_path, seconds=0.1)


def test_each_line_is_heard_when_it_is_said(tmp_path: Path) -> None:
    heard: list[str] = []
    code = "import sys; print('one'); print('two', file=sys.stderr); sys.exit(5)"
    assert child.follow([sys.executable, "-u", "-c", code], heard.append, env=os.environ, cwd=tmp_path) == 5
    assert sorted(heard) == ["one\n", "two\n"]


def test_a_piped_child_is_told_and_heard_and_complains_elsewhere(tmp_path: Path) -> None:
    with (tmp_path / "errors").open("wb") as errors:
        process = child.start_piped(
            ["sh", "-c", "read x; echo got $x; echo bad >&2"], env=os.environ, cwd=tmp_path, complaints=errors
        )
    assert process.communicate(b"this\n", timeout=60)[0] == b"got this\n"
    assert (tmp_path / "errors").read_bytes() == b"bad\n"

"""`bin/test --quick` leaves out rooms and files that exist, and no others."""

from __future__ import annotations

import re
from pathlib import Path

_TOP = Path(__file__).resolve().parents[2]
_SLOW = {
    "attempts",
    "contention",
    "core",
    "crash",
    "doctor",
    "hookinstall",
    "hosts",
    "hostile",
    "hs",
    "launcher",
    "loop",
    "runs",
    "types",
    "verbs",
    "weather",
}


_SLOW_FILES = {"system/git/test_fast_forward_beside.py", "system/git/test_restore_killed.py"}


def _left_out(name: str) -> set[str]:
    script = (_TOP / "bin" / "test").read_text(encoding="utf-8")
    named = re.search(rf'^{name}="(.*)"$', script, re.MULTILINE)
    assert named is not None
    return set(named[1].split())


def test_the_rooms_that_quick_leaves_out_are_rooms_of_the_tests() -> None:
    rooms = _left_out("SLOW_ROOMS")
    assert rooms == _SLOW
    assert all((_TOP / "tests" / room).is_dir() for room in rooms)


def test_the_files_that_quick_leaves_out_are_files_of_the_tests() -> None:
    files = _left_out("SLOW_FILES")
    assert files == _SLOW_FILES
    assert all((_TOP / "tests" / file).is_file() for file in files)

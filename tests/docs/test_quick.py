"""`bin/test --quick` leaves out rooms that exist, and no others."""

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
    "launcher",
    "loop",
    "runs",
    "types",
    "unattended",
    "verbs",
    "weather",
}


def test_the_rooms_that_quick_leaves_out_are_rooms_of_the_tests() -> None:
    script = (_TOP / "bin" / "test").read_text(encoding="utf-8")
    named = re.search(r'^SLOW_ROOMS="(.*)"$', script, re.MULTILINE)
    assert named is not None
    rooms = set(named[1].split())
    assert rooms == _SLOW
    assert all((_TOP / "tests" / room).is_dir() for room in rooms)

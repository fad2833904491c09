"""`bin/test --quick` leaves out rooms that exist."""

from __future__ import annotations

import re

from tests.conftest import CHECKOUT


def test_what_quick_leaves_out_are_rooms_of_the_tests() -> None:
    script = (CHECKOUT / "bin" / "test").read_text(encoding="utf-8")
    (rooms,) = re.findall(r'^SLOW_ROOMS="(.+)"$', script, re.MULTILINE)
    assert all((CHECKOUT / "tests" / room).is_dir() for room in rooms.split())

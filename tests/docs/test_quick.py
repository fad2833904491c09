"""`bin/test --quick` leaves out rooms and files that exist."""

from __future__ import annotations

import re

from tests.conftest import CHECKOUT


def test_what_quick_leaves_out_are_rooms_and_files_of_the_tests() -> None:
    script = (CHECKOUT / "bin" / "test").read_text(encoding="utf-8")
    rooms, files = (
        named.split() for named in re.findall(r'^SLOW_(?:ROOMS|FILES)="(.+)"$', script, re.MULTILINE)
    )
    assert all((CHECKOUT / "tests" / room).is_dir() for room in rooms)
    assert all((CHECKOUT / "tests" / file).is_file() for file in files)

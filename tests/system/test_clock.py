"""Time comes from one place."""

from __future__ import annotations

from datetime import timedelta

from harness_lib.system.clock import SYSTEM


def test_now_is_aware_and_utc() -> None:
    assert SYSTEM.now().utcoffset() == timedelta(0)


def test_monotonic_only_grows() -> None:
    before = SYSTEM.monotonic()
    SYSTEM.sleep(0)

    assert SYSTEM.monotonic() >= before

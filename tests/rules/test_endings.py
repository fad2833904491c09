"""Every ending of an attempt stands in one table, and only these combinations do."""

from __future__ import annotations

from harness_lib.rules.endings import Ending, cost, without_base


def test_what_each_ending_means() -> None:
    assert {ending.name: tuple(cost(ending)) for ending in Ending} == {
        "FAILED": (True, False, "failed"),
        "FAILED_FOR_GOOD": (True, True, "failed"),
        "EXCUSED": (False, False, "failed"),
        "RELEASED": (False, False, "pending"),
        "REQUEUED": (False, False, "pending"),
    }


def test_what_has_failed_without_its_base_is_not_tried_again_and_what_was_handed_back_is() -> None:
    assert {ending.name: without_base(ending).name for ending in Ending} == {
        "FAILED": "FAILED_FOR_GOOD",
        "FAILED_FOR_GOOD": "FAILED_FOR_GOOD",
        "EXCUSED": "FAILED_FOR_GOOD",
        "RELEASED": "RELEASED",
        "REQUEUED": "REQUEUED",
    }

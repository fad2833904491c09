"""What may stand in a list as under way: what we write of a batch does, what nobody writes does not."""

from __future__ import annotations

import pytest

from harness_lib.rules import intents
from harness_lib.task import Gate, Intent, Task

BEGAN, ONTO, COMMIT = "1" * 40, "2" * 40, "3" * 40
MAIN = "refs/heads/main"


def _task(gate: Gate, **intent: str | None) -> Task:
    moving = Intent("commit", "2026-01-01T00:00:00Z", commit=COMMIT, **intent)  # type: ignore[arg-type]
    return Task("t", status="in_progress", started_at_commit=BEGAN, gate=gate, intent=moving)


def test_work_that_is_moved_with_others_names_what_it_goes_on_top_of_and_no_head() -> None:
    assert intents.problem(_task(Gate(target=MAIN), base=ONTO, ref=MAIN)) is None


@pytest.mark.parametrize(
    ("gate", "intent"),
    [
        (Gate(target=MAIN), {"base": ONTO, "ref": "refs/heads/other"}),
        (Gate(target=MAIN), {"base": BEGAN}),
        (Gate(branch=MAIN), {"base": ONTO, "head": BEGAN}),
        (Gate(branch=MAIN), {"base": BEGAN}),
    ],
)
def test_what_no_write_of_ours_leaves_is_named(gate: Gate, intent: dict[str, str]) -> None:
    assert intents.problem(_task(gate, **intent)) is not None

"""Task lists for the tests of the rules: a fixed moment, short spellings, and any list at all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import TypeVar

from hypothesis import strategies as st

from harness_lib import timestamps
from harness_lib.task import PRIORITIES, Recheck, State, Task, Validation

T = TypeVar("T")
NOW = datetime(2025, 7, 1, 10, 0, 0, tzinfo=timezone.utc)
STAMP = "2025-07-01T10:00:00Z"
BLOCKED = "[DEPENDENCY] Blocked by failed task-000"


def ago(seconds: int) -> str:
    """Return the stamp so many seconds before NOW."""
    return timestamps.render(NOW - timedelta(seconds=seconds))


def state(*tasks: Task) -> State:
    return State(tasks=tasks)


def waiting(**depends_on: str) -> tuple[Task, ...]:
    """Return pending tasks, each with the ids it waits for, divided by blanks."""
    return tuple(Task(task_id, depends_on=tuple(others.split())) for task_id, others in depends_on.items())


# What a drawn task may be. A digit of one number chooses each: that is much faster than to draw them all.
KINDS: tuple[dict[str, object], ...] = (
    {},
    {"status": "in_progress", "claimed_by": "somebody"},
    {"status": "completed"},
    {"status": "completed", "unproven": True},
    {"status": "failed"},
    {"status": "failed", "failed_at": ago(9)},
    {"status": "failed", "failed_at": ago(99)},
)
ATTEMPTS = ((0, 1), (0, 3), (1, 2), (3, 3))
ERRORS = ((), (BLOCKED,), ("[TEST_FAIL] no",))
HALTS = (None, None, "CONFIG")
_PLACES = 8
_NUMBERS = len(KINDS) * len(PRIORITIES) * len(ATTEMPTS) * len(ERRORS) * len(HALTS) * (_PLACES + 1) ** 4


def states() -> st.SearchStrategy[State]:
    """Draw any list of up to eight tasks, in any order; every dependency names one of them."""
    return st.lists(st.integers(0, _NUMBERS - 1), min_size=1, max_size=_PLACES).map(_state)


def _state(numbers: list[int]) -> State:
    placed = []
    for place, number in enumerate(numbers):
        digits = _Digits(number)
        kind, (attempts, most) = digits.choose(KINDS), digits.choose(ATTEMPTS)
        task = Task(
            f"t{place}",
            priority=digits.choose(PRIORITIES),
            attempts=attempts,
            max_attempts=most,
            error_log=digits.choose(ERRORS),
            halt=digits.choose(HALTS),
            depends_on=tuple(f"t{other}" for other in digits.several(3) if other < len(numbers)),
        )
        placed.append((digits.several(1), task._replace(**kind)))  # type: ignore[arg-type]
    return State(tasks=tuple(task for _, task in sorted(placed, key=lambda pair: pair[0])))


class _Digits:
    """The digits of a number, each to the base of what is chosen by it."""

    def __init__(self, number: int) -> None:
        self.number = number

    def choose(self, choices: Sequence[T]) -> T:
        self.number, digit = divmod(self.number, len(choices))
        return choices[digit]

    def several(self, count: int) -> list[int]:
        return [self.choose(range(_PLACES + 1)) for _ in range(count)]


def done(name: str, check: str | None = "true", found: Recheck | None = None, **fields: object) -> Task:
    """Return a completed task with this check, and what its last re-check has found."""
    task = Task(name, status="completed", validation=Validation(check), recheck=found)
    return task._replace(**fields)  # type: ignore[arg-type]

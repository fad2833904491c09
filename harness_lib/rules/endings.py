"""The ways in which an attempt that is rolled back ends, and what each means for its task: one table."""

from __future__ import annotations

from enum import Enum
from typing import Literal, NamedTuple


class Ending(Enum):
    """How an attempt ends that was not completed."""

    FAILED = "it has failed, and is tried again while attempts are left"
    FAILED_FOR_GOOD = "it has failed, and no further attempt can be made"
    EXCUSED = "it has failed through nobody's fault: no attempt is used up"
    RELEASED = "it was handed back, and nobody is blamed"
    REQUEUED = "its work goes to the next agent, at no cost"


class Cost(NamedTuple):
    """What an ending means for the task.

    `counts`: an attempt is used up. `uses_up`: so are all that were left. `outcome`: what the task becomes.
    """

    counts: bool
    uses_up: bool
    outcome: Literal["failed", "pending"]


def cost(ending: Ending) -> Cost:
    """Return what `ending` means for the task."""
    match ending:
        case Ending.FAILED:
            return Cost(counts=True, uses_up=False, outcome="failed")
        case Ending.FAILED_FOR_GOOD:
            return Cost(counts=True, uses_up=True, outcome="failed")
        case Ending.EXCUSED:
            return Cost(counts=False, uses_up=False, outcome="failed")
        case Ending.RELEASED | Ending.REQUEUED:
            return Cost(counts=False, uses_up=False, outcome="pending")


def without_base(ending: Ending) -> Ending:
    """Return how an attempt ends whose base is gone: what has failed cannot be rolled back for a retry."""
    return ending if cost(ending).outcome == "pending" else Ending.FAILED_FOR_GOOD

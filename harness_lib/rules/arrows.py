"""The table of status changes: from which status, and with what under way, each may happen, and its end.

    pending, failed ──A claim──▶ in_progress ──F complete──▶ completed
                                  │  B resume, C checkpoint, D renew, E begin_commit, I drop_intent,
                                  │  M begin_merge, N hand_back, O interrupt,
                                  │  T hand_over: stays
                                  └──G begin_rollback, H fail──▶ failed, or pending when handed back
    pending, failed ──L doom──▶ failed
    pending, failed, completed ──J reset──▶ pending;   K halt changes no status
    completed, but unproven ──P confirm──▶ completed;  ──Q doubt──▶ pending
    completed ──R recheck──▶ completed;   pending, for a person to look at ──S attest──▶ completed

`rules/transitions.py` has the function that performs each arrow. An arrow that is not in the table is our
bug, not the caller's error: who may be late or wrong asks `may` first.
Source: docs/protocol.md, "Task Execution Cycle"; docs/design.md, "An attempt".
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from harness_lib.task import Status, Task

ArrowName = Literal[
    "claim",
    "resume",
    "checkpoint",
    "renew",
    "begin_commit",
    "complete",
    "begin_rollback",
    "fail",
    "drop_intent",
    "reset",
    "halt",
    "doom",
    "begin_merge",
    "hand_back",
    "interrupt",
    "confirm",
    "doubt",
    "recheck",
    "attest",
    "hand_over",
]
Underway = Literal["commit", "rollback", "merge"] | None


class Arrow(NamedTuple):
    """One arrow: the statuses and the intent before, and the statuses after."""

    start: tuple[Status, ...]
    underway: tuple[Underway, ...]
    end: tuple[Status, ...]


_WORKING: tuple[Status, ...] = ("in_progress",)
_IDLE: tuple[Status, ...] = ("pending", "failed")
_ANYTHING: tuple[Underway, ...] = (None, "commit", "rollback", "merge")

ARROWS: dict[ArrowName, Arrow] = {
    "claim": Arrow(_IDLE, (None,), _WORKING),
    # A new holder also takes over the intent of its predecessor.
    "resume": Arrow(_WORKING, _ANYTHING, _WORKING),
    "checkpoint": Arrow(_WORKING, (None, "commit"), _WORKING),
    # A heartbeat may come at any moment.
    "renew": Arrow(_WORKING, _ANYTHING, _WORKING),
    "begin_merge": Arrow(_WORKING, (None, "merge"), _WORKING),
    "begin_commit": Arrow(_WORKING, (None, "merge"), _WORKING),
    # Without an intent if the agent has committed everything itself.
    "complete": Arrow(_WORKING, (None, "commit"), ("completed",)),
    "begin_rollback": Arrow(_WORKING, (None, "merge"), _WORKING),
    "hand_back": Arrow(_WORKING, ("rollback",), _WORKING),
    "interrupt": Arrow(_WORKING, (None,), _WORKING),
    "fail": Arrow(_WORKING, ("rollback",), _IDLE),
    # A rollback is never dropped: its attempt is counted, and its work may be half removed.
    "drop_intent": Arrow(_WORKING, ("commit",), _WORKING),
    "reset": Arrow(("pending", "failed", "completed"), (None,), ("pending",)),
    "halt": Arrow(("pending", "failed", "in_progress"), _ANYTHING, (*_IDLE, *_WORKING)),
    "doom": Arrow(_IDLE, (None,), ("failed",)),
    "confirm": Arrow(("completed",), (None,), ("completed",)),
    "doubt": Arrow(("completed",), (None,), ("pending",)),
    "recheck": Arrow(("completed",), (None,), ("completed",)),
    "attest": Arrow(("pending",), (None,), ("completed",)),
    # Another machine may have begun to move the work.
    "hand_over": Arrow(_WORKING, ("merge", "commit"), _WORKING),
}


def may(arrow: ArrowName, task: Task) -> bool:
    """Return whether the table allows this arrow for the task as it is."""
    rule = ARROWS[arrow]
    if arrow in ("confirm", "doubt") and not task.unproven:
        return False
    if arrow == "recheck" and task.unproven:
        return False
    # An intent that the legacy protocol has left in a task that is not in progress does not count.
    underway = task.intent.action if task.intent and task.status == "in_progress" else None
    return task.status in rule.start and underway in rule.underway


def check(arrow: ArrowName, task: Task) -> None:
    """Raise AssertionError unless the table allows this arrow for the task: it is our bug."""
    if not may(arrow, task):
        # Not `assert`: it must hold under `python -O` too.
        intent = task.intent if task.status == "in_progress" else None
        doing = f", {intent.action} under way" if intent else ""
        raise AssertionError(f"BUG: no arrow {arrow} for task {task.id}, which is {task.status}{doing}.")

"""Decide what to do with a task that an earlier session left in progress.

`TABLE` is the decision matrix of docs/protocol.md, "Context Window Recovery Protocol", row by row; `plan`
reads it and nothing else.
What the matrix would undo because its check fails is no failed attempt here: nobody has handed it in, so it
goes on. `interrupted` counts how often in a row that came to nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from harness_lib.rules import endings, leases
from harness_lib.rules.endings import Ending
from harness_lib.task import Category, Interruption, Task

Action = Literal["fail", "resume", "validate"]


# So often in a row an attempt may be interrupted where it stood the time before.
STANDSTILLS = 3


class Facts(NamedTuple):
    """What git and the list say about an interrupted attempt.

    `uncommitted`: the work tree is neither as at the base nor as at the last checkpoint; `task_commits`:
    commits since the base name the task; `checkpoints`: it has some; `reflects`: the files show what the last
    one claims (without a checkpoint this means nothing); `base_exists`: the commit to go back to is there.
    """

    uncommitted: bool
    task_commits: bool
    checkpoints: bool
    reflects: bool
    base_exists: bool


class Plan(NamedTuple):
    """What to do, the protocol's words for it, and for a failure its category.

    `ending`: how an attempt that is to fail ends.
    """

    action: Action
    reason: str
    category: Category | None = None
    words: str = ""
    ending: Ending = Ending.FAILED


class Row(NamedTuple):
    """One row of the matrix; None means that this question does not matter."""

    uncommitted: bool
    task_commits: bool
    checkpoints: bool | None
    reflects: bool | None
    plan: Plan


TABLE: tuple[Row, ...] = (
    Row(
        uncommitted=False,
        task_commits=False,
        checkpoints=False,
        reflects=None,
        plan=Plan("fail", "No progress detected", "SESSION_TIMEOUT", "mark failed"),
    ),
    Row(
        uncommitted=False,
        task_commits=False,
        checkpoints=True,
        reflects=True,
        plan=Plan("resume", "files reflect checkpoint progress", None, "resume from last step"),
    ),
    Row(
        uncommitted=False,
        task_commits=False,
        checkpoints=True,
        reflects=False,
        plan=Plan(
            "fail", "files do not reflect the checkpoints: work was lost", "SESSION_TIMEOUT", "mark failed"
        ),
    ),
    Row(
        uncommitted=False,
        task_commits=True,
        checkpoints=None,
        reflects=None,
        plan=Plan("validate", "task commits found", None, "run validation"),
    ),
    Row(
        uncommitted=True,
        task_commits=False,
        checkpoints=None,
        reflects=None,
        plan=Plan("validate", "uncommitted changes found", None, "run validation with uncommitted changes"),
    ),
    Row(
        uncommitted=True,
        task_commits=True,
        checkpoints=None,
        reflects=None,
        plan=Plan(
            "validate", "uncommitted changes and task commits found", None, "run validation with everything"
        ),
    ),
)


def plan(facts: Facts) -> Plan:
    """Return what to do with the attempt; every combination of facts has exactly one answer."""
    for row in TABLE:
        if _fits(row, facts):
            return _priced(row.plan, facts)
    raise AssertionError(f"BUG: the recovery matrix has no row for {facts}.")


def interrupted(task: Task, tree: str) -> Interruption:
    """Return the interruption that has left `tree`, and how often in a row the attempt stood just there."""
    last, checkpoints = task.interrupted, len(task.checkpoints)
    stood_here = last is not None and (last.tree, last.checkpoints) == (tree, checkpoints)
    return Interruption(tree, checkpoints, last.times + 1 if last and stood_here else 1)


def stands_still(interruption: Interruption) -> bool:
    """Return whether going on once more would be in vain, as often as nothing has moved."""
    return interruption.times >= STANDSTILLS


def recoverable(task: Task, *, concurrent: bool, worker: str, now: datetime, live_owner_holds: bool) -> bool:
    """Return True if `worker` may recover the task.

    Exclusive mode: whatever was left in progress, unless the session that holds it has a live owner.
    Concurrent mode: what this worker itself left behind, or a claim whose lease has ended. An ended lease
    counts even if its owner lives: it may hang, and it can record nothing once the fence has grown.
    """
    if task.status != "in_progress":
        return False
    if not concurrent:
        return not live_owner_holds
    return leases.expired(task, now) or (leases.works_for(task.claimed_by, worker) and not live_owner_holds)


def _fits(row: Row, facts: Facts) -> bool:
    pairs = (
        (row.uncommitted, facts.uncommitted),
        (row.task_commits, facts.task_commits),
        (row.checkpoints, facts.checkpoints),
        (row.reflects, facts.reflects),
    )
    return all(expected is None or expected == fact for expected, fact in pairs)


def _priced(plan: Plan, facts: Facts) -> Plan:
    if plan.action != "fail" or facts.base_exists:
        return plan
    return plan._replace(
        reason=f"{plan.reason}; base commit is gone", ending=endings.without_base(plan.ending)
    )

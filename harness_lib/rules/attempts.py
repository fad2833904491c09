"""How attempts end: what is kept of each, what each ending and each kind of halt means, what a gate guards.

Only the last attempts are kept: a list must not grow with every retry of a night. An entry of `error_log` is
one bounded line, `[TEST_FAIL] what happened`. Of a halt the kind decides; the words are for people.
Source: docs/protocol.md, "Progress Persistence" and "Error Handling"; docs/design.md, "The gate".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import Literal, NamedTuple, cast

from harness_lib import timestamps
from harness_lib.errors import ConfigError, HarnessError
from harness_lib.task import CATEGORIES, Attempt, Category, Gate, HaltKind, Outcome, Task
from harness_lib.text import Strings, in_one_line

KEPT = 10


def spend(task: Task, cost_usd: float, tokens: int) -> Task:
    """Return the task with what an agent has used up added to its present attempt."""
    before, attempt = _split(task, task.attempts + 1)
    cost, used = round(attempt.cost_usd + cost_usd, 6), attempt.tokens + tokens
    return task._replace(attempt_log=(*before, attempt._replace(cost_usd=cost, tokens=used))[-KEPT:])


def ended(task: Task, now: datetime, outcome: Outcome) -> Task:
    """Return the task with its attempt recorded as over; a failed one is counted already.

    A claim that was requeued and has cost nothing leaves no record.
    """
    before, attempt = _split(task, max(1, task.attempts) if outcome == "failed" else task.attempts + 1)
    if outcome == "pending" and before == task.attempt_log:
        return task
    over = attempt._replace(ended_at=timestamps.render(now), outcome=outcome)
    return task._replace(attempt_log=(*before, over)[-KEPT:])


def since(task: Task, began: datetime) -> tuple[Attempt, ...]:
    """Return the attempts that have ended since `began`."""
    return tuple(
        each for each in task.attempt_log if each.ended_at and timestamps.parse(each.ended_at) >= began
    )


def seconds(attempt: Attempt) -> float:
    """Return how many seconds the attempt took, 0 if that is not known."""
    if attempt.started_at is None or attempt.ended_at is None:
        return 0.0
    took = timestamps.parse(attempt.ended_at) - timestamps.parse(attempt.started_at)
    return max(0.0, took.total_seconds())


def _split(task: Task, number: int) -> tuple[tuple[Attempt, ...], Attempt]:
    """Return the earlier records, and that of this claim's attempt: a new one, `number`, if it has none."""
    log = task.attempt_log
    if log and log[-1].outcome is None and log[-1].fence == task.fence:
        return log[:-1], log[-1]
    return log, Attempt(number, fence=task.fence, started_at=task.claimed_at)


class Ending(Enum):
    """The ways in which an attempt ends that was not completed."""

    FAILED = "it has failed, and is tried again while attempts are left"
    FAILED_FOR_GOOD = "it has failed, and no further attempt can be made"
    EXCUSED = "it failed, and not through its agent: no attempt is used up"
    RELEASED = "it was handed back, and nobody is blamed"
    REQUEUED = "its work goes to the next agent, at no cost"


class Cost(NamedTuple):
    """What an ending means for the task.

    `counts`: the attempt counts. `uses_up`: no attempt is left. `outcome`: the next status of the task.
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
    """Return the ending of an attempt whose base is gone: a failure cannot be rolled back for a retry."""
    return ending if cost(ending).outcome == "pending" else Ending.FAILED_FOR_GOOD


LIMIT = 500  # Characters of an entry, including its category.
_CUT = " … "
_CATEGORY = re.compile(r"\[(" + "|".join(CATEGORIES) + r")\]")


def entry(category: Category, message: str) -> str:
    """Return `[CATEGORY] message` on one line of at most `LIMIT` characters."""
    tag = f"[{category}] "
    return (tag + line(message, LIMIT - len(tag))).rstrip()


def line(message: str, limit: int = LIMIT) -> str:
    """Return `message` on one line of at most `limit` characters.

    Line breaks become ` | `; what cannot be printed (colours of a terminal) becomes a blank.
    From the middle of a long text is cut: its beginning names the failure, its end is the output's last word.
    """
    # The output of a check may be megabytes; only its ends are kept anyway.
    reach = LIMIT * 20
    if len(message) > 2 * reach:
        message = message[:reach] + "\n" + message[-reach:]
    rows = (in_one_line(row) for row in message.splitlines())
    text = " | ".join(row for row in rows if row)
    if len(text) <= limit:
        return text
    start = (limit - len(_CUT)) // 3
    return text[:start] + _CUT + text[start + len(_CUT) - limit :]


def category_of(text: str) -> Category | None:
    """Return the category of an entry, or None.

    The first category named decides: agents of the legacy protocol put other things before it, and a failed
    check may quote any category in its output.
    """
    match = _CATEGORY.search(text)
    return cast("Category", match[1]) if match else None


def concerning(tasks: Iterable[Task], task_id: str) -> list[Task]:
    """Return the tasks with notes for `task_id`: itself, its dependencies, then those completed last."""
    listed = tuple(tasks)
    needs = next((task.depends_on for task in listed if task.id == task_id), ())
    noted = [other for other in listed if other.notes and (other.is_done or other.id == task_id)]
    return sorted(noted, key=lambda t: (t.id == task_id, t.id in needs, t.completed_at or ""), reverse=True)


def changed(gate: Gate, fingerprint: str, cwd: str | None) -> Strings:
    """Return the names of the task's fields that differ from the gate.

    `fingerprint` is the one of the present check in the working directory of the claim: a change of that
    directory to `cwd` is named by itself.
    """
    differs = {"validation.command": gate.command != fingerprint, "validation.cwd": gate.cwd != cwd}
    return tuple(name for name, differing in differs.items() if differing)


class Halt(NamedTuple):
    """A halt: its kind, the words for people, and which files to accept, or where others are to merge it."""

    kind: HaltKind
    words: str
    about: Strings = ()


def of_error(error: HarnessError) -> HaltKind:
    """Return the kind of halt for an error that needs the user."""
    if isinstance(error, ConfigError):
        return "CONFIG"
    return "ENV_SETUP" if error.kind == "ENV_SETUP" else "REFUSED"


def of_category(category: Category) -> HaltKind:
    """Return the kind of halt for a failure of a category that stops a session."""
    return "CONFIG" if category == "CONFIG" else "ENV_SETUP"


def is_for_user(task: Task) -> bool:
    """Return whether only the user may lift the halt of `task`: never an agent.

    This includes a halt without a kind, as nobody knows what it is about.
    """
    if task.halt is None:
        return False
    match task.halt_kind:
        case "CHECK_CHANGED" | "SECRET" | "JUDGES" | "REVIEW" | "MERGE" | "HUMAN" | None:
            return True
        case "CONFIG" | "ENV_SETUP" | "REFUSED" | "UNSTARTED" | "SPENT":
            return False


def is_lifted_by_an_edit(kind: HaltKind | None) -> bool:
    """Return whether a session continues once the task for which it was halted has been edited."""
    match kind:
        case "CONFIG" | "CHECK_CHANGED":
            return True
        case "ENV_SETUP" | "REFUSED" | "UNSTARTED" | "SPENT":
            # What stands in the way is outside of the task.
            return False
        case "SECRET" | "JUDGES" | "REVIEW" | "MERGE" | "HUMAN" | None:
            return False


def asks_a_person(task: Task) -> bool:
    """Return whether a person completes `task` by their word: they have looked, or have merged its work."""
    return task.halt_kind in ("HUMAN", "MERGE")


def takes_an_answer(kind: HaltKind | None) -> bool:
    """Return whether work was kept that the user can accept or return."""
    match kind:
        case "SECRET" | "JUDGES" | "REVIEW" | "MERGE":
            return True
        case "CONFIG" | "ENV_SETUP" | "REFUSED" | "CHECK_CHANGED" | "UNSTARTED" | "SPENT" | "HUMAN" | None:
            return False

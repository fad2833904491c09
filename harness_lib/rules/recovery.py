"""Decide what to do with a task that an earlier session left in progress, and how long a claim holds.

`plan` is the decision matrix of docs/protocol.md, "Context Window Recovery Protocol".
What the matrix would undo because its check fails is no failed attempt here: nobody has handed it in, so it
goes on. `interrupted` counts how often in a row that came to nothing.

A lease is permission to try: its holder may be dead, or may have slept past its end, and clocks of two
machines differ. So a lease alone allows no write: every outcome checks the claim's fencing token under the
state lock, and a worker that comes back late changes nothing.
Source: docs/design.md, "Leases and fences"; docs/protocol.md, "Concurrency Control".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Literal, NamedTuple

from harness_lib import timestamps
from harness_lib.errors import UsageError
from harness_lib.rules import attempts
from harness_lib.task import Category, Interruption, Task

Action = Literal["fail", "resume", "validate"]
# How often in a row an attempt may be interrupted without progress.
STANDSTILLS = 3
RESCUES = "refs/harness/rescue/"
HEADS = "refs/heads/"
WAITING = HEADS + "harness/"
_OBJECT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")


class Facts(NamedTuple):
    """What git and the list say about an interrupted attempt.

    `uncommitted`: the work tree is neither as at the base nor as at the last checkpoint; `task_commits`:
    there are commits since the base, and they name the task or the work tree is not as at the last
    checkpoint; `checkpoints`: it has some; `reflects`: the files show what the last one claims (without a
    checkpoint this means nothing); `base_exists`: the commit to go back to is there.
    """

    uncommitted: bool = False
    task_commits: bool = False
    checkpoints: bool = False
    reflects: bool = False
    base_exists: bool = False


class Plan(NamedTuple):
    """What to do, the protocol's words for it, and for a failure its category.

    `ending`: how an attempt that is to fail ends.
    """

    action: Action
    reason: str
    category: Category | None = None
    words: str = ""
    ending: attempts.Ending = attempts.Ending.FAILED


def plan(facts: Facts) -> Plan:
    """Return what to do with the attempt; the order of the questions is that of the rows of the matrix."""
    match facts.uncommitted, facts.task_commits:
        case True, True:
            why = "uncommitted changes and task commits found"
            return Plan("validate", why, words="run validation with everything")
        case True, False:
            return Plan(
                "validate", "uncommitted changes found", words="run validation with uncommitted changes"
            )
        case False, True:
            return Plan("validate", "task commits found", words="run validation")
    if not facts.checkpoints:
        return _failed("No progress detected", facts)
    if facts.reflects:
        return Plan("resume", "files reflect checkpoint progress", words="resume from last step")
    return _failed("files do not reflect the checkpoints: work was lost", facts)


def _failed(why: str, facts: Facts) -> Plan:
    if facts.base_exists:
        return Plan("fail", why, "SESSION_TIMEOUT", "mark failed")
    ending = attempts.without_base(attempts.Ending.FAILED)
    return Plan("fail", f"{why}; base commit is gone", "SESSION_TIMEOUT", "mark failed", ending)


def interrupted(task: Task, tree: str) -> Interruption:
    """Return the interruption that has left `tree`, and how often in a row the attempt stood just there."""
    last, checkpoints = task.interrupted, len(task.checkpoints)
    stood_here = last is not None and (last.tree, last.checkpoints) == (tree, checkpoints)
    return Interruption(tree, checkpoints, last.times + 1 if last and stood_here else 1)


def stands_still(interruption: Interruption) -> bool:
    """Return whether the attempt was interrupted too often without progress to continue."""
    return interruption.times >= STANDSTILLS


def recoverable(task: Task, *, concurrent: bool, worker: str, now: datetime, live_owner_holds: bool) -> bool:
    """Return whether `worker` may recover the task.

    Exclusive mode: whatever was left in progress, unless the session that holds it has a live owner.
    Concurrent mode: what this worker itself left behind, or a claim whose lease has ended. An ended lease
    counts even if its owner lives: it may hang, and it can record nothing once the fence has grown.
    """
    if task.status != "in_progress":
        return False
    if not concurrent:
        return not live_owner_holds
    return expired(task, now) or (works_for(task.claimed_by, worker) and not live_owner_holds)


def problem(task: Task) -> str | None:
    """Return a field of `task` with a value that harness never writes, and why; None if there is none."""
    return next(_problems(task), None)


def _problems(task: Task) -> Iterator[str]:
    intent, gate = task.intent, task.gate
    if not intent:
        return
    for field in ("base", "head", "commit"):
        value = getattr(intent, field)
        if value is not None and not is_object(value):
            yield f"intent.{field} is no full object id"
    if intent.action != "rollback" and intent.base != task.started_at_commit and not is_on_top(task):
        yield "intent.base is not where the attempt began"
    if intent.rescue is not None and not intent.rescue.startswith(RESCUES):
        yield f"intent.rescue is not below {RESCUES}"
    branches = (gate.branch, gate.target) if gate else ()
    if any(branch is not None and not branch.startswith(HEADS) for branch in branches):
        yield f"gate names a branch that is not below {HEADS}"
    # Work that is moved together with others: none of their intents names the old commit.
    alone = intent.action == "commit" and not (task.target and intent.ref)
    if (alone and intent.head is None) or (intent.action == "commit" and intent.commit is None):
        yield "intent does not say which commit goes where"
    target = task.target
    if intent.ref is not None and (target is None or intent.ref not in (target, waiting(target))):
        yield "intent.ref is not the branch that the work is for"


def is_on_top(task: Task) -> bool:
    """Return whether the work may be put on top of others' work: machines share the list, or a run merges."""
    return task.target is not None or task.machine is not None


def is_object(name: str) -> bool:
    """Return whether `name` is the full id of a git object."""
    return _OBJECT.match(name) is not None


def waiting(target: str) -> str:
    """Return the full name of the branch on which work for `target` waits."""
    return WAITING + target.removeprefix(HEADS)


DEFAULT_SECONDS = 1800
LONGEST_SECONDS = 365 * 24 * 3600
VARIABLE = "HARNESS_LEASE_SECONDS"
# One session may have several workers, each in a work tree of its own.
NUMBERED = "#"


def seconds(env_value: str | None) -> int:
    """Return how long a lease lasts, in seconds: the value of the variable, or the default if it is empty.

    Raises UsageError unless it is a whole number from 1 to `LONGEST_SECONDS`.
    """
    text = (env_value or "").strip()
    if not text:
        return DEFAULT_SECONDS
    whole = text.isascii() and text.isdigit() and len(text) <= len(str(LONGEST_SECONDS))
    if not whole or not 1 <= int(text) <= LONGEST_SECONDS:
        message = f"{VARIABLE} is {text[:40]!r}: not a whole number of seconds from 1 to {LONGEST_SECONDS}."
        raise UsageError(message, f"Unset it for {DEFAULT_SECONDS}, or set it to a number such as 900.")
    return int(text)


def end(now: datetime, lease_seconds: int | None) -> str | None:
    """Return when a lease taken or renewed `now` ends; None (exclusive mode) is a claim without a lease."""
    return None if lease_seconds is None else timestamps.later(now, lease_seconds)


def expired(task: Task, now: datetime) -> bool:
    """Return whether the claim's lease has ended; a claim without a lease never expires."""
    return task.lease_expires_at is not None and timestamps.parse(task.lease_expires_at) <= now


def ran_out(worker: str | None) -> str:
    """Return the words that say whose lease has ended, as the errors of its task keep them."""
    return f"the lease of {worker or 'nobody'} ran out"


def is_same(current: Task | None, then: Task) -> bool:
    """Return whether `current` is in progress under the same claim as `then`.

    The fencing token distinguishes claims of harness; agents of the legacy protocol raise none, but write a
    name.
    """
    return (
        current is not None
        and current.status == "in_progress"
        and (current.fence, current.claimed_by) == (then.fence, then.claimed_by)
    )


def is_mine(task: Task, worker: str) -> bool:
    """Return whether `worker` holds the claim; a task in progress without a name belongs to nobody."""
    return task.status == "in_progress" and bool(worker) and task.claimed_by == worker


def is_elsewhere(task: Task) -> bool:
    """Return whether an agent of the legacy protocol has taken the claim over: the work tree is another's."""
    return task.claimed_by not in task.attempted_by[-1:]


def placed(task: Task) -> Task:
    """Return `task`, without the work tree if that is of the claim before, which was taken over."""
    is_left = task.lease_expires_at is not None and not task.intent and is_elsewhere(task)
    return task._replace(worktree=None, gate=None) if is_left else task


def works_for(worker: str | None, session_worker: str) -> bool:
    """Return whether `worker` opened the session, or is one of its workers (`name#2`)."""
    return worker is not None and (worker == session_worker or worker.startswith(session_worker + NUMBERED))


def worker_name(session_worker: str, number: int) -> str:
    """Return the name under which worker `number` of a session claims tasks."""
    return f"{session_worker}{NUMBERED}{number}"

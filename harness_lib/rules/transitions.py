"""Change tasks: for each arrow of the table in `arrows.py` the one function that performs it.

What git does lies between two arrows, with an intent in the state that says what is under way: commit between
E and F, rollback between G and H, and where work goes onto another branch, merge between M and E, or M and G.
The attempt is counted at G, so a crash before H counts it once.
Every function returns a new task and changes nothing else.
Source: docs/protocol.md, "Task Execution Cycle"; docs/design.md, "An attempt".
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from harness_lib import timestamps
from harness_lib.rules import arrows, attempts, recovery
from harness_lib.rules.attempts import Ending, Halt
from harness_lib.task import (
    Category,
    Checkpoint,
    Gate,
    Handback,
    Intent,
    Interruption,
    Recheck,
    SentBack,
    Task,
)
from harness_lib.text import Strings

# How many workers with claims of a task are remembered.
REMEMBERED = 8


# A
def claim(
    task: Task,
    *,
    worker: str,
    now: datetime,
    base: str | None,
    gate: Gate | None,
    worktree: str | None,
    lease_seconds: int | None,
) -> Task:
    """Return the task with a fresh attempt begun by `worker` on the commit `base`.

    `lease_seconds` None (exclusive mode) makes a claim without a lease.
    """
    arrows.check("claim", task)
    return _undone(task)._replace(
        status="in_progress",
        claimed_by=worker,
        claimed_at=timestamps.render(now),
        lease_expires_at=recovery.end(now, lease_seconds),
        worktree=worktree,
        fence=task.fence + 1,
        started_at_commit=base,
        gate=gate,
        checkpoints=(),
        touched=(),
        outcome=None,
        attempted_by=_attempted_by(task, worker),
        **_carried(task),
    )


# B
def resume(
    task: Task, *, worker: str, now: datetime, worktree: str | None, lease_seconds: int | None
) -> Task:
    """Return the task with `worker` as the new holder of its attempt; base, gate and intent stay.

    The fencing token grows, so the previous holder can record nothing any more. A halt stays while a rollback
    is under way: it says what comes after that.
    """
    arrows.check("resume", task)
    if not task.intent or task.intent.action != "rollback":
        task = _halted(task, None)
    return task._replace(
        claimed_by=worker,
        claimed_at=timestamps.render(now),
        lease_expires_at=recovery.end(now, lease_seconds),
        worktree=worktree,
        fence=task.fence + 1,
        attempted_by=_attempted_by(task, worker),
    )


def _attempted_by(task: Task, worker: str) -> Strings:
    return (*(name for name in task.attempted_by if name != worker), worker)[-REMEMBERED:]


# C
def checkpoint(task: Task, point: Checkpoint, *, now: datetime, lease_seconds: int | None) -> Task:
    """Return the task with one more checkpoint and its lease renewed."""
    arrows.check("checkpoint", task)
    return renew(task._replace(checkpoints=(*task.checkpoints, point)), now, lease_seconds)


# D
def renew(task: Task, now: datetime, lease_seconds: int | None) -> Task:
    """Return the task with its lease running from `now`; a claim without a lease stays without one."""
    arrows.check("renew", task)
    if task.lease_expires_at is None or lease_seconds is None:
        return task
    return task._replace(lease_expires_at=recovery.end(now, lease_seconds))


# E
def begin_commit(
    task: Task,
    *,
    now: datetime,
    head: str | None,
    commit: str,
    ref: str | None = None,
    base: str | None = None,
) -> Task:
    """Return the task with the intent to move `ref` (None: HEAD) from `head` to `commit`.

    `head` None: `ref` moves to a commit that has this one, or is it. `base`: what `commit` goes on top of,
    if that is not what the attempt began with.
    """
    arrows.check("begin_commit", task)
    began = base or task.started_at_commit
    intent = Intent("commit", timestamps.render(now), base=began, head=head, commit=commit, ref=ref)
    return task._replace(intent=intent)


# F
def complete(task: Task, *, now: datetime, look_at: Strings = ()) -> Task:
    """Return the task completed by the commit that its intent names; base, checkpoints and errors stay.

    `look_at` are the sentences about this work that the user should read.
    """
    arrows.check("complete", task)
    commit = task.intent.commit if task.intent else None
    done = _completed(attempts.ended(task, now, "completed"), now, commit)
    return done._replace(look_at=look_at, sent_back=())


# G
def begin_rollback(
    task: Task,
    *,
    now: datetime,
    category: Category | None,
    message: str | None,
    ending: Ending,
    rescue: str | None = None,
    head: str | None = None,
    base: str | None = None,
) -> Task:
    """Return the task with the intent to rescue the attempt's work under `rescue` and go back to its base.

    `base`: a later commit to go back to. What has failed needs a category and adds to `error_log`.
    """
    arrows.check("begin_rollback", task)
    text = attempts.line(message or "")
    cost = attempts.cost(ending)
    used = task.attempts + cost.counts
    errors = task.error_log
    if cost.outcome == "failed":
        assert category is not None, f"BUG: {task.id} fails without a category."
        errors = (*errors, attempts.entry(category, text))
    intent = Intent(
        "rollback",
        timestamps.render(now),
        base=base or task.started_at_commit,
        head=head,
        rescue=rescue,
        category=category,
        message=text or None,
        outcome=cost.outcome,
    )
    return task._replace(
        sent_back=() if cost.counts else task.sent_back,
        attempts=max(used, task.max_attempts) if cost.uses_up else used,
        error_log=errors,
        intent=intent,
    )


def release(task: Task, *, now: datetime, message: str | None) -> Task:
    """Return the task with a rollback begun that requeues it: no attempt is counted, and no work is kept."""
    return begin_rollback(task, now=now, category=None, message=message, ending=Ending.RELEASED)


# H
def fail(task: Task, *, now: datetime) -> Task:
    """Return the task rolled back: `failed`, or `pending` if its intent says that it was requeued.

    The claim is removed; base, checkpoints and errors stay for a look at the attempt.
    """
    arrows.check("fail", task)
    assert task.intent is not None
    outcome = task.intent.outcome
    return _unclaimed(attempts.ended(task, now, outcome))._replace(
        status=outcome,
        failed_at=timestamps.render(now) if outcome == "failed" else None,
        # Set when the rollback began, for the next attempt.
        halt=task.halt,
        halt_kind=task.halt_kind,
        halt_about=task.halt_about,
        handback=task.handback if outcome == "pending" else None,
        # What to review in work that others are to merge is said once they have.
        look_at=task.look_at if task.halt_kind == "MERGE" else (),
        **(_carried(task) if outcome == "pending" else {}),
    )


# I
def drop_intent(task: Task) -> Task:
    """Return the task as it was before `begin_commit`: the commit was not made."""
    arrows.check("drop_intent", task)
    return task._replace(intent=None)


def uncommitted(task: Task) -> Task:
    """Return the task without the intent to commit or to merge, if it has one; that of a rollback stays."""
    return drop_intent(task) if arrows.may("drop_intent", task) else task


# J
def reset(task: Task) -> Task:
    """Return the task reset for a new try, as the user wants.

    A task that waits for a person still does, and the next attempt goes on with work that was only refused.
    The errors stay, because it learns from them; those that say [DEPENDENCY] go, because with one of them a
    task is never retried.
    """
    arrows.check("reset", task)
    asked = Halt("HUMAN", task.halt or "") if task.halt_kind == "HUMAN" else None
    refused = task.status == "pending" and task.halt_kind == "REFUSED"
    errors = tuple(text for text in task.error_log if attempts.category_of(text) != "DEPENDENCY")
    return _halted(_undone(task), asked)._replace(
        status="pending",
        attempts=0,
        error_log=errors,
        checkpoints=(),
        handback=task.handback if refused else None,
        accepted=(),
        sent_back=(),
        outcome=None,
    )


# K
def halt(task: Task, why: Halt | None) -> Task:
    """Return the task halted until the user has acted on `why`; None lifts the halt."""
    arrows.check("halt", task)
    return _halted(task, why)


def _halted(task: Task, why: Halt | None) -> Task:
    kind, words, about = why or (None, None, ())
    return task._replace(halt=words, halt_kind=kind, halt_about=about)


# L
def doom(task: Task, *, now: datetime, message: str) -> Task:
    """Return the task failed for good because of a dependency; no attempt is counted."""
    arrows.check("doom", task)
    return task._replace(
        status="failed",
        error_log=(*task.error_log, attempts.entry("DEPENDENCY", message)),
        failed_at=timestamps.render(now),
    )


# M
def begin_merge(task: Task, *, now: datetime, commit: str, base: str | None = None) -> Task:
    """Return the task with the intent to bring `commit`, its checked work, onto the gate's target.

    `base`: what the work in it goes on top of, if that is not what the attempt began with.
    """
    arrows.check("begin_merge", task)
    began = base or task.started_at_commit
    return task._replace(intent=Intent("merge", timestamps.render(now), base=began, commit=commit))


# N
def hand_back(task: Task, handback: Handback) -> Task:
    """Return the task, whose rollback has begun, with what the next agent must know to continue its work."""
    arrows.check("hand_back", task)
    return send_back(task, handback.cause)._replace(handback=handback)


def send_back(task: Task, cause: SentBack | None) -> Task:
    """Return the task with the reason why its work was sent back after a passed check, recorded once."""
    if cause is None or cause in task.sent_back:
        return task
    return task._replace(sent_back=(*task.sent_back, cause))


# O
def interrupt(task: Task, interruption: Interruption) -> Task:
    """Return the task with one more `interruption` of its attempt."""
    arrows.check("interrupt", task)
    return task._replace(interruptions=task.interruptions + 1, interrupted=interruption)


def _carried(task: Task) -> dict[str, Any]:
    """Return the interruptions that count for the next attempt, which continues the same work."""
    if not task.handback:
        return {"interruptions": 0, "interrupted": None}
    # A claim begins without checkpoints.
    last = task.interrupted._replace(checkpoints=0) if task.interrupted else None
    return {"interruptions": task.interruptions, "interrupted": last}


# P
def confirm(task: Task, *, now: datetime, commit: str | None) -> Task:
    """Return the task as completed, as an external edit says: its check passes on `commit`."""
    arrows.check("confirm", task)
    done = _completed(task, now, commit)
    return done._replace(completed_at=task.completed_at or done.completed_at, look_at=task.look_at)


# Q
def doubt(task: Task) -> Task:
    """Return the task, which an external edit has completed, as pending: its check does not pass.

    Its earlier attempts and errors stay.
    """
    arrows.check("doubt", task)
    return _undone(task)._replace(status="pending")


# R
def recheck(task: Task, found: Recheck | None) -> Task:
    """Return the task with the result of its check on a clean checkout; None removes an old result."""
    arrows.check("recheck", task)
    return task._replace(recheck=found)


# S
def attest(task: Task, *, now: datetime, commit: str | None) -> Task:
    """Return the task, which waits for a person, as completed: they have looked, or have merged `commit`."""
    arrows.check("attest", task)
    return _completed(task, now, commit)._replace(look_at=task.look_at)


# T
def hand_over(task: Task, *, worker: str, now: datetime, lease_seconds: int | None) -> Task:
    """Return the task with `worker` as the holder of its claim, which merges its checked work.

    The fencing token stays, as the commit names it. No work tree has the work any more.
    """
    arrows.check("hand_over", task)
    return renew(task._replace(claimed_by=worker, worktree=None), now, lease_seconds)


def _completed(task: Task, now: datetime, commit: str | None) -> Task:
    return _unclaimed(task)._replace(
        status="completed",
        completed_at=timestamps.render(now),
        completed_commit=commit,
        failed_at=None,
        handback=None,
    )


def _undone(task: Task) -> Task:
    return _unclaimed(task)._replace(completed_at=None, completed_commit=None, failed_at=None)


def _unclaimed(task: Task) -> Task:
    return task._replace(
        unproven=False,
        recheck=None,
        claimed_by=None,
        claimed_at=None,
        lease_expires_at=None,
        worktree=None,
        gate=None,
        intent=None,
        halt=None,
        halt_kind=None,
        halt_about=(),
        interruptions=0,
        interrupted=None,
        look_at=(),
    )

"""Hold work that has passed its check until the user accepts or returns it; none of it is lost.

In the user's own checkout it stays in place, in progress. What a run would merge is kept in a rescue
ref, so that its worker goes on with other tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_lib import typed
from harness_lib.attempts import outcome, rescue_refs, rollback
from harness_lib.core import quoting, sessions
from harness_lib.core.context import Context
from harness_lib.errors import RefusedError
from harness_lib.rules import transitions
from harness_lib.rules.attempts import Ending
from harness_lib.rules.halting import Halt
from harness_lib.system.git import locks
from harness_lib.task import Handback, Session, Task
from harness_lib.text import some

NAMED = 10
# In the environment of a run: finished work waits until the user has reviewed it.
REVIEW = "HARNESS_REVIEW"


def accept_command(task: Task, paths: Sequence[str]) -> str:
    """Return the command by which the user accepts `paths` of the work of `task`."""
    return typed.harness("accept", task.id, *(word for path in paths for word in ("--path", path)))


def return_command(task: Task) -> str:
    """Return the command by which the user sends the work of `task` back to an agent."""
    return typed.harness("return", task.id, rest='"what is to be changed"')


def secrets(task: Task, files: Sequence[str]) -> Halt:
    """Return the halt of `task`, whose work adds `files` that are named like secrets."""
    return Halt(
        "SECRET",
        f"SECRET: the check passed, but the work adds what is named like a secret: {_named(files)}. "
        f"Nothing was committed. If it may be committed, the user types: {accept_command(task, files)}; "
        f"to send the work back to an agent: {return_command(task)}",
    )


def inputs_changed(task: Task, files: Sequence[str]) -> Halt:
    """Return the halt of `task`, whose work passes only with its own changes to `files`, its check inputs."""
    return Halt(
        "JUDGES",
        "JUDGES: the check passed, but the work changes files that its check, or another task's, depends on: "
        f"{_named(files)}. "
        f"Nothing was committed. If that change is right, the user types: {accept_command(task, files)}; "
        f"to send the work back to an agent: {return_command(task)}",
    )


def review(task: Task) -> Halt:
    """Return the halt of `task`, whose work is finished and waits for a review."""
    shown = typed.harness("rescue", "show", task.id)
    return Halt(
        "REVIEW",
        f"REVIEW: the check passed, and the work waits for your review: {shown}. "
        f"Nothing was committed. If it is right, the user types: {accept_command(task, ())}; "
        f"to send the work back to an agent: {return_command(task)}",
    )


def hold(
    ctx: Context, session: Session, task: Task, oid: str, why: Halt, files: Sequence[str]
) -> outcome.Ended:
    """Halt `task`, whose work is the commit `oid`, until the user has answered for `files`, or all of it."""
    with ctx.store.transaction() as tx:
        halted = transitions.halt(outcome.require_claim(tx, task), why)
        tx.replace(halted)
        tx.log("WARN", why.words, session=session.number, task=task.id)
        current = sessions.mine(tx, ctx)
        if current and not is_merged(task):
            sessions.halt(tx, current, why)
    if not is_merged(task):
        return outcome.Ended(halted, None)
    with locks.hold(ctx.git):
        ref = rescue_refs.free_ref(ctx.git, task, suffix="-work")
        ctx.git.set_ref(ref, oid)
    about = _named(files) or "all of it"
    reason = quoting.one_line(f"The user was asked about {about}.", quoting.REASON_LENGTH)
    handback = Handback(reason, _rounds(task), ref, task.started_at_commit)
    return rollback.roll_back(
        ctx, session, halted, outcome.Verdict("TASK_EXEC", why.words, Ending.REQUEUED, why, handback)
    )


def _named(files: Sequence[str]) -> str:
    return some([repr(path) for path in files], NAMED)


def refusal(task: Task) -> RefusedError:
    """Return the error for `finish` of `task`, whose work waits in place for the user."""
    out = (
        "name them in .gitignore or move them out of the work tree"
        if task.halt_kind == "SECRET"
        else "put them back as they were"
    )
    return RefusedError(
        f"{task.halt}. The files stand where they are, and no attempt was counted.",
        f"If they do not belong to the work, {out}; then "
        f"type: {typed.harness('finish', task.id)}. Otherwise ask the user, and end your turn.",
    )


def is_accepted(task: Task) -> bool:
    """Return whether the kept work of `task` is to be completed unchanged, without an agent."""
    return task.handback is not None and task.handback.accepted


def is_merged(task: Task) -> bool:
    """Return whether the work of `task` belongs to a run, which merges it."""
    return task.gate is not None and task.gate.target is not None


def _rounds(task: Task) -> int:
    return task.handback.rounds if task.handback else 0

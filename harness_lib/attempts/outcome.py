"""Record how an attempt has ended, after a commit, a rollback or the resuming of an intent.

Crash model: an `intent` in the state says what is about to happen in git before it happens, and is removed
together with the outcome in one write.
Killed anywhere between, `interrupted.resume` does the rest: every git step ends in the same place when it is
run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from harness_lib import timestamps, typed
from harness_lib.core import ownership, sessions
from harness_lib.core.context import Context
from harness_lib.errors import CheckEditedError, LeaseLostError
from harness_lib.rules import rechecks, recovery, transitions
from harness_lib.rules.attempts import Ending, Halt
from harness_lib.state.api import Questions
from harness_lib.system.git import locks
from harness_lib.system.git.repository import Git
from harness_lib.task import Category, Handback, Intent, Session, StopReason, Task, Validation
from harness_lib.text import counted

SHORT = 12
# A check that is edited while it runs decides nothing, and the new one runs: so often.
EDITS = 3


class Ended(NamedTuple):
    """How an attempt ended: the task afterwards, the reason to stop if any, the rescue ref, and warnings.

    What to review in completed work is not among the warnings: it is stored, as `task.look_at`.
    `rolled_back`: the work tree is at the base again, if the attempt failed; without the base it cannot be.
    `files`: how many files the commit of a completed task changes, where that is known.
    """

    task: Task
    stop: StopReason | None
    rescue: str | None = None
    warnings: tuple[str, ...] = ()
    rolled_back: bool = True
    files: int | None = None

    @property
    def said(self) -> tuple[str, ...]:
        """All warnings and sentences to review, in the order in which they are shown."""
        return (*self.task.look_at, *self.warnings)


class Verdict(NamedTuple):
    """Why an attempt is rolled back, and how it ends; see `requeued` for work that is to continue.

    `halt`: why nobody may try it again yet. `handback`: what the next agent must know to go on with this
    work; its `rescue` is filled in when the work is kept, unless it names earlier work.
    `validation`: the check that says so, if it is one.
    """

    category: Category
    message: str
    ending: Ending = Ending.FAILED
    halt: Halt | None = None
    handback: Handback | None = None
    validation: Validation | None = None


def requeued(message: str, handback: Handback | None) -> Verdict:
    """Return the verdict on work that the next agent continues; without `handback` there is none."""
    return Verdict("SESSION_TIMEOUT", message, Ending.REQUEUED, handback=handback)


def words_of_completed(ended: Ended) -> str:
    """Return the sentence that says what was committed for a completed task."""
    task = ended.task
    if task.completed_commit == task.started_at_commit:
        return f"{task.id} is completed; nothing was committed."
    here = " on this branch only" if rechecks.was_completed_elsewhere(task) else ""
    if rechecks.was_completed_on_no_branch(task):
        here = " on no branch"
    files = f", {counted(ended.files, 'file')}" if ended.files is not None else ""
    return f"{task.id} is completed{here} (commit {(task.completed_commit or '')[:12]}{files})."


def require_claim(questions: Questions, task: Task) -> Task:
    """Return the task as it is now. Raises LeaseLostError if its claim is no longer that of `task`."""
    current = questions.task(task.id)
    if current is None or not recovery.is_same(current, task):
        holder = (
            f"{current.claimed_by} has it"
            if current and current.status == "in_progress"
            else "it was recovered"
        )
        raise LeaseLostError(
            f"The lease of task {task.id} was lost: {holder}. Nothing was recorded.",
            ownership.keep_work(task.id),
        )
    return current


def require_checked(questions: Questions, task: Task) -> Task:
    """Do the same. Raises CheckEditedError if the check of `task`, which has run, is no longer its check."""
    current = require_claim(questions, task)
    if current.validation != task.validation:
        raise CheckEditedError(
            f"The check of {task.id} was edited while it ran. Nothing was recorded.",
            "Type the same command again: the new check decides.",
        )
    return current


def full_base(git: Git, task: Task) -> str | None:
    """Return the full id of the attempt's base: the legacy protocol records a short one."""
    base = task.started_at_commit
    return base and (git.commit_called(base) or base)


def intent_of(task: Task) -> Intent:
    """Return the intent of `task`; a task without one is a bug here."""
    assert task.intent is not None, f"BUG: task {task.id} has no intent."
    return task.intent


def commit_of(task: Task) -> str:
    """Return the commit that the intent of `task`, to merge or to commit, names."""
    commit = intent_of(task).commit
    assert commit is not None, f"BUG: the intent of {task.id} names no commit."
    return commit


def drop_intent(ctx: Context, task: Task) -> Task:
    """Record that the commit of the claimed `task` was not made. Raises LeaseLostError."""
    with ctx.store.transaction("tasks") as tx:
        dropped = transitions.drop_intent(require_claim(tx, task))
        tx.replace(dropped)
    return dropped


def clear_dead_locks(git: Git, intent: Intent, refs: Sequence[str] = ()) -> list[str]:
    """Remove the lock files of a git that was killed while carrying out `intent`; return warnings.

    `refs`: further refs that it may have locked.
    """
    since = timestamps.parse(intent.at).timestamp()
    refs = [*(ref for ref in (intent.rescue, intent.ref) if ref), *refs]
    removed = locks.remove_dead_locks(git, since, refs)
    return [f"Removed {path.name}, which a killed git of harness had left behind." for path in removed]


def completed(ctx: Context, session: Session, task: Task, said: Sequence[str] = ()) -> Ended:
    """Record the task, whose commit is made, as completed, with all that the user should review.

    That is what its intent was begun with (see `complete.look_at`), each sentence with the command that shows
    the work, and what the git steps have `said` since.
    """
    look_at = (*with_command(ctx.git, task), *said)
    commit = commit_of(task)
    with ctx.store.transaction("tasks") as tx:
        done = transitions.complete(require_claim(tx, task), now=tx.now, look_at=look_at)
        tx.replace(done)
        tx.on_commit(partial(ownership.forget_claim, ctx, task))
        for repaired in rechecks.red(tx.search("completed")) if done.repairs is not None else ():
            # Its own check has passed, so it is red no more.
            if rechecks.whole_key(repaired) == rechecks.whole_key(done):
                tx.replace(transitions.recheck(repaired, None))
        tx.log("Completed", f"(commit {commit[:SHORT]})", session=session.number, task=task.id)
        for sentence in look_at:
            tx.log("WARN", sentence, session=session.number, task=task.id)
        return Ended(done, sessions.after_attempt(tx, ctx, session))


def with_command(git: Git, task: Task) -> list[str]:
    """Return the sentences about the work of `task`, each with the command that shows this work."""
    intent = intent_of(task)
    commit, base = intent.commit, intent.base
    if not task.look_at or commit is None or base is None or commit == base:
        return list(task.look_at)
    is_one = git.parent(commit) == base
    span = f"{base[:SHORT]}..{commit[:SHORT]}"
    show = typed.git("show", commit[:SHORT]) if is_one else typed.git("log", "--patch", span)
    return [f"{sentence} ({show})" for sentence in task.look_at]

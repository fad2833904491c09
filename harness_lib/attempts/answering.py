"""Find the work that waits for the user's answer, and what the answer has to cover."""

from __future__ import annotations

from harness_lib.attempts import commit, complete, contents, reconcile, second_check
from harness_lib.core import sessions
from harness_lib.core.context import Context
from harness_lib.errors import HeldError, RefusedError, UsageError
from harness_lib.rules import attempts, recovery
from harness_lib.state.api import Questions, Tx
from harness_lib.task import Session, Task


def place(ctx: Context, task: Task) -> Context:
    """Return `ctx` for the work tree of `task`, or unchanged if its work is kept in a ref.

    Raises UsageError (nothing waits), HeldError (its worker is still about to keep it), RefusedError (gone).
    """
    require_waiting(task)
    if task.status != "in_progress":
        return ctx
    if task.intent is not None or task.target is not None:
        raise HeldError(
            f"The worker {task.claimed_by} is ending its attempt at {task.id} at this moment.",
            "Try again in a moment; if nobody works on it any more: harness recover",
        )
    worktree = reconcile.work_tree(ctx, task)
    if worktree is None:
        raise RefusedError(f"The work tree of {task.id} is gone: {task.worktree}.", "Type: harness recover")
    return ctx.at(worktree)


def require_waiting(task: Task) -> Task:
    """Return `task`. Raises UsageError unless its work waits for the user, or was accepted by one."""
    if not attempts.takes_an_answer(task.halt_kind) and not complete.is_accepted(task):
        raise UsageError(
            f"{task.id} has no work that waits to be accepted or returned.", "See: harness status --all"
        )
    return task


def is_kept(ctx: Context, task: Task) -> bool:
    """Return whether the work of `task` that waits is still there.

    Of machines that share a list, another one may have it.
    """
    if task.status == "in_progress" or ctx.store.shared is not None:
        return True
    ref = task.handback.rescue if task.handback else None
    return ref is not None and ctx.git.ref(ref) is not None


def unaccepted(ctx: Context, task: Task) -> tuple[str, ...]:
    """Return the files in the work of `task` that the user still has to accept.

    `ctx` is as seen from its work tree, if it is in progress.
    """
    git, back = ctx.git, task.handback
    if task.status == "in_progress":
        head = git.head()
        assert head is not None
        tree = ctx.capture()
        return _waiting(ctx, task, head, commit.commit_object(ctx, head, task, tree))
    kept = git.ref(back.rescue) if back and back.rescue else None
    return _waiting(ctx, task, kept, kept) if kept else ()


def _waiting(ctx: Context, task: Task, head: str, made: str) -> tuple[str, ...]:
    secrets = contents.of(ctx, task, head, made).secrets
    if task.halt_kind == "REVIEW":
        return ()
    guarded = complete.is_guarded(task) or task.halt_kind == "JUDGES"
    inputs = second_check.waiting(ctx, task, ctx.git.tree_of(made)) if guarded else ()
    return tuple(dict.fromkeys((*secrets, *inputs)))


def session_of(ctx: Context, questions: Questions, task: Task) -> Session:
    """Return the open session that has `task` in progress, or a stand-in for one that has ended."""
    open_ones = (each for each in questions.sessions() if recovery.works_for(task.claimed_by, each.worker))
    ended = Session(questions.session_count, task.claimed_by or ctx.owner.worker, ctx.owner.host)
    return next(open_ones, ended)


def let_go_on(tx: Tx, task: Task) -> None:
    """Let the session that was halted for `task` go on."""
    for session in tx.sessions():
        if attempts.takes_an_answer(session.halt_kind) and recovery.works_for(
            task.claimed_by, session.worker
        ):
            tx.replace_session(sessions.unhalted(session))

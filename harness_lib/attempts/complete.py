"""Commit, merge, hold or requeue work whose check has passed, and find what waits for the user's answer.

Work that is held waits until the user accepts or returns it; none of it is lost. In the user's own checkout
it stays in place, in progress. What a run would merge is kept in a rescue ref, so that its worker goes on
with other tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_lib import typed
from harness_lib.attempts import (
    check,
    evaluate,
    inspection,
    interrupted,
    merge_queue,
    outcome,
    requeue,
    snapshots,
    turn,
)
from harness_lib.checks import check_of
from harness_lib.core import lifecycle, quoting
from harness_lib.core.context import Context
from harness_lib.errors import HeldError, RefusedError, UsageError
from harness_lib.rules import attempts, input_files, recovery, transitions
from harness_lib.state.api import Questions, Tx
from harness_lib.system.git import repository, worktrees
from harness_lib.task import HaltKind, SentBack, Session, Task
from harness_lib.text import Strings, some_quoted


def complete(
    ctx: Context,
    task: Task,
    evaluation: evaluate.Evaluation,
    known: check.Known | None = None,
) -> outcome.Ended:
    """Commit or merge the content that has passed its check, or requeue it; record the outcome.

    Work that the user must see first is held. `known` has the results of earlier checks, by content.
    Raises what `outcome.held`, `begin` and `carry_out`, and `merge_queue.merge` raise.
    """
    # The caller may know a newer check already.
    task = task._replace(validation=evaluation.validation)
    if evaluation.against:
        return requeue.because_of_content(ctx, task, evaluation.against)
    oid = outcome.commit_object(ctx, evaluation.head, task, evaluation.tree)
    worktrees.hold_on(ctx.git, oid)
    # Without what was untracked before the attempt: that is not its work.
    tree = ctx.git.tree_of(oid)
    verdict = inspection.second_check(ctx, task, tree, {} if known is None else known)
    if verdict.objections and _is_guarded(task):
        return _object(ctx, task, oid, verdict)
    if verdict.vacuous and _is_guarded(task) and not task.accepted and "vacuous" not in task.sent_back:
        return _send_back(ctx, task, inspection.vacuous_explanation(verdict), "vacuous")
    brought = inspection.contents(ctx, task, evaluation.head, tree)
    if brought.secrets:
        return _hold(ctx, task, oid, "SECRET", brought.secrets)
    if ctx.env.get(REVIEW) and brought.files and not is_accepted(task):
        return _hold(ctx, task, oid, "REVIEW")
    sentences = look_at(task, evaluation, verdict, brought)
    if oid in repository.by_nobody:
        sentences += _by_nobody(ctx, task)
    # Recorded with the intent.
    task = task._replace(outcome=evaluation.done_as, look_at=tuple(sentences))
    if task.target is not None:
        ended = merge_queue.merge(ctx, task, oid)
    elif ctx.shared:
        ended = turn.finish_chat(ctx, task, oid, evaluation.head)
    else:
        with outcome.held(ctx.git, task):
            ended = outcome.carry_out(ctx, outcome.begin(ctx, task, oid, evaluation.head))
    return ended._replace(files=brought.files)


def _is_guarded(task: Task) -> bool:
    """Return whether work that passes only by changing its check inputs is sent back, not completed."""
    return task.target is not None or input_files.AUTO in task.validation.protect


def _object(ctx: Context, task: Task, oid: str, verdict: inspection.Verdict) -> outcome.Ended:
    """Send the work back to its agent the first time, and ask the user the second time."""
    if "judges" in task.sent_back:
        return _hold(ctx, task, oid, "JUDGES", verdict.files)
    return _send_back(ctx, task, inspection.explanation(verdict, task), "judges")


def _send_back(ctx: Context, task: Task, reason: str, cause: SentBack) -> outcome.Ended:
    """Send work that has passed its check back to an agent; no attempt is counted."""
    if task.target is not None:
        return requeue.because_of_second_check(ctx, task, reason, cause)
    with ctx.transaction("tasks") as tx:
        current = transitions.send_back(outcome.require_claim(tx, task), cause)
        tx.replace(current)
        tx.log("WARN", reason, ctx.session.number, task.id)
    return outcome.Ended(current, None, warnings=(reason,))


def _by_nobody(ctx: Context, task: Task) -> list[str]:
    """Return a sentence that says that git does not know who commits; once for a list."""
    known = (sentence for each in ctx.ask().search("completed") for sentence in each.look_at)
    if any(repository.NOBODY in sentence for sentence in known):
        return []
    name, email = (
        typed.git("config", "--global", f"user.{key}", rest=key.upper()) for key in ("name", "email")
    )
    return [f"{task.id} was committed by {repository.NOBODY}, as git does not know you: {name} && {email}"]


def look_at(
    task: Task, evaluation: evaluate.Evaluation, verdict: inspection.Verdict, brought: inspection.Contents
) -> list[str]:
    """Return what the user should review in work that has passed its check, a sentence each.

    Add such a sentence here, and nowhere else; it names the task and ends without a full stop.
    `outcome.completed` puts the command behind it that shows the work, such as `(git show 5d71f5b00000)`, and
    stores it with the task (`look_at`); `finish`, the end of a run, `status` and `show` print it.
    """
    sentences = [*verdict.look_at, *evaluation.said]
    if verdict.objections:
        names = quoting.named(verdict.files, quoting.TOUCHED)
        sentences.append(f"passes only with its own changes to files that its check depends on: {names}")
    if verdict.vacuous:
        names = quoting.named(verdict.vacuous, quoting.TOUCHED)
        sentences.append(f"adds tests that pass without its work: {names}")
    return [f"{task.id} {each}" for each in sentences] + [f"{task.id}: {each}" for each in brought.look_at]


def finish(ctx: Context, task: Task) -> outcome.Ended:
    """Put the kept work on top of what was merged meanwhile, run the check there, and merge it.

    What stands against it hands the work back to an agent, at no cost.
    Raises what `evaluate.evaluate` and `complete.complete` raise.
    """
    if task.handback and (lost := snapshots.bring_handed_back(ctx, task, task.handback)):
        return requeue.because_it_is_elsewhere(ctx, task, lost)
    requeue.apply(ctx, task)
    evaluation = evaluate.evaluate(ctx, ctx.ask(), task)
    if not evaluation.checked.passed:
        return requeue.because_of_check(ctx, task, evaluation.head, evaluation.checked)
    return complete(ctx, task, evaluation)


# Why work whose check has passed waits for the user, and when they are to accept it.
_WAITS: dict[HaltKind, tuple[str, str]] = {
    "SECRET": ("but the work adds what is named like a secret", "If it may be committed"),
    "JUDGES": (
        "but the work changes files that its check, or another task's, depends on",
        "If that change is right",
    ),
    "REVIEW": ("and the work waits for your review", "If it is right"),
}
# In the environment of a run: finished work waits until the user has reviewed it.
REVIEW = "HARNESS_REVIEW"


def accept_command(task: Task, paths: Sequence[str]) -> str:
    """Return the command by which the user accepts `paths` of the work of `task`."""
    return typed.harness("accept", task.id, *(word for path in paths for word in ("--path", path)))


def asked_command(task: Task) -> str:
    """Return the command by which the user accepts all the work of `task` that waits."""
    return accept_command(task, () if attempts.asks_a_person(task) else task.halt_about)


def return_command(task: Task) -> str:
    """Return the command by which the user sends the work of `task` back to an agent."""
    return typed.harness("return", task.id, rest='"what is to be changed"')


# What the user may have to edit of a task, as its errors say.
_EDITS = ("--cwd DIRECTORY", "--validate 'COMMAND'", "--hidden …")


def answers(task: Task) -> Strings:
    """Return the commands with which the user answers the halt of `task`, the usual one first."""
    if attempts.takes_an_answer(task.halt_kind):
        return asked_command(task), return_command(task)
    if attempts.asks_a_person(task):
        return (asked_command(task),)
    if not check_of(task).is_given:
        return (typed.give_check(task.id),)
    edits = [typed.harness("edit", task.id, rest=rest) for rest in _EDITS]
    # The list may have come with a clone: no command of its own is shown.
    return (next((each for each in edits if each in task.halt_about), typed.harness("retry", task.id)),)


def _asked(task: Task, kind: HaltKind, files: Sequence[str]) -> attempts.Halt:
    """Return the halt of `task`, whose work passed its check, until the user has answered for `files`."""
    why, right = _WAITS[kind]
    named = some_quoted(files) or typed.harness("rescue", "show", task.id)
    return attempts.Halt(
        kind,
        f"{kind}: the check passed, {why}: {named}. Nothing was committed. {right}, the user types: "
        f"{accept_command(task, files)}; to send the work back to an agent: {return_command(task)}",
        tuple(files),
    )


def _hold(ctx: Context, task: Task, oid: str, kind: HaltKind, files: Sequence[str] = ()) -> outcome.Ended:
    """Halt `task`, whose work is the commit `oid`, until the user has answered for `files`, or all of it."""
    why = _asked(task, kind, files)
    with ctx.transaction("tasks") as tx:
        halted = transitions.halt(outcome.require_claim(tx, task), why)
        tx.replace(halted)
        tx.log("WARN", why.words, ctx.session.number, task.id)
        current = ctx.own_session(tx)
        if current and task.target is None:
            lifecycle.halt(tx, current, why, task.id)
    if task.target is None:
        return outcome.Ended(halted, None)
    asked = f"The user was asked about {some_quoted(files) or 'all of it'}."
    return requeue.for_user(ctx, halted, oid, why, asked)


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


def place(ctx: Context, task: Task) -> Context:
    """Return `ctx` for the work tree of `task`, or unchanged if its work is kept in a ref.

    Raises UsageError (nothing waits), HeldError (its worker is still about to keep it), RefusedError (gone).
    """
    require_waiting(task)
    if task.status != "in_progress":
        return ctx
    if task.intent or task.target is not None:
        raise HeldError(
            f"The worker {task.claimed_by} is ending its attempt at {task.id} at this moment.",
            "Try again in a moment; if nobody works on it any more: harness recover",
        )
    worktree = interrupted.work_tree(ctx, task)
    if not worktree:
        raise RefusedError(f"The work tree of {task.id} is gone: {task.worktree}.", "Type: harness recover")
    return ctx.at(worktree)


def require_waiting(task: Task) -> Task:
    """Return `task`. Raises UsageError unless its work waits for the user, or was accepted by one."""
    if not attempts.takes_an_answer(task.halt_kind) and not is_accepted(task):
        raise UsageError(
            f"{task.id} has no work that waits to be accepted or returned.", "See: harness status --all"
        )
    return task


def is_kept(ctx: Context, task: Task) -> bool:
    """Return whether the work of `task` that waits is still there.

    Of machines that share a list, another one may have it.
    """
    if task.status == "in_progress" or ctx.shared:
        return True
    return task.kept is not None and ctx.git.ref(task.kept) is not None


def unaccepted(ctx: Context, task: Task) -> Strings:
    """Return the files in the work of `task` that the user still has to accept.

    `ctx` is as seen from its work tree, if it is in progress.
    """
    git, back = ctx.git, task.handback
    if task.status == "in_progress":
        head = git.head()
        assert head is not None
        tree = ctx.capture()
        return _waiting(ctx, task, head, outcome.commit_object(ctx, head, task, tree))
    kept = git.ref(back.rescue) if back and back.rescue else None
    return _waiting(ctx, task, kept, kept) if kept else ()


def _waiting(ctx: Context, task: Task, head: str, made: str) -> Strings:
    tree = ctx.git.tree_of(made)
    secrets = inspection.contents(ctx, task, head, tree).secrets
    if task.halt_kind == "REVIEW":
        return ()
    guarded = _is_guarded(task) or task.halt_kind == "JUDGES"
    inputs = inspection.waiting(ctx, task, tree) if guarded else ()
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
            tx.replace_session(lifecycle.unhalted(session))

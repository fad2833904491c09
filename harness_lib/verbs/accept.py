"""`harness accept ID`: accept work that waits for the user, and complete its task."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from harness_lib import typed
from harness_lib.attempts import (
    complete,
    evaluate,
    outcome,
    target_branch,
)
from harness_lib.core import ownership, quoting, rights, sessions, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import Exit, RefusedError, UsageError
from harness_lib.rules import arrows, attempts, transitions
from harness_lib.runs import unattended
from harness_lib.state.api import Tx
from harness_lib.system.git.calls import covers
from harness_lib.system.git.repository import Git
from harness_lib.task import Merge, Task
from harness_lib.text import Strings, some

SUMMARY = "accept work that waits for you, or say that you have looked; it completes the task"
EXAMPLE = "harness accept task-001 --path .env"
HELP_ORDER = 340


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", help="the task")
    parser.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="P",
        help="a file that may be committed, or a directory of such files, from the top; may be repeated",
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    """Accept the paths (files or directories) of the task's work, and complete it; no agent is started.

    Its check runs again on the branch of its run, or the current one. Exit 1: it failed, or the work goes to
    an agent again; 8: more waits to be accepted. Somebody who holds the list meanwhile completes the task.
    """
    paths = tuple(path.rstrip("/") for path in args.path)
    task = ownership.require_task(ctx.store.ask_to_change(), args.id)
    if attempts.asks_a_person(task):
        return _looked(ctx, task)
    complete.require_waiting(task)
    command = complete.accept_command(task, paths) if paths else complete.asked_command(task)
    rights.require_user(ctx, f"What becomes of {task.id}", command)
    place = complete.place(ctx, task)
    left = _require_right(place, task, paths)
    _require_kept(ctx, task)
    into = None if task.status == "in_progress" else _target(ctx, task)
    # Before anything is noted: what is accepted and cannot be checked would wait for nobody any more.
    trust.require(ctx, ctx.ask())
    trust.require_own(ctx, task)
    with rights.change(ctx) as tx:
        waiting = complete.require_waiting(ownership.require_task(tx, task.id))
        current = _accept(tx, waiting, paths, left)
        rights.log(tx, ctx, f"accepted {some(paths)}".strip(), task.id)
    if left:
        rest = complete.accept_command(current, left)
        words = f"{current.id} still waits. To accept the rest: {rest}"
        return _reply(current, Exit.REFUSED, words)._replace(next=rest)
    if current.status == "in_progress":
        return _in_place(place, current)
    holder = sessions.holder(ctx.ask(), ctx)
    merge = current.handback and current.handback.merge
    if not holder and merge == "pull-request":
        command = typed.harness("run", "--merge", "pull-request")
        words = f"{current.id} is accepted; this opens its pull request: {command}"
        return _reply(current, Exit.DONE, words)._replace(next=command)
    if holder:
        return _reply(current, Exit.DONE, f"{current.id} is accepted; session {holder.number} completes it.")
    return _merged(ctx, current, merge, into)


def _require_kept(ctx: Context, task: Task) -> None:
    """Raise RefusedError if the work of `task` is gone."""
    if complete.is_kept(ctx, task):
        return
    again = f"To have it done again: {complete.return_command(task)}"
    if not task.kept:
        raise RefusedError(f"The work of {task.id} that waits is gone: its attempt was given up.", again)
    raise RefusedError(
        f"The work of {task.id} that waits is gone: there is no {task.kept}. Nothing was changed.",
        f"If the log names its commit ({typed.harness('log', '--task', task.id)}), bring it back: "
        f"{typed.git('update-ref', task.kept, rest='COMMIT')}. {again}",
    )


def _merged(ctx: Context, task: Task, merge: Merge | None, into: str | None) -> Reply:
    """Complete the accepted `task` on the branch `into`, or here, and say where its work is if not here."""
    reply = _ended(task, unattended.complete_accepted(ctx, task.id, merge, into))
    if into is None or reply.exit is not Exit.DONE:
        return reply
    where = f"It is on {target_branch.short(into)}, the branch of its run."
    return reply._replace(message=f"{reply.message}\n{where}")


def _target(ctx: Context, task: Task) -> str | None:
    """Return the branch that the run of `task` was for, if it is there, and another one than the one here.

    Raises RefusedError if machines share the list, and no branch here belongs to it.
    """
    into = task.handback.target if task.handback else None
    git, here = ctx.main, ctx.main.branch()
    if into is None or not into.startswith(target_branch.HEADS):
        return None
    if ctx.shared:
        return _target_of_machines(git, here, into)
    if here is not None and into in (here, target_branch.waiting(here)):
        return None
    return into if git.ref(into) or git.ref(target_branch.waiting(into)) else None


def _target_of_machines(git: Git, here: str | None, into: str) -> str | None:
    """Do what `_target` does, where machines collect the work for a branch of the remote on `into`."""
    there = into.replace(target_branch.WAITING, target_branch.HEADS, 1)
    for branch in filter(None, (here, there)):
        found = target_branch.upstream(git, branch)
        if found and found[1] == there:
            return None if branch == here else branch
    name = target_branch.short(there)
    raise RefusedError(
        f"The run of this work was for {name}, and no branch here belongs to that. Nothing was changed.",
        f"Say that yours does: {typed.git('branch', '--set-upstream-to', f'origin/{name}', name)}"
        if git.ref(there)
        else f"Go there first: {typed.git('switch', name)}",
    )


def _looked(ctx: Context, task: Task) -> Reply:
    """Complete `task`, which asks a person to look. Raises UsageError before its dependencies are done."""
    rights.require_user(ctx, f"What becomes of {task.id}", typed.harness("accept", task.id))
    with rights.change(ctx) as tx:
        task = ownership.require_task(tx, task.id)
        left = [other.id for other in tx.tasks(task.depends_on) if not other.is_done]
        if left or not (attempts.asks_a_person(task) and arrows.may("attest", task)):
            raise UsageError(
                f"{task.id} is not to be looked at yet: it comes after {some(left) or 'its claim'}.",
                "See what is left: harness status",
            )
        done = transitions.attest(task, now=tx.now, commit=ctx.main.ref(task.kept) if task.kept else None)
        tx.replace(done)
        rights.log(tx, ctx, f"accepted {quoting.one_line(task.halt or '', quoting.REASON_LENGTH)}", task.id)
    return Reply(f"{done.id} completed: you have looked.", task=done, next="harness status")


def _require_right(place: Context, task: Task, paths: Sequence[str]) -> Strings:
    """Return the files beside `paths` that still wait. Raises UsageError if a path does not wait."""
    waiting = complete.unaccepted(place, task)
    wrong = [path for path in paths if not any(covers({path}, each) for each in waiting)]
    if wrong or (waiting and not paths):
        names = f"{some(wrong)}: nothing of that name waits." if wrong else "Nothing was named to accept."
        raise UsageError(names, f"For all that waits: {complete.accept_command(task, waiting)}")
    return tuple(each for each in waiting if not covers(set(paths), each))


def _accept(tx: Tx, task: Task, paths: Sequence[str], left: Sequence[str]) -> Task:
    accepted = task._replace(accepted=tuple(dict.fromkeys((*task.accepted, *paths))))
    if left:
        asked, rest = complete.asked_command(task), complete.accept_command(task, left)
        words = (task.halt or "").replace(f"{asked};", f"{rest};")
        accepted = accepted._replace(halt=words, halt_about=tuple(left))
    else:
        accepted = transitions.halt(accepted, None)
        if accepted.handback:
            reason = "The user has accepted this work: it is to be completed as it is."
            accepted = accepted._replace(handback=accepted.handback._replace(reason=reason, accepted=True))
    tx.replace(accepted)
    return accepted


def _in_place(ctx: Context, task: Task) -> Reply:
    """Finish `task` in its work tree, for the worker that holds it."""
    questions = ctx.ask()
    ctx.session = complete.session_of(ctx, questions, task)
    evaluation = evaluate.evaluate(ctx, questions, task)
    if evaluation.checked.passed:
        return _ended(task, complete.complete(ctx, task, evaluation))
    with ctx.transaction() as tx:
        complete.let_go_on(tx, task)
    lines = [f"{task.id} is accepted, but not done. {evaluation.checked.message}"]
    if evaluation.checked.tail:
        lines += quoting.quoted(evaluation.checked.excerpt(), str(evaluation.checked.log))
    lines.append("Its work stands where it was, and no attempt was counted.")
    return _reply(task, Exit.CHECK_FAILED, "\n".join(lines))


def _ended(task: Task, ended: outcome.Ended | None) -> Reply:
    if not ended:
        return _reply(task, Exit.STOP, f"{task.id} is accepted, but no further session may be opened now.")
    if ended.task.status == "completed":
        return _reply(ended.task, Exit.DONE, outcome.words_of_completed(ended), ended.said)
    why = ended.task.halt or (ended.task.handback and ended.task.handback.reason) or "Its attempt failed."
    message = f"{ended.task.id} is accepted, but not done. {quoting.one_line(why, quoting.REASON_LENGTH)}"
    return _reply(ended.task, Exit.CHECK_FAILED, message, ended.said)


def _reply(task: Task, code: Exit, message: str, warnings: Sequence[str] = ()) -> Reply:
    return Reply(message, exit=code, task=task, next="harness status", warnings=tuple(warnings))

"""Find the task that the caller holds, and decide what it may do with it.

Of a list that machines share, a claim leaves a note on this machine. The next command compares it with the
list, where the fence has grown if another machine has taken the task over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from harness_lib import sha256, typed
from harness_lib.checks import check_of
from harness_lib.core import sessions, trust
from harness_lib.core.context import Context
from harness_lib.errors import HeldError, LeaseLostError, RefusedError, UsageError
from harness_lib.rules import attempts, recovery
from harness_lib.state.api import Questions
from harness_lib.system import fs
from harness_lib.system.git import locks, worktrees
from harness_lib.system.processes import environment, sandbox
from harness_lib.task import Session, Task
from harness_lib.text import Strings

# In the environment of an agent that `harness run` has started: the task it works on.
SUPERVISED = "HARNESS_SUPERVISED"
_NOTES = "held"
# Shows which machine a namesake of the caller works on.
NAMESAKES = "harness status --machines"


def finish_command(
    ctx: Context, task: Task, session: Session | None = None, questions: Questions | None = None
) -> str | None:
    """Return the command that ends the work on `task`, or the one that must come before that.

    It shows what waits for the user: the task, or the list's commands, which they have to trust. Or it gives
    the task a check, or shows which machine a namesake of the caller holds it on.
    None for an agent whose supervisor does that. `session`: the caller's, where it is known.
    `questions`: a look that was taken since this command has changed the list, if there is one.
    """
    if ctx.env.get(SUPERVISED):
        return None
    if _is_elsewhere(ctx, task):
        return sessions.START if recovery.expired(task, (questions or ctx.ask()).now) else NAMESAKES
    if attempts.is_for_user(task):
        return typed.harness("show", task.id)
    if not check_of(task).is_given and not decides_on_caller(ctx, task):
        return typed.give_check(task.id)
    session = session or ctx.own_session(questions or ctx.ask())
    if not session:
        return sessions.STATUS if sessions.are_used_up(questions or ctx.ask(), ctx) else sessions.START
    # A claim without a lease is the worker's only one, for as long as it likes: the name would tell nothing.
    finish = typed.harness("finish", *([task.id] if task.lease_expires_at else []))
    # Without a check it halts the session, so that an agent may stop until the user has acted; a second time
    # it does no more.
    is_given = check_of(task).is_given
    refused = trust.doubt(ctx, questions, task) if is_given else session.halt
    return ("harness check" if is_given else "harness stop") if refused else finish


def next_command(ctx: Context, questions: Questions) -> str | None:
    """Return what the caller types next: what ends the task that it holds, else `harness start`."""
    held = ctx.held(questions)
    if held and (session := ctx.own_session(questions)):
        return finish_command(ctx, held, session, questions)
    return sessions.unless_held(questions, ctx, sessions.START)


def decides_on_caller(ctx: Context, task: Task) -> bool:
    """Return whether the caller is an agent whose own work the check of `task` decides on.

    Its worker may be an agent that we do not know, unless the user types.
    """
    if not (ctx.agent or ctx.env.get(SUPERVISED)):
        if not ctx.holds(task):
            return False
        return not ctx.at_terminal or sessions.program_above(ctx.ask()) is not None
    mine = any(recovery.works_for(name, ctx.owner.worker) for name in task.attempted_by)
    return mine or task.status == "in_progress" or attempts.is_for_user(task)


def give_check(ctx: Context, task: Task) -> str:
    """Return how `task` gets another check: the command, or that an agent must ask the user."""
    command = typed.give_check(task.id)
    # What a run reports is read by the user.
    is_for_user = ctx.target is not None or not decides_on_caller(ctx, task)
    return command if is_for_user else f"ask the user to type, in a terminal: {command}"


def refuse_supervised(ctx: Context, verb: str) -> None:
    """Raise UsageError for an agent of `harness run`: the runner does what `verb` does."""
    task = ctx.env.get(SUPERVISED)
    if task:
        raise UsageError(
            f"{verb} is not available inside `harness run`, which claims and finishes {task} itself.",
            f"End your turn; then the check of {task} runs. harness note and checkpoint are fine.",
        )


def refuse_in_sandbox(ctx: Context, verb: str, instead: Callable[[], str]) -> None:
    """Raise UsageError in the sandbox of a run, where the user's git directory and `.harness/` are closed."""
    if ctx.env.get(SUPERVISED) and ctx.env.get(sandbox.INSIDE):
        raise UsageError(f"{verb} is not available in the sandbox of a run.", instead())


def require(questions: Questions, task_id: str | None, ctx: Context) -> Task:
    """Return the task in progress that the caller may finish, in its session, which `ctx` has from now on.

    `task_id` None means the one that this worker holds.
    Raises UsageError, HeldError (another session is open), LeaseLostError (another worker has the claim).
    """
    if checked := ctx.env.get(environment.CHECKED):
        raise UsageError(
            f"The check of {checked} calls harness to end its own task.",
            "A check may only look at the work: give the task another command.",
        )
    sessions.refuse_other(questions, ctx)
    refuse_late(ctx, questions)
    task = _held_or_lost(questions, ctx) if task_id is None else require_task(questions, task_id)
    if not task:
        # What an earlier process held is recovered first.
        begin = sessions.START if not ctx.own_session(questions) else sessions.CLAIM
        # Another program, such as git, may have taken the claim away with the list.
        take = "Tell the user, then take" if questions.warnings else "Take"
        message = " ".join(["You hold no task.", *questions.warnings])
        raise UsageError(message, f"{take} one, or go on with what was interrupted: {begin}")
    if task.status != "in_progress":
        _refuse_idle(questions, task, ctx.held(questions))
    if task.claimed_by is None and not questions.concurrent:
        raise UsageError(
            f"{task.id} is in progress, but nobody has claimed it: it was interrupted.",
            "Recover it: harness start",
        )
    if not ctx.holds(task):
        raise _not_yours(questions, task, ctx)
    session = ctx.own_session(questions)
    if not session:
        raise HeldError(
            f"Task {task.id} is in progress, but no session of yours is open.",
            "Open one; that recovers the task: harness start",
        )
    if found := elsewhere(ctx, task):
        raise UsageError(found.message, f"{found.hint}: {found.command}")
    ctx.session = session
    return task


def _held_or_lost(questions: Questions, ctx: Context) -> Task | None:
    """Return the task that the caller holds, else one that it has lost and another worker has now."""
    worker = ctx.owner.worker
    if (held := questions.held_by(worker)) or not questions.concurrent or not ctx.own_session(questions):
        return held
    taken = (task for task in questions.in_progress() if task.attempted_by[-1:] == (worker,))
    lost = recovery.ran_out(worker)
    return next((t for t in questions.in_progress() if lost in "".join(t.error_log[-1:])), next(taken, None))


class Elsewhere(NamedTuple):
    """Why the work of a task cannot be ended here, what to do, and the command for it."""

    message: str
    hint: str
    command: str


def elsewhere(ctx: Context, task: Task) -> Elsewhere | None:
    """Return why the caller, who holds `task`, cannot end it here; None in the work tree of its claim.

    The files in another one are not the work of the attempt, and a rollback would switch its branch.
    """
    place = task.worktree
    if place is None or ctx.shared or place == str(ctx.git.top):
        return None
    # Path.is_dir() raises where we may not look.
    if not os.path.isdir(place) or is_copied_from(ctx, Path(place)):  # noqa: PTH112
        if not task.gate or task.gate.branch == ctx.git.branch():
            # It can only be this one, under another name: no two work trees have the same branch.
            return None
        message = f"The work tree that {task.id} was claimed in is gone: {place}."
        return Elsewhere(message, "End the session; the next one recovers the task", "harness stop")
    if ctx.git.top.samefile(place):
        return None
    message = f"{task.id} was claimed in another work tree, and its work is there. Nothing was changed."
    return Elsewhere(message, "Type it there", typed.change_to(place))


def is_copied_from(ctx: Context, place: Path) -> bool:
    """Return whether the caller works in a copy of the project at `place`, which has a list of its own.

    A clone that works for this list has none.
    """
    if ctx.git_of_list is not ctx.git:
        return False
    private = place / ctx.root.private.relative_to(ctx.git.top)
    return os.path.isdir(private) and not worktrees.at(ctx.git, place)  # noqa: PTH112


def _not_yours(questions: Questions, task: Task, ctx: Context) -> LeaseLostError:
    """Return the error about a claim of another worker: its name, and the end of its lease."""
    who = task.claimed_by or "nobody that this session knows"
    since = f" since {task.claimed_at}" if task.claimed_at else ""
    until = f", leased until {task.lease_expires_at}" if task.lease_expires_at else ""
    held = f"Task {task.id} is held by {who}{since}{until}, not by you ({ctx.owner.worker})."
    if ctx.own_session(questions):
        own = questions.held_by(ctx.owner.worker)
        hint = f"You hold {own.id}: {typed.harness('finish', own.id)}" if own else keep_work(task.id)
        return LeaseLostError(f"{held} Nothing was recorded.", hint)
    holder = next((s for s in questions.sessions() if recovery.works_for(task.claimed_by, s.worker)), None)
    end = f", or end that session: {sessions.how_to_end(holder)}" if holder else ""
    return LeaseLostError(f"{held} You hold no task here; nothing was changed.", f"Let it work{end}")


def keep_work(task_id: str) -> str:
    """Return the hint after a lost claim: how to keep the work and continue."""
    save = typed.harness("rescue", "save", task_id)
    return f"Save your changes and clean your work tree: {save}; then type: harness claim"


def require_settled(ctx: Context, task_id: str | None) -> Task:
    """Return what `require` does; UsageError if a killed command left a step in git unfinished."""
    held = require(ctx.store.ask_to_change(), task_id, ctx)
    if held.intent:
        raise UsageError(
            f"A command was killed in the middle of the {held.intent.action} of {held.id}.",
            "Finish it first: harness recover",
        )
    return held


def called(questions: Questions, task_id: str) -> Task | None:
    """Return the task called `task_id`, or `task-003` for `3` and `task-3`; None if there is none."""
    return questions.task(task_id) or questions.task(typed.full_id(task_id))


def ids_of(questions: Questions, names: Strings) -> Strings:
    """Return the ids of the tasks that `names` call, as `called` finds them; a name of no task as it is."""
    return tuple(task.id if (task := called(questions, name)) else name for name in names)


def require_task(questions: Questions, task_id: str) -> Task:
    """Return the task called `task_id`, or `task-003` for `3` and `task-3`; UsageError if there is none."""
    task = called(questions, task_id)
    if not task:
        raise UsageError(
            f"There is no task {task_id!r} in this list.", "List the tasks: harness status --all"
        )
    return task


def _refuse_idle(questions: Questions, task: Task, held: Task | None) -> None:
    if held:
        raise UsageError(
            f"Task {task.id} is {task.status}, and you hold {held.id}.",
            f"Finish that one first: {typed.harness('finish', held.id)}",
        )
    if questions.concurrent and task.fence:
        raise LeaseLostError(
            f"Task {task.id} is {task.status}, no longer in progress: your claim of it has ended. "
            "Nothing was recorded.",
            keep_work(task.id),
        )
    claim = f"Claim it first: {typed.harness('claim', task.id)}"
    raise UsageError(
        " ".join([f"Task {task.id} is {task.status}, not in progress.", *questions.warnings]),
        claim if questions.why(task.id).eligible else f"Look at it: {typed.harness('show', task.id)}",
    )


def worked_on(task: Task, lost: str) -> RefusedError:
    """Return why `task`, which is in progress, is not changed: what would be `lost`, and what to do first."""
    is_checked = task.step == "merge"
    if is_checked or task.target is not None:
        why = "Its work is checked and waits for its merge" if is_checked else "A run works on it"
        end = "it is completed" if is_checked else "its attempt has ended"
        hint = f"{why}: type this again when {end}. If no run does that any more: {typed.harness('run')}"
    else:
        hand_back, recover = typed.harness("release", task.id), typed.harness("start")
        hint = f"Hand it back: {hand_back}. If nobody works on it any more: {recover}"
    return RefusedError(f"{task.id} is in progress (by {task.claimed_by or 'nobody'}); {lost}.", hint)


def note_claim(ctx: Context, task: Task, rescue: str) -> None:
    """Note that this worker has claimed `task`; `rescue`: the ref that is to keep its work if it is late."""
    document = {"task": task.id, "fence": task.fence, "rescue": rescue}
    fs.write(_file(ctx), json.dumps(document).encode(), durable=False, make=True)


def renew_claim(ctx: Context, before: Task, taken: Task) -> None:
    """Note that the claim `before` of this worker goes on as `taken`, which recovery has made of it."""
    noted = _noted(ctx)
    if noted and (noted.task, noted.fence) == (before.id, before.fence):
        note_claim(ctx, taken, noted.rescue)


def forget_claim(ctx: Context, task: Task) -> None:
    """Drop the note about the claim of `task`, which this worker has ended: a later claim ends no lease."""
    noted = _noted(ctx) if ctx.shared else None
    if noted and (noted.task, noted.fence) == (task.id, task.fence):
        fs.remove(_file(ctx))


def refuse_namesake(ctx: Context, questions: Questions) -> None:
    """Raise RefusedError if a worker of this name holds a task on another machine, whose lease goes on.

    When that has ended, the task is recovered like those of others.
    """
    held = ctx.held(questions) if ctx.target is None else None
    if not held or not _is_elsewhere(ctx, held) or recovery.expired(held, questions.now):
        return
    raise RefusedError(
        f"{held.id} is in progress on {held.machine}, under your name: {ctx.owner.worker}.",
        "Give the worker of each machine a name of its own (HARNESS_WORKER_ID), and each machine one that "
        f"stays (HARNESS_MACHINE). If it was your own command that was cut off while it took {held.id} over "
        f"from there, type it again when that claim ends: {held.lease_expires_at}.",
    )


def is_left_elsewhere(ctx: Context, held: Task, questions: Questions) -> bool:
    """Return whether a worker of the caller's name has claimed `held` on another machine, and lost it."""
    return _is_elsewhere(ctx, held) and recovery.expired(held, questions.now)


def _is_elsewhere(ctx: Context, held: Task) -> bool:
    # Nobody has the name of a run but itself: what it holds of another machine it was about to take over.
    is_shared = ctx.shared is not None and ctx.target is None
    return is_shared and held.machine not in (None, ctx.machine)


def refuse_late(ctx: Context, questions: Questions) -> None:
    """Raise LeaseLostError, once, if another machine has taken the caller's task over; its work is kept.

    Raises RefusedError as `refuse_namesake` does.
    """
    if not ctx.shared:
        return
    refuse_namesake(ctx, questions)
    noted = _noted(ctx)
    if noted is None:
        return
    name, task = noted.task, questions.task(noted.task)
    if task and ctx.holds(task):
        return
    if task and task.fence == noted.fence:
        # The user has ended the attempt, as by accepting its work.
        if task.status != "in_progress":
            forget_claim(ctx, task)
        return
    kept = _keep(ctx, noted.rescue)
    fs.remove(_file(ctx))
    is_elsewhere = task is not None and task.machine != ctx.machine
    how = f"{task.machine} took it over" if task and is_elsewhere else "it was recovered, or removed"
    raise LeaseLostError(
        f"The lease of {name} was lost: {how}. Nothing was recorded. {kept}",
        f"Clean your work tree: {typed.harness('rescue', 'save', name)}; then type: harness claim",
    )


def _keep(ctx: Context, rescue: str) -> str:
    git = ctx.git
    with locks.hold(git):
        head, tree = git.head(), ctx.capture()
        if head is None or tree == git.tree_of(head):
            return "Your work tree has no changes."
        git.set_ref(rescue, git.commit(tree, [head], "harness: work of a claim that was lost\n"))
    shown = rescue.removeprefix(recovery.RESCUES)
    return f"The work in {git.top} is kept: {typed.harness('rescue', 'show', shown)}"


class _Noted(NamedTuple):
    """What `note` has written."""

    task: str
    fence: int
    rescue: str


def _noted(ctx: Context) -> _Noted | None:
    try:
        read = json.loads(_file(ctx).read_bytes())
        return _Noted(str(read["task"]), int(read["fence"]), str(read["rescue"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _file(ctx: Context) -> Path:
    return ctx.root.private / _NOTES / sha256.digest(ctx.owner.worker.encode("utf-8", "replace"))[:16]

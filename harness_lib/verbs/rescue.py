"""`harness rescue`: the work of attempts that were rolled back."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import datetime, timezone

from harness_lib import timestamps, typed
from harness_lib.attempts import outcome, rescue_refs, snapshots
from harness_lib.attempts.rescue_refs import RESCUE_REFS
from harness_lib.core import ownership, quoting, rights, sessions
from harness_lib.core.context import Context, Reply
from harness_lib.errors import EnvSetupError, HeldError, RefusedError, UsageError
from harness_lib.rules import attempts, recovery
from harness_lib.system.git import advance, locks, restore
from harness_lib.system.git.repository import Git
from harness_lib.system.git.restore import Rescue
from harness_lib.text import counted, first, harmless, safe_name

SUMMARY = "list, show, apply or drop the work of failed attempts; save that of a lost claim"
EXAMPLE = "harness rescue show task-001"
HELP_ORDER = 440

SHOWN = 20
DIFF_LINES = 200
NAMED = 5


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("list", "show", "apply", "save", "drop"),
        default="list",
        help="default: list",
    )
    parser.add_argument(
        "what",
        nargs="?",
        help="a ref, ID/ATTEMPT, or an id for the newest of that task (save: an id, drop: no id)",
    )
    parser.add_argument(
        "--fetch", action="store_true", help="first fetch what other machines of the list have kept"
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    if args.fetch:
        if not ctx.shared:
            raise UsageError("No other machine works on this list.", "Leave --fetch out: harness rescue")
        fetched = snapshots.bring_all(ctx)
        if not fetched.done:
            raise HeldError(
                f"The work of other machines cannot be fetched: {fetched.why}.", "Try again later."
            )
    if args.action == "list":
        return show_all(ctx, args.what)
    if args.what is None:
        if args.action == "save":
            raise UsageError("The task is missing.", "List the tasks: harness status --all")
        raise UsageError("The attempt is missing.", "See which there are: harness rescue list")
    if args.action == "apply":
        return apply(ctx, args.what)
    if args.action == "save":
        return save(ctx, args.what)
    return show(ctx, args.what) if args.action == "show" else drop(ctx, args.what)


def show_all(ctx: Context, task_id: str | None) -> Reply:
    """List rescued work, of one task or of all, newest first."""
    task_id = _whole_id(ctx, task_id) if task_id else None
    prefix = RESCUE_REFS + (f"{safe_name(task_id)}/" if task_id else "")
    rescues = restore.listed(ctx.git, prefix)
    of_task = f" of {task_id}" if task_id else ""
    lines = [
        f"{len(rescues)} rescued{of_task}, newest first:" if rescues else f"Nothing was rescued{of_task}."
    ]
    rows = [f"{each.ref} {_when(each)} {quoting.one_line(each.subject, 100)}" for each in rescues]
    lines += first(rows, SHOWN, f" ({typed.git('for-each-ref', prefix)})")
    return Reply(
        "\n".join(lines),
        next=typed.harness("rescue", "show", rescues[0].ref) if rescues else "harness status",
        extra={"rescues": [_facts(each) for each in rescues[:SHOWN]], "count": len(rescues)},
    )


def show(ctx: Context, name: str) -> Reply:
    """Show what a rescued attempt had changed; `name` is a ref, `ID/N`, or an id for its newest."""
    rescue = _find(ctx, name)
    base = restore.origin(ctx.git, rescue.oid)
    rows = [row.removesuffix("\r") for row in restore.diff(ctx.git, base, rescue.oid)]
    lines = [
        f"{rescue.ref} {_when(rescue)} {quoting.one_line(rescue.subject, 100)}",
        f"compared with {base[:12]}:",
        restore.stat(ctx.git, base, rescue.oid, 30) or "no difference",
        *(f"| {_harmless(row)}" for row in rows[:DIFF_LINES]),
    ]
    if len(rows) > DIFF_LINES:
        lines.append(f"… {len(rows) - DIFF_LINES} more lines: {typed.git('diff', base[:12], rescue.ref)}")
    return Reply(
        "\n".join(lines),
        next=_next(ctx, rescue.ref),
        extra={"rescue": _facts(rescue), "base": base},
    )


def _next(ctx: Context, ref: str) -> str:
    """Return how to go on with the work at `ref`: some of it waits for an answer of the user."""
    for task in ctx.ask().halted():
        if task.kept == ref and attempts.takes_an_answer(task.halt_kind):
            return typed.harness("show", task.id)
    return typed.harness("rescue", "apply", ref)


def apply(ctx: Context, name: str) -> Reply:
    """Apply rescued work to the work tree as uncommitted changes; nothing is overwritten.

    If a file has other changes, or does not fit, nothing is written.
    """
    rescue = _find(ctx, name)
    ownership.refuse_in_sandbox(ctx, "harness rescue apply", lambda: _by_git(ctx, rescue))
    _refuse_foreign_attempt(ctx)
    brought = restore.apply(ctx.git, rescue.oid, ctx.excluded_paths)
    if brought.in_the_way:
        raise RefusedError(
            f"{quoting.named(brought.in_the_way)}: changed here, or there with other content. "
            "Nothing was written.",
            "Commit or move that first.",
        )
    if brought.unfit:
        raise RefusedError(
            f"{quoting.named(brought.unfit)}: too much has changed there since. Nothing was written.",
            f"Take over by hand what is still wanted: {typed.harness('rescue', 'show', rescue.ref)}",
        )
    warnings = [f"{path} is a repository of its own and was left out" for path in brought.left_out[:NAMED]]
    for path in brought.excluded[:NAMED]:
        content = typed.git("show", f"{rescue.ref}:{path}")
        warnings.append(f"{_harmless(path)} is a file of harness and was left out; its content: {content}")
    held = ctx.held(ctx.ask())
    message = f"brought in {counted(len(brought.written), 'file')} from {rescue.ref}, not committed"
    if not brought.written:
        message = f"All of {rescue.ref} is here already."
        if brought.excluded:
            message = f"No other file of {rescue.ref} had to be brought in."
    elif not held:
        message += "; commit what you take over: a claim refuses changed files, and new ones stay yours"
    return Reply(
        "\n".join([message, *(f"  {_harmless(path)}" for path in brought.written[:SHOWN])]),
        task=held,
        next=ownership.finish_command(ctx, held) if held else "git status",
        warnings=tuple(warnings),
        extra={"rescue": _facts(rescue), "written": list(brought.written[:SHOWN])},
    )


def _by_git(ctx: Context, rescue: Rescue) -> str:
    difference = typed.git("diff", restore.origin(ctx.git, rescue.oid), rescue.oid)
    return f"Apply it by git: {difference} | git apply"


def save(ctx: Context, task_id: str) -> Reply:
    """Keep what has changed since HEAD as rescued work of `task_id`, and put the work tree back to HEAD.

    For work whose claim was lost: a claim refuses to begin on top of it. What git does not know goes too in a
    worker's own work tree, and stays in the main one, where the user may have put it. A staged version that
    was changed further is neither in HEAD nor in the work tree, so it is kept by itself.
    """
    ownership.refuse_supervised(ctx, "harness rescue save")
    task_id = _whole_id(ctx, task_id)
    _refuse_own_attempt(ctx)
    _refuse_foreign_attempt(ctx)
    git = ctx.git
    outcome.require_no_operation(git, then=typed.harness("rescue", "save", task_id))
    with locks.hold(git):
        advance.require_unlocked(git)
        head, tree = git.head(), ctx.capture()
        untracked_stays = git.git_dir == git.common_dir and not ctx.changes().tracked
        staged = None if head is None else rescue_refs.staged_alone(git, head, tree, ctx.excluded_paths)
        if head is None or (staged is None and (untracked_stays or tree == git.tree_of(head))):
            message = "Nothing has changed here, so there is nothing to save."
            then = sessions.unless_held(ctx.ask(), ctx, sessions.CLAIM)
            return Reply(message, next=then)
        place = f"{RESCUE_REFS}{safe_name(task_id)}/late-saved"
        ref = rescue_refs.keep(git, place, tree, head, f"saved work of {task_id}")
        about = f"what was staged of {task_id} and then changed further"
        staged_ref = rescue_refs.keep(git, f"{place}-staged", staged, head, about) if staged else None
        left = _reset_work_tree(ctx, git, head, tree)
    with rights.change(ctx) as tx:
        rights.log(tx, ctx, " ".join(filter(None, ("saved", ref, staged_ref))), task_id)
        then = sessions.unless_held(tx, ctx, sessions.CLAIM)
    lines = [f"saved in {ref}; to look at it: {rescue_refs.show_command(ref)}"]
    if staged_ref:
        lines.append(f"what was staged and then changed further: {rescue_refs.show_command(staged_ref)}")
    return Reply(
        "\n".join(lines),
        next=then,
        warnings=(*left, *tx.warnings),
        extra={
            "rescue": _facts(_find(ctx, ref)),
            "staged": _facts(_find(ctx, staged_ref)) if staged_ref else None,
        },
    )


def _reset_work_tree(ctx: Context, git: Git, head: str, tree: str) -> list[str]:
    """Reset the work tree, whose content is kept as `tree`, to `head`; return the paths left alone."""
    if git.git_dir != git.common_dir:
        return restore.go_back(git, head, branch=git.branch(), made=tree, excluded_paths=ctx.excluded_paths)
    advance.undo(git, advance.to_undo(git, tree, head))
    advance.reset_index(git, head)
    untracked = ctx.changes().untracked
    return [f"{quoting.named(untracked)}: not known to git, so saved and left here, too"] if untracked else []


def _refuse_own_attempt(ctx: Context) -> None:
    held = ctx.held(ctx.ask())
    if held:
        release = typed.harness("release", held.id)
        raise RefusedError(
            f"What has changed here is your attempt at {held.id}, which you hold.",
            f"To hand it back with its work kept: {release}",
        )


def drop(ctx: Context, ref: str) -> Reply:
    """Delete one rescue ref, named in full or as `ID/N`; git keeps its content until the next gc."""
    rights.require_user(ctx, "Whether rescued work is dropped", typed.harness("rescue", "drop", ref))
    rescue = _by_ref(ctx, ref)
    if not rescue:
        raise UsageError(f"There is no rescue {ref!r}.", "Name one in full; they are in: harness rescue list")
    # The hash can bring the work back, so it is logged before the ref is deleted.
    with rights.change(ctx) as tx:
        if task := rescue_refs.needed(tx.search()).get(rescue.ref):
            answers = attempts.takes_an_answer(task.halt_kind)
            how = "waits for your answer with" if answers else "goes on with"
            raise RefusedError(
                f"{task.id} {how} {rescue.ref}.",
                f"Look at it: {typed.harness('show', task.id)}. To start the task over without that work: "
                f"{typed.harness('retry', task.id)}",
            )
        rights.log(tx, ctx, f"dropped {rescue.ref} {rescue.oid}")
    ctx.git.delete_ref(rescue.ref, rescue.oid)
    shared = _dropped_there(ctx, rescue.ref)
    return Reply(
        f"dropped {rescue.ref}\n"
        f"Until git cleans up, this brings it back: {typed.git('update-ref', rescue.ref, rescue.oid)}",
        next="harness rescue list",
        warnings=(*tx.warnings, *shared),
        extra={"rescue": _facts(rescue)},
    )


def _dropped_there(ctx: Context, ref: str) -> list[str]:
    """Remove `ref` from the remote that machines share, too; return a warning if it may still be there."""
    if not ctx.shared:
        return []
    try:
        answer = snapshots.forget(ctx, ref)
    except (HeldError, EnvSetupError) as error:
        why = error.message
    else:
        if answer.done:
            return []
        why = f"The remote has not removed it: {answer.why}."
    again = typed.harness("rescue", "drop", ref)
    return [f"{why} {typed.harness('rescue', '--fetch')} would bring it back; then type: {again}"]


def _find(ctx: Context, name: str) -> Rescue:
    task_id, slash, attempt = name.partition("/")
    named = _whole_id(ctx, task_id) + slash + attempt
    exact = _by_ref(ctx, named)
    if exact:
        return exact
    of_task = restore.listed(ctx.git, f"{RESCUE_REFS}{safe_name(named)}/")
    if not of_task:
        raise UsageError(f"Nothing was rescued under {name!r}.", "See what there is: harness rescue list")
    return of_task[0]


def _whole_id(ctx: Context, task_id: str) -> str:
    """Return the full id for the number of a task, which may no longer be on the list."""
    task = ownership.called(ctx.ask(), task_id)
    return task.id if task else task_id


def _by_ref(ctx: Context, name: str) -> Rescue | None:
    ref = name if name.startswith(RESCUE_REFS) else RESCUE_REFS + name
    return next((each for each in restore.listed(ctx.git, RESCUE_REFS) if each.ref == ref), None)


def _refuse_foreign_attempt(ctx: Context) -> None:
    questions, top = ctx.ask(), str(ctx.git.top)
    for task in questions.in_progress():
        # Checked work that waits for its merge is in no work tree.
        is_here = task.worktree == top or (task.worktree is None and not ctx.shared)
        if is_here and not ctx.holds(task) and not (questions.concurrent and recovery.is_elsewhere(task)):
            raise RefusedError(
                f"{task.claimed_by or 'Somebody'} works on {task.id} in {top}; what is brought in now would "
                "become part of that attempt.",
                "Wait until it has ended, or do it in a work tree of your own: git worktree add ../mine",
            )


def _when(rescue: Rescue) -> str:
    return timestamps.render(datetime.fromtimestamp(rescue.at, timezone.utc))


def _facts(rescue: Rescue) -> dict[str, object]:
    return {"ref": rescue.ref, "oid": rescue.oid, "at": _when(rescue), "subject": rescue.subject}


def _harmless(row: str) -> str:
    """Return `row` with its indentation, without terminal control characters."""
    return harmless(row[:300], keep="\t")

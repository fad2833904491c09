"""Requeue work that cannot be merged, with the reason for the next agent.

Twice no attempt is counted, because nobody could know; the third time the attempt has failed.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_lib.attempts import outcome, pending_merges, rescue_refs, rollback, snapshots
from harness_lib.checks import Checked
from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.rules.attempts import Ending, Halt
from harness_lib.system.git import checkout, locks, merge, trees
from harness_lib.system.git.repository import Git
from harness_lib.task import Category, Handback, SentBack, Task
from harness_lib.text import sentence, some, some_quoted

FREE_ROUNDS = 2
COMMITS = 5


def because_of_conflict(ctx: Context, task: Task, oid: str, tip: str, files: Sequence[str]) -> outcome.Ended:
    """Requeue the work `oid`, which changes the same lines of `files` as `tip` does."""
    git = ctx.git
    base = merge.begun(git, oid, tip, task.started_at_commit or tip)
    reason = (
        "The work passed its check, but conflicts with what was merged meanwhile, in "
        f"{some_quoted(files)}. {_merged_since(git, base, tip, files)}"
    )
    return _hand_back(ctx, task, reason, base, "TASK_EXEC")


def because_of_check(ctx: Context, task: Task, tip: str, checked: Checked) -> outcome.Ended:
    """Requeue work that passes its check alone, but not on top of `tip`."""
    base = task.started_at_commit or tip
    reason = (
        f"Alone the work passed its check; with what was merged meanwhile it does not. {checked.failure()} "
        f"{_merged_since(ctx.git, base, tip)}"
    )
    category: Category = "TIMEOUT" if checked.verdict == "TIMEOUT" else "TEST_FAIL"
    return _hand_back(ctx, task, reason, tip, category)


def because_of_content(ctx: Context, task: Task, blockers: pending_merges.Blockers) -> outcome.Ended:
    """Requeue work with content that must not be merged; repositories in it are moved aside first."""
    kept = rescue_refs.parts(ctx, blockers.repositories, blockers.submodules)
    sentences = ["The work passed its check, but cannot be merged."]
    if blockers.repositories:
        sentences.append(
            f"A repository of its own: {some_quoted(blockers.repositories)}. "
            "No commit of the project can hold its files. "
            + (f"It was moved to {kept}. " if kept else "")
            + "If its files belong to the work, put them into the work tree without its .git (that stays "
            "outside), so that they are plain files; otherwise leave the directory out of the work tree."
        )
    if blockers.submodules:
        sentences.append(
            "A submodule at a commit that only this work tree had: "
            f"{some_quoted(blockers.submodules)}. "
            + (f"It was moved to {kept}, with its commits. " if kept else "")
            + "Push the commit to the submodule's remote, so that one of its remote-tracking branches has "
            "it, or leave the submodule as it was."
        )
    if blockers.marked:
        sentences.append(
            f"Conflict marks still stand in {some_quoted(blockers.marked)}. Resolve them: what "
            "belongs to both sides stays, and the lines with <<<<<<<, ======= and >>>>>>> go."
        )
    base = task.started_at_commit or ctx.git.head() or ""
    return _hand_back(ctx, task, " ".join(sentences), base, "TASK_EXEC")


def because_of_second_check(ctx: Context, task: Task, reason: str, cause: SentBack) -> outcome.Ended:
    """Requeue work that has failed its second check; `reason` says why, and what to do."""
    line = quoting.one_line(reason, quoting.REASON_LENGTH)
    handback = Handback(line, _rounds(task), base=task.started_at_commit, cause=cause)
    return _back(ctx, task, handback)


def interrupted(ctx: Context, task: Task, why: str) -> outcome.Ended:
    """Requeue the unfinished work of an agent that was stopped, for the next one to continue.

    If it has made nothing, the next attempt begins as this one did.
    """
    handback = task.handback
    if has_changes(ctx, task) or ctx.git.head() != task.started_at_commit:
        reason = (
            f"An agent was stopped in the middle of it: {sentence(why)} "
            "What it had done goes into the next attempt."
        )
        accepted = handback is not None and handback.accepted
        line = quoting.one_line(reason)
        work = _without_users_files(ctx, task)
        handback = Handback(line, _rounds(task), work, task.started_at_commit, accepted)
    return rollback.roll_back(ctx, task, outcome.requeued(why, handback))


def because_of_trust(ctx: Context, task: Task) -> outcome.Ended:
    """Hand checked work back whose check was changed on another machine and is not trusted here.

    It is merged without an agent where that is trusted; the check runs there first.
    """
    reason = "Its check was changed on another machine, and is not trusted on the one that was to merge it."
    ref = rescue_refs.keep_commit(ctx.git, task, task.begun.oid, "-work")
    base = task.begun.base or task.started_at_commit
    return _back(ctx, task, Handback(reason, _rounds(task), ref, base, accepted=True))


def because_it_is_elsewhere(ctx: Context, task: Task, why: str) -> outcome.Ended:
    """Hand work that has passed to an agent, as only the machine that made it has it; `why`: git's words."""
    assert task.handback is not None, "BUG: no work was kept."
    reason = f"Its checked work is on the machine that made it only ({why}), so it is done again."
    line = quoting.one_line(reason, quoting.REASON_LENGTH)
    return _back(ctx, task, task.handback._replace(reason=line, accepted=False))


def because_user_said(ctx: Context, task: Task, text: str) -> outcome.Ended:
    """Requeue the work in the work tree as it is, with `text` for the next agent."""
    handback = Handback(text, _rounds(task), _without_users_files(ctx, task), task.started_at_commit)
    return _back(ctx, task, handback)


def for_user(
    ctx: Context, task: Task, oid: str, why: Halt, reason: str, base: str | None = None
) -> outcome.Ended:
    """Keep the work `oid` of `task`, which was halted by `why`, in a ref, until the user has answered.

    `base`: what the work differs from, if that is not what the attempt began with.
    """
    ref = rescue_refs.keep_commit(ctx.git, task, oid, "-work")
    line = quoting.one_line(reason, quoting.REASON_LENGTH)
    began = base or task.started_at_commit
    handback = Handback(line, _rounds(task), ref, began, merge=ctx.merging.elsewhere, target=ctx.target)
    verdict = outcome.Verdict("TASK_EXEC", why.words, Ending.REQUEUED, why, handback)
    return rollback.roll_back(ctx, task, verdict)


def _without_users_files(ctx: Context, task: Task) -> str | None:
    """Keep the work without files that were untracked before the attempt; return the ref, or None for none.

    These files are the user's, and must not get into another work tree or a commit.
    """
    git, head = ctx.git, ctx.git.head()
    theirs = rescue_refs.still_untracked(git, head, task) if head else []
    if head is None or not theirs:
        return None
    with locks.hold(git):
        work = trees.without(git, ctx.capture(), theirs)
        return rescue_refs.keep(
            git, rescue_refs.attempt_ref(task, "-work"), work, head, f"work of {task.id} to go on with"
        )


def has_changes(ctx: Context, task: Task) -> bool:
    """Return whether the work tree has uncommitted changes that were not there before the attempt."""
    git = ctx.git
    changes = ctx.changes()
    before = rescue_refs.before(git, task)
    known = before.paths if before else frozenset[str]()
    return bool(changes.tracked) or any(path not in known for path in changes.untracked)


def _rounds(task: Task) -> int:
    return task.handback.rounds if task.handback else 0


def _hand_back(ctx: Context, task: Task, reason: str, base: str, category: Category) -> outcome.Ended:
    line = quoting.one_line(reason, quoting.REASON_LENGTH)
    rounds = _rounds(task) + 1
    if rounds > FREE_ROUNDS:
        return rollback.roll_back(ctx, task, outcome.Verdict(category, line))
    return _back(ctx, task, Handback(line, rounds, base=base))


def _back(ctx: Context, task: Task, handback: Handback) -> outcome.Ended:
    return rollback.roll_back(ctx, task, outcome.requeued(handback.reason, handback))


def _merged_since(git: Git, base: str, tip: str, files: Sequence[str] = ()) -> str:
    """Return what was merged since `base`, limited to `files` if there are any."""
    paths = ("--", *(f":(top,literal){path}" for path in files)) if files else ()
    shown = git.text("log", "--oneline", "--no-decorate", f"--max-count={COMMITS}", f"{base}..{tip}", *paths)
    lines = "; ".join(shown.splitlines())
    return f"The other side: {lines} (git show COMMIT)." if lines else ""


def apply(ctx: Context, task: Task) -> str:
    """Put the work with which `task` was requeued into the work tree, uncommitted; return a sentence.

    Lines that both sides changed get conflict marks. Raises RemoteAwayError.
    """
    back, git = task.handback, ctx.git
    if not back or not (back.base and back.rescue and back.rescue.startswith(rescue_refs.RESCUE_REFS)):
        return ""
    if lost := snapshots.bring_handed_back(ctx, task, back):
        return f"that work cannot be fetched from where it is: {lost}"
    if not git.ref(back.rescue) or not git.exists(back.base):
        return ""
    head = git.head()
    assert head is not None
    picked = merge.differing(git, back.base, git.tree_of(back.rescue), head)
    moves = dict(trees.changed(git, git.tree_of(head), picked.tree))
    as_it_was = rescue_refs.show_command(back.rescue)
    lines = [f"that work stands in this work tree, uncommitted (git diff; as it was: {as_it_was})"]
    # Submodules are left alone: what is fetched or discarded there is for its user to decide.
    for path in [path for path, (old, new) in moves.items() if trees.GITLINK in (new or old or ())]:
        _, new = moves.pop(path)
        change = f"stands at {new[1]}" if new else "is removed"
        lines.append(f"but for one thing: there the submodule {path!r} {change}")
    with locks.hold(git):
        blocked = checkout.apply(git, moves)
    if blocked:
        lines.append(f"but for what something stands in the way of: {some(blocked)}")
    marked = list(dict.fromkeys((*picked.conflicts, *merge.left(git, git.tree_of(head), picked.tree))))
    if marked:
        lines.append(
            f"conflict marks (<<<<<<< ours: merged meanwhile, >>>>>>> yours) stand in: {some(marked)}"
        )
        lines.append("it is merged only when they are gone: resolve each, and leave no line of them")
    return "\n".join(lines)

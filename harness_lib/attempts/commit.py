"""Commit the work of an attempt whose check has passed, and record its task as completed.

A checkout in which the user's merge, rebase or the like is in progress is not touched: ending it could lose
work. A work tree of a run belongs to its attempt, so an operation in progress there was begun by the agent,
and is ended with the attempt.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harness_lib import typed
from harness_lib.attempts import check, outcome, rescue_refs, target_branch
from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.errors import RefusedError
from harness_lib.rules import rechecks, transitions
from harness_lib.system.git import history, locks, merge, restore, status, trees
from harness_lib.system.git.repository import Git, to_end
from harness_lib.system.place import find_root
from harness_lib.task import Session, Task
from harness_lib.text import some_quoted

SUBJECT_LENGTH = 200
# It tells in a commit of which claim of which task it is the work, if machines share the list.
TRAILER = "Harness-Task"
_YOURS = (find_root.INIT_SCRIPT, find_root.SETTINGS)
NOTHING = (
    "Nothing was committed for {id}: no file that git takes differs from where the attempt began. "
    "Its check passes on what git ignores or on what was untracked before, or it passed before any work."
)


def commit(ctx: Context, session: Session, task: Task, oid: str, head: str) -> outcome.Ended:
    """Move the branch from `head` to `oid`, which `commit_object` has made, and record the task as completed.

    Raises RefusedError (HEAD moved, the user's merge is under way, the check was edited), HeldError (git is
    locked), LeaseLostError; then nothing is recorded.
    """
    with held(ctx.git, task):
        return carry_out(ctx, session, begin(ctx, task, oid, head))


def begin(ctx: Context, task: Task, oid: str, head: str, onto: str | None = None) -> Task:
    """Return the task, with the intent to move HEAD from `head` to `oid`, the commit of its checked work.

    `onto`: what the work goes on top of, if that is not what the attempt began with.
    """
    base = outcome.full_base(ctx.git, task)
    with ctx.store.transaction("tasks") as tx:
        mine = as_checked(outcome.require_checked(tx, task)._replace(started_at_commit=base), task, oid)
        moving = transitions.begin_commit(mine, now=tx.now, head=head, commit=oid, base=onto)
        tx.replace(moving)
    return moving


@contextmanager
def held(git: Git, task: Task) -> Iterator[None]:
    """Hold the lock on the work tree of `task`, once no other git command and no operation of the user does.

    Raises HeldError (git is locked), RefusedError (the user's merge or the like is under way).
    """
    with locks.hold(git):
        restore.require_unlocked(git)
        require_none_of_user(git, task)
        yield


def commit_object(ctx: Context, head: str, task: Task, tree: str) -> str:
    """Return the commit of the attempt's `tree` on `head`; `head` itself if nothing is left to commit.

    Files of harness itself and caches are left out, even if git tracks them. The init script and the settings
    are the user's to commit: in a chat such a commit may be the user's, so it stays.
    """
    git, base = ctx.git, task.started_at_commit
    content = tree
    if task.gate and task.gate.before:
        content = trees.without(git, tree, rescue_refs.still_untracked(git, head, task))
    if base and base != head:
        caches = status.caches_above(git, history.added(git, base, head))
        ours = [path for path in ctx.excluded_paths if task.target or path.rpartition("/")[2] not in _YOURS]
        # In a run nothing of the attempt is on a branch of the user's, which its agent may have merged.
        users = ["--branches"] if task.target else []
        own = history.without(git, base, head, (*ours, *caches), ours, users)
        if own != head:
            content = trees.with_from(git, content, own, (*ctx.excluded_paths, *caches))
            head = own
    parents = [head, *git.merge_heads()]
    if len(parents) > 1 or content != git.tree_of(head):
        return git.commit(content, parents, message(ctx, task))
    if ctx.store.shared is None or head == base:
        return head
    # A commit of the agent's gets the trailer that machines of one list look for.
    parents = git.text("log", "-1", "--format=%P", head).split()
    return merge.like(git, head, git.tree_of(head), parents, _trailed(ctx, task, git.message(head)))


def _trailed(ctx: Context, task: Task, text: str) -> str:
    if ctx.store.shared is None:
        return text
    claim = f"{list_name(ctx)}/{check.safe_name(task.id)}/{task.fence}"
    return f"{text.rstrip()}\n\n{TRAILER}: {claim}\n"


def list_name(ctx: Context) -> str:
    """Return the name of a list that machines share, as one part of a ref's name."""
    shared = ctx.store.shared
    assert shared is not None, "BUG: a list of one machine has no name."
    return check.safe_name(shared.name)


def as_checked(current: Task, task: Task, oid: str) -> Task:
    """Return `current` with what the check of `task` has told: how it is done, and what to look at.

    With a warning if `oid`, its attempt's commit, is the one that it began on.
    """
    is_known = task.outcome == "already_done" or oid != current.started_at_commit
    look_at = task.look_at if is_known else (*task.look_at, NOTHING.format(id=task.id))
    return current._replace(outcome=task.outcome, look_at=look_at)


def message(ctx: Context, task: Task) -> str:
    """Return the message of the task's commit: its id, by which recovery finds it, and its title.

    In a list of many machines it also has a line that names the claim.
    """
    begin = f"[{task.id}] "
    # `git log` shows the title in a terminal.
    return _trailed(ctx, task, f"{begin}{quoting.one_line(task.title, SUBJECT_LENGTH - len(begin))}\n")


def carry_out(ctx: Context, session: Session, task: Task) -> outcome.Ended:
    """Carry out the commit that the task's intent names, and record it."""
    git, oid = ctx.git, outcome.commit_of(task)
    try:
        is_as_committed = restore.move_head_and_index(git, oid, outcome.intent_of(task).head)
    except restore.HeadMovedError as error:
        outcome.drop_intent(ctx, task)
        raise restore.HeadMovedError(
            f"{error.message} before the check of {task.id} ran. Nothing was recorded.",
            f"See who committed or switched the branch: git log. If the check does, {task.id} needs another "
            f"one: {typed.give_check(task.id)}. Then type: {typed.harness('finish', task.id)}",
        ) from error
    said = _moved_branch(git, task)
    if not is_as_committed:
        said += undo_check(ctx, task, oid)
    if task.gate is None or task.gate.before is None:
        return outcome.completed(ctx, session, task, said)
    ended = outcome.completed(ctx, session, task, [*said, *rescue_refs.changed_before(git, task)])
    rescue_refs.drop_before(git, task)
    return ended


def _moved_branch(git: Git, task: Task) -> list[str]:
    branch = git.branch()
    if task.gate is None or (branch and branch == task.gate.branch):
        return []
    claimed = rescue_refs.branch(git, task)
    if claimed is None:
        return [] if branch or task.target else _on_no_branch(git, task)
    if branch == claimed:
        return []
    tip = git.ref(claimed)
    if tip and git.is_ancestor("HEAD", tip):
        return []
    claimed_on, current = target_branch.short(claimed), target_branch.short(branch)
    there = current if branch else (git.head() or "")[: outcome.SHORT]
    if tip:
        steps = [typed.git("checkout", claimed_on), typed.git("merge", there)]
    else:
        steps = [typed.git("branch", claimed_on, there)]
    where = f"{task.id} {rechecks.CLAIMED_ON} {claimed_on} and completed on {current}"
    return [f"{where}, so {claimed_on} does not have it. Bring it over: {' && '.join(steps)}"]


def _on_no_branch(git: Git, task: Task) -> list[str]:
    """Return a warning if no branch has the work of `task`: some hosts give an agent a detached HEAD."""
    commit = outcome.commit_of(task)
    places = ("refs/heads", "refs/remotes", "refs/tags")
    if git.lines("for-each-ref", "--count=1", "--contains", commit, *places):
        return []
    where = f"{task.id} {rechecks.ON_NO_BRANCH}, as HEAD is detached in {git.top}"
    keep = typed.git("branch", check.safe_name(task.id), commit[: outcome.SHORT])
    return [f"{where}: once this work tree is removed, git deletes its commit some day. Keep it: {keep}"]


def undo_check(ctx: Context, task: Task, commit_oid: str) -> list[str]:
    """Restore the tracked files that the check changed, staged or not, from `commit_oid`; return warnings."""
    git = ctx.git
    if not ctx.changes().tracked:
        return []
    with locks.hold(git):
        # The user may have edited these files while the check ran: keep a copy of them first.
        name, what = rescue_refs.attempt_ref(task, "-check"), f"after the check of {task.id}"
        ref = rescue_refs.keep(git, name, ctx.capture(), commit_oid, what)
        undone = restore.undo_tracked(git, commit_oid, ctx.excluded_paths)
    changed_by = f"{len(undone)} tracked file(s) changed while the check of {task.id} ran; put back"
    return [f"{changed_by}, the change is kept: {typed.harness('rescue', 'show', ref)}"]


NAMED = 5


def require_none(git: Git, then: str) -> None:
    """Raise RefusedError if a git operation is in progress, or files have unresolved conflicts.

    `then`: what to type once it has ended.
    """
    operation, unmerged = git.under_way(), status.unmerged(git)
    if operation is None and not unmerged:
        return
    names = some_quoted(unmerged, NAMED)
    what = f"Conflicts in {git.top} are not resolved: {names}."
    way = "resolve them and mark each file with git add"
    if operation is not None:
        conflicts = f", with conflicts in {names}" if unmerged else ""
        what = f"A {operation} is under way in {git.top}{conflicts}."
        way = f"finish it with git ({to_end(operation)}; git status shows the other ways)"
    raise RefusedError(
        f"{what} Nothing was changed, and no attempt was counted.",
        f"If you are an agent and did not begin it, ask the user. Otherwise {way}, then type: {then}",
    )


def require_none_of_user(git: Git, task: Task, then: str | None = None) -> None:
    """Do the same for the work tree of `task`, unless it belongs to a run; `then`: `harness finish`."""
    if task.target is None:
        require_none(git, then or typed.harness("finish", task.id))

"""The branch that finished work is merged into, and the branch of ours where it waits for a person.

A person may have the target checked out.
While they have changes there, or somebody works on a task in it, their checkout is not touched: the work
gathers on `harness/<branch>`, and goes over when nothing is in the way.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from harness_lib import typed
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, HeldError, UsageError
from harness_lib.rules import recovery
from harness_lib.system.git import fast_forward, history, locks, merge, restore, worktrees
from harness_lib.system.git.repository import Git, GitError

HEADS = recovery.HEADS
WAITING = recovery.WAITING


class MovedError(Exception):
    """The ref is no longer where it was, or (`blocked`) its checkout is not free: ask `next_move` again."""

    def __init__(self, *, blocked: bool = False) -> None:
        super().__init__()
        self.blocked = blocked


class Move(NamedTuple):
    """Which ref the next merge moves, and from where; `old` is "" where the ref has yet to be made."""

    ref: str
    tip: str
    old: str


def current(git: Git) -> str:
    """Return the full name of the branch that is checked out; UsageError if HEAD is detached."""
    branch = git.branch()
    if branch is None:
        raise UsageError(
            f"HEAD is detached in {git.top}: there is no branch that work could be merged into.",
            "Check one out first: git switch -c NAME",
        )
    return branch


def short(ref: str) -> str:
    """Return a branch as people write it."""
    return ref.removeprefix(HEADS)


def waiting(target: str) -> str:
    """Return the full name of the branch of ours where work for `target` waits."""
    return recovery.waiting(target)


def require_room(git: Git, target: str) -> None:
    """Raise EnvSetupError if a person's branch stands where what waits for `target` would have to be."""
    ours = waiting(target)
    for name, _ in git.refs(HEADS):
        if name != ours and (ours.startswith(f"{name}/") or name.startswith(f"{ours}/")):
            raise EnvSetupError(
                f"Finished work may have to wait on {short(ours)}, and git has no room for that branch "
                f"beside {short(name)}.",
                f"Give yours another name: {typed.git('branch', '-m', short(name), 'NAME')}",
            )


def tip(git: Git, target: str) -> str:
    """Return the commit that an attempt starts from: all that has been merged so far.

    Where a person has committed to the target beside what waits, that is a merge of both, if it can be made.
    """
    target_tip, waits = git.ref(target), git.ref(waiting(target))
    if waits is None:
        if target_tip is None:
            raise error(git, target)
        return target_tip
    if target_tip is None or git.is_ancestor(target_tip, waits):
        return waits
    message = f"Merge branch '{short(target)}' into {short(waiting(target))}\n"
    return merge.join(git, waits, target_tip, message) or waits


def next_move(ctx: Context, target: str, *, aside: bool = False) -> Move:
    """Return what the next merge has to move; `aside`: not the target, for its checkout is not free."""
    git, ours = ctx.git, waiting(target)
    target_tip, waits = git.ref(target), git.ref(ours)
    if waits and target_tip and git.is_ancestor(waits, target_tip):
        # A person has taken it over.
        _forget(git, ours, waits)
        waits = None
    base = tip(git, target)
    if waits:
        return Move(ours, base, waits)
    if aside or not _checkout_is_free(ctx, target, base, base):
        return Move(ours, base, "")
    return Move(target, base, base)


def carry_out(ctx: Context, target: str, move: Move, new: str) -> None:
    """Let the ref of `move` stand at `new`; again after a crash is fine. Raises MovedError.

    The two branches never part by our doing: ours begins only where the target stands at that moment, and
    the target goes only to what ours holds, or while there is none of ours.
    """
    git = ctx.git
    if move.ref == target:
        _move_target(ctx, target, move, new)
    elif git.ref(move.ref) != new:
        _set(git, move, new, None if move.old else (target, move.tip))


def _move_target(ctx: Context, target: str, move: Move, new: str) -> None:
    git, ours = ctx.git, waiting(target)
    target_tip, waits = git.ref(target), git.ref(ours)
    if target_tip == move.tip == new:
        # Work that is nothing: no file changes with it, whoever has the branch checked out.
        return
    if target_tip != new and waits and not git.is_ancestor(waits, new):
        raise MovedError
    unparted = (ours, waits or "")
    checkout = _holder(ctx, target)
    if checkout is None:
        if worktrees.is_hidden(git, target):
            raise MovedError(blocked=True)
        if target_tip != new:
            _set(git, move, new, unparted)
        return
    with locks.hold(checkout.git):
        if not _is_free(checkout, move.tip, new):
            raise MovedError(blocked=True)
        try:
            restore.require_unlocked(checkout.git)
        except HeldError as error:
            # An editor, or a git command that asks its person something: hours, perhaps.
            raise MovedError(blocked=True) from error
        try:
            fast_forward.forward(checkout.git, move.tip, new, only_while=unparted)
        except restore.HeadMovedError as error:
            raise MovedError from error


def _set(git: Git, move: Move, new: str, only_while: tuple[str, str] | None) -> None:
    try:
        # Held, so that whoever finds git's lock on the ref knows from the intent whose it was.
        with locks.hold(git):
            git.set_ref(move.ref, new, move.old, only_while=only_while)
    except GitError as error:
        other, place = only_while or (move.ref, move.old)
        if (git.ref(move.ref) or "", git.ref(other) or "") == (move.old, place):
            raise
        raise MovedError from error


def mend(checkout: Context) -> None:
    """Put right what we have left in `checkout`: half a move, or a branch moved without it."""
    git = checkout.git
    if fast_forward.is_half_done(git):
        # Whoever is still at it comes to the end first.
        with locks.hold(git):
            fast_forward.take_back(git)
    stood = history.stood_last(git)
    if stood not in (None, git.head()):
        with locks.hold(git):
            _catch_up(checkout, stood)


def _catch_up(checkout: Context, stood: str | None) -> None:
    """Let a checkout that stands where its branch was before we moved it come after.

    Only where all of it proves that: its own record ends at `stood`, the branch holds that, and stands where
    the list says that we have brought it. Otherwise the difference is a person's.
    """
    git, head = checkout.git, checkout.git.head()
    if stood is None or head is None or stood == head or not git.exists(stood):
        return
    if git.under_way() or not git.is_ancestor(stood, head) or not checkout.store.ask().made(head):
        return
    fast_forward.catch_up(git, stood, head)


def deliver(ctx: Context, target: str, checked: str | None = None) -> str | None:
    """Bring what waits onto `target` if nothing is in the way; return what is in the way, None if nothing.

    `checked`: a merge of both, on which every check has passed, for when they have parted.
    """
    git, ours = ctx.git, waiting(target)
    target_tip, waits = git.ref(target), git.ref(ours)
    if waits is None or target_tip is None:
        return None
    if git.is_ancestor(waits, target_tip):
        _forget(git, ours, waits)
        return None
    joined = checked is not None and all(git.is_ancestor(each, checked) for each in (target_tip, waits))
    if not joined and not git.is_ancestor(target_tip, waits):
        return f"{short(target)} has commits of its own"
    try:
        if joined and checked is not None:
            _set(git, Move(ours, checked, waits), checked, None)
            waits = checked
        carry_out(ctx, target, Move(target, target_tip, target_tip), waits)
    except MovedError:
        return f"there are changes in the checkout of {short(target)}"
    _forget(git, ours, waits)
    return None


def _forget(git: Git, ours: str, waits: str) -> None:
    """Delete the branch of ours, all of which has arrived, if nobody else is at it.

    Several come to that at the same time. Where it stays it is deleted by whoever comes next.
    """
    with locks.hold(git), suppress(GitError):
        git.delete_ref(ours, waits)


def _checkout_is_free(ctx: Context, target: str, old: str, new: str) -> bool:
    """Return whether nobody has `target` checked out, or nothing of theirs would be touched."""
    checkout = _holder(ctx, target)
    return not worktrees.is_hidden(ctx.git, target) if checkout is None else _is_free(checkout, old, new)


def _holder(ctx: Context, target: str) -> Context | None:
    """Return the context of the work tree that has `target` checked out; None if none has."""
    main = ctx.main
    # Nearly always it is the project's own checkout, of which git need not be asked.
    own = main.git_dir == ctx.git.common_dir and not worktrees.is_bare(main)
    if own and main.branch() == target:
        return ctx.at(main)
    holder = worktrees.holder(ctx.git, target)
    return None if holder is None else ctx.at(Git.open(holder))


def _is_free(checkout: Context, old: str, new: str) -> bool:
    """Return whether nothing of a person's, and no attempt, would be touched in this checkout."""
    mend(checkout)
    if checkout.git.under_way() or _is_worked_in(checkout):
        return False
    if checkout.git.head() == new and old != new:
        return True
    return not fast_forward.obstacles(checkout.git, old, new, checkout.excluded_paths)


def _is_worked_in(checkout: Context) -> bool:
    top = str(checkout.git.top)
    return any(task.worktree == top for task in checkout.store.ask().in_progress())


def error(git: Git, branch: str | None) -> EnvSetupError:
    """Return the error of an attempt that has nothing to begin with: `branch` (full name) has no commit."""
    branches = [name for name, _ in git.refs(HEADS)]
    name = (branch or "HEAD").removeprefix(HEADS)
    stood = last_place(git, branch) if branch else None
    if branch and stood:
        return EnvSetupError(
            f"The branch {name} is gone; it stood at {stood[:12]}.",
            f"Make it again: {typed.git('branch', name, stood)}",
        )
    if branches:
        other = branches[0].removeprefix(HEADS)
        return EnvSetupError(
            f"The branch {name} of {git.top} has no commit; there are others, {other} for one.",
            f"Go to one of them: {typed.git('switch', other)}",
        )
    if git.has_commits():
        return EnvSetupError(
            f"{git.top} has no branch any more, but it has commits.",
            "Look for the last one (git log --all --reflog, or git fsck --lost-found), "
            f"then: {typed.git('branch', name, rest='COMMIT')}",
        )
    return EnvSetupError(
        f"The repository {git.top} has no commit yet, so a failed attempt could not be rolled back.",
        "Make a first commit (an empty one will do): git commit --allow-empty -m 'Start'",
    )


def last_place(git: Git, branch: str) -> str | None:
    """Return the newest commit that `branch`, which is gone, is known to have stood at."""
    logged = history.last_of_checkout(git, branch)
    if logged is None or not git.exists(logged):
        return None
    # Of the branch that was left for this one, which may never have had a commit.
    is_anothers = git.text("for-each-ref", "--contains", logged, "--count=1", HEADS)
    return None if is_anothers else logged

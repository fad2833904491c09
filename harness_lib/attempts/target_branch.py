"""Move the branch that finished work is merged into, or the waiting branch beside it.

The user may have the target checked out. While they have changes there, or a task is in progress in it, their
checkout is not touched: work is collected on `harness/<branch>`, and merged when nothing is in the way.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import NamedTuple

from harness_lib import typed
from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, HeldError, UsageError
from harness_lib.rules import recovery
from harness_lib.system.git import advance, calls, history, locks, merge, status, worktrees
from harness_lib.system.git.repository import NOBODY, Git

HEADS = recovery.HEADS
WAITING = recovery.WAITING
waiting = recovery.waiting


class MovedError(Exception):
    """The ref is no longer where it was, or (`blocked`) its checkout is not free: ask `next_move` again."""

    def __init__(self, *, blocked: bool = False) -> None:
        super().__init__()
        self.blocked = blocked


class Move(NamedTuple):
    """What the next merge moves on from `tip`: the branch `target`, or the branch where work for it waits.

    `aside`: the commit of the latter, "" if there is no such branch yet; None: the target is moved.
    """

    target: str
    tip: str
    aside: str | None = None

    @property
    def ref(self) -> str:
        """The full name of the branch that is moved."""
        return self.target if self.aside is None else waiting(self.target)

    @property
    def old(self) -> str:
        """Where that branch is; "" if it does not exist yet."""
        return self.tip if self.aside is None else self.aside


def current(git: Git) -> str:
    """Return the full name of the branch that is checked out. Raises UsageError if HEAD is detached."""
    branch = git.branch()
    if branch is None:
        operation = status.under_way(git)
        raise UsageError(
            f"HEAD is detached in {git.top}: there is no branch that work could be merged into.",
            f"End your {operation} first; see how: git status"
            if operation
            else "Check one out first: git switch -c NAME",
        )
    return branch


def short(ref: str | None) -> str:
    """Return the short name of a branch; "no branch" if there is none."""
    return "no branch" if ref is None else ref.removeprefix(HEADS)


def require_room(git: Git, target: str) -> None:
    """Raise EnvSetupError if the user's branch has the name that the waiting branch of `target` needs."""
    ours = waiting(target)
    for name, _ in git.refs(HEADS):
        if name != ours and (ours.startswith(f"{name}/") or name.startswith(f"{ours}/")):
            raise EnvSetupError(
                f"Finished work may have to wait on {short(ours)}, and git has no room for that branch "
                f"beside {short(name)}.",
                f"Give yours another name: {typed.git('branch', '-m', short(name), 'NAME')}",
            )


def tip(git: Git, target: str) -> str:
    """Return the commit that an attempt starts from: everything that has been merged so far.

    If the user has committed to the target while work waits, that is a merge of both, if there is no
    conflict.
    """
    target_tip, waits = git.ref(target), git.ref(waiting(target))
    if waits is None:
        if target_tip is None:
            raise error(git, target)
        return target_tip
    if target_tip is None:
        return waits
    message = f"Merge branch '{short(target)}' into {short(waiting(target))}\n"
    return merge.join(git, waits, target_tip, message) or waits


def next_move(ctx: Context, target: str, *, aside: bool = False) -> Move:
    """Return what the next merge moves; `aside`: not the target, because its checkout is not free.

    Whether it is free is asked by `unless_blocked`, once there is something to move.
    """
    git, ours = ctx.git, waiting(target)
    target_tip, waits = git.ref(target), git.ref(ours)
    if waits and target_tip and git.is_ancestor(waits, target_tip):
        # The user has merged it.
        _forget(git, ours, waits)
        waits = None
    base = tip(git, target)
    if waits or aside:
        return Move(target, base, waits or "")
    return Move(target, base)


def unless_blocked(ctx: Context, move: Move) -> Move:
    """Return `move`, or that of the waiting branch if the checkout of the target may not be updated."""
    if move.aside is not None:
        return move
    checkout = _holder(ctx, move.target)
    if not checkout:
        is_free = not worktrees.is_hidden(ctx.git, move.target)
    else:
        is_free = _is_free(checkout, move.tip, move.tip)
    return move if is_free else move._replace(aside="")


def carry_out(ctx: Context, move: Move, new: str) -> None:
    """Move the branch of `move` to `new`; safe to repeat after a crash. Raises MovedError.

    We never make the two branches diverge: ours begins only at the target's commit of that moment, and the
    target moves only to a commit of ours, or while there is no branch of ours.
    """
    git = ctx.git
    if move.aside is None:
        _move_target(ctx, move, new)
    elif git.ref(move.ref) != new:
        _set(git, move, new, None if move.old else (move.target, move.tip))


def _move_target(ctx: Context, move: Move, new: str) -> None:
    git, target, ours = ctx.git, move.target, waiting(move.target)
    target_tip, waits = git.ref(target), git.ref(ours)
    if target_tip == move.tip == new:
        # Empty merge: no file changes, so any checkout may be updated.
        return
    if target_tip != new and waits and not git.is_ancestor(waits, new):
        raise MovedError
    unparted = (ours, waits or "")
    checkout = _holder(ctx, target)
    if not checkout:
        if worktrees.is_hidden(git, target):
            raise MovedError(blocked=True)
        if target_tip != new:
            _set(git, move, new, unparted)
        return
    with locks.hold(checkout.git):
        if not _is_free(checkout, move.tip, new):
            raise MovedError(blocked=True)
        try:
            advance.require_unlocked(checkout.git)
        except HeldError as error:
            # An editor, or a git command that waits for the user, perhaps for hours.
            raise MovedError(blocked=True) from error
        try:
            advance.forward(checkout.git, move.tip, new, only_while=unparted)
        except advance.HeadMovedError as error:
            raise MovedError from error


def _set(git: Git, move: Move, new: str, only_while: tuple[str, str] | None) -> None:
    try:
        # Held, so that the owner of a lock on the ref can be found through the intent.
        with locks.hold(git):
            git.set_ref(move.ref, new, move.old, only_while=only_while)
    except calls.GitError as error:
        other, place = only_while or (move.ref, move.old)
        if (git.ref(move.ref) or "", git.ref(other) or "") == (move.old, place):
            raise
        raise MovedError from error


def mend(checkout: Context) -> None:
    """Repair `checkout` after a half-done move, or a branch that was moved without it."""
    git = checkout.git
    if advance.is_half_done(git):
        # A process that is still moving it finishes first.
        with locks.hold(git):
            advance.take_back(git)
    stood = history.stood_last(git)
    if stood and stood != git.head():
        with locks.hold(git):
            _catch_up(checkout, stood)


def _catch_up(checkout: Context, stood: str) -> None:
    """Update a checkout that is still where its branch was before we moved it.

    Only if everything shows that: its reflog ends at `stood`, the branch contains that commit, and is where
    the list says that we moved it. Otherwise the difference is the user's work.
    """
    git, head = checkout.git, checkout.git.head()
    if head is None or stood == head or not git.exists(stood):
        return
    if status.under_way(git) or not git.is_ancestor(stood, head) or not checkout.ask().made(head):
        return
    advance.catch_up(git, stood, head)


def deliver(ctx: Context, target: str, checked: str | None = None) -> None:
    """Merge what waits into `target` if nothing is in the way.

    `checked`: a merge of both, on which every check has passed, in case they have diverged.
    """
    git, ours = ctx.git, waiting(target)
    target_tip, waits = git.ref(target), git.ref(ours)
    if waits is None or target_tip is None:
        return
    with suppress(MovedError):
        if checked is not None and all(git.is_ancestor(each, checked) for each in (target_tip, waits)):
            _set(git, Move(target, checked, waits), checked, None)
            waits = checked
        if not git.is_ancestor(waits, target_tip):
            if not git.is_ancestor(target_tip, waits):
                return
            carry_out(ctx, Move(target, target_tip), waits)
        _forget(git, ours, waits)


def _forget(git: Git, ours: str, waits: str) -> None:
    """Delete the waiting branch, all of which is merged, if no other process uses it.

    Several workers may try at the same time. If it stays, the next one deletes it.
    """
    with locks.hold(git), suppress(calls.GitError):
        git.delete_ref(ours, waits)


def _holder(ctx: Context, target: str) -> Context | None:
    """Return the context of the work tree that has `target` checked out; None if there is none."""
    main = ctx.main
    # Nearly always it is the project's own checkout, which needs no question to git.
    own = main.git_dir == ctx.git.common_dir and not worktrees.is_bare(main)
    if own and main.branch() == target:
        return ctx.at(main)
    holder = worktrees.holder(main, target)
    return None if not holder else ctx.at(Git.open(holder))


def _is_free(checkout: Context, old: str, new: str) -> bool:
    """Return whether this checkout has no changes of the user and no attempt in progress."""
    mend(checkout)
    top = str(checkout.git.top)
    if status.under_way(checkout.git) or any(task.worktree == top for task in checkout.ask().in_progress()):
        return False
    if checkout.git.head() == new and old != new:
        return True
    return not advance.obstacles(checkout.git, old, new, checkout.excluded_paths)


class Lost(NamedTuple):
    """Why an attempt has no base, what to do about it, and the command for that."""

    message: str
    hint: str
    command: str


def error(git: Git, branch: str | None) -> EnvSetupError:
    """Return the error for an attempt without a base: `branch` (full name) has no commit."""
    lost = why_lost(git, branch)
    return EnvSetupError(lost.message, f"{lost.hint}: {lost.command}")


def why_lost(git: Git, branch: str | None) -> Lost:
    """Return why `branch` (full name) has no commit."""
    branches = [name for name, _ in git.refs(HEADS)]
    name = short(branch or "HEAD")
    renamed = next((each for each in branches if branch and history.was_renamed(git, branch, each)), None)
    if branch and renamed:
        return Lost(
            f"The branch {name} is called {short(renamed)} now, and there is work for {name}.",
            "Give it its name back until the work is merged",
            typed.git("branch", "-m", short(renamed), name),
        )
    stood = _last_place(git, branch) if branch else None
    if branch and stood:
        return Lost(
            f"The branch {name} is gone; it stood at {stood[:12]}.",
            "Make it again",
            typed.git("branch", name, stood),
        )
    if branch and branches and branch != git.branch():
        return Lost(
            f"The branch {name} is gone, and there is work for it.",
            "Make it again at the commit of the last task that `harness log` says was completed",
            typed.git("branch", name, rest="COMMIT"),
        )
    if branches:
        other = short(branches[0])
        return Lost(
            f"The branch {name} of {git.top} has no commit; there are others, {other} for one.",
            "Go to one of them",
            typed.git("switch", other),
        )
    if git.has_commits():
        return Lost(
            f"{git.top} has no branch any more, but it has commits.",
            "Look for the last one (git log --all --reflog, or git fsck --lost-found), then",
            typed.git("branch", name, rest="COMMIT"),
        )
    return Lost(
        f"The repository {git.top} has no commit yet, so a failed attempt could not be rolled back.",
        "Commit your files first; if there are none yet, an empty commit will do",
        _first_commit(git),
    )


def _first_commit(git: Git) -> str:
    """Return the command that makes an empty commit, as `harness` where git does not know who commits."""
    command = ("commit", "--allow-empty", "-m", "Start")
    if git.run("var", "GIT_COMMITTER_IDENT", check=False).returncode == 0:
        return typed.git(*command)
    return typed.git("-c", "user.name=harness", "-c", f"user.email={NOBODY}", *command)


def _last_place(git: Git, branch: str) -> str | None:
    """Return the last known commit of `branch`, which is gone."""
    logged = history.last_of_checkout(git, branch)
    if logged is None or not git.exists(logged):
        return None
    # That of the previous branch; the new one may never have had a commit.
    is_anothers = git.text("for-each-ref", "--contains", logged, "--count=1", HEADS)
    return None if is_anothers else logged


def upstream(git: Git, target: str) -> tuple[str, str] | None:
    """Return the remote of `target` and the full name of its branch there; None if it has none."""
    told = git.text("for-each-ref", "--format=%(upstream:remotename) %(upstream:remoteref)", target)
    remote, _, branch = told.partition(" ")
    return (remote, branch) if branch and remote not in ("", ".") else None


def to_push(git: Git, name: str) -> str:
    """Return what to type so that the branch called `name` has one on a remote."""
    remotes = git.text("remote").split()
    remote = "origin" if "origin" in remotes or not remotes else remotes[0]
    push = f"Push it once: {typed.git('push', '--set-upstream', remote, name)}"
    return push if remotes else f"Name a remote: {typed.git('remote', 'add', remote, rest='URL')}. {push}"


_TELLING = re.compile(
    r"^(remote|fatal|error|ssh):|rejected|refused|denied|verification failed|connection closed", re.IGNORECASE
)


def gist(output: str) -> str:
    """Return the lines of git's `output` that say what went wrong, as one line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line) and "failed to push some refs" not in line]
    words = "; ".join(telling or lines[-1:]) or "no message"
    return quoting.one_line(words).rstrip(".")

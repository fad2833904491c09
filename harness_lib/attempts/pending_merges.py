"""Tell a person why finished work waits on a branch of ours, and how to take it over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import target_branch
from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.errors import HarnessError
from harness_lib.system.git import fast_forward, merge, status, trees, worktrees
from harness_lib.system.git.repository import Git

# Of what is in the way of work that waits.
NAMED = 3
PATH_LENGTH = 200


def told(ctx: Context, wanted: str) -> str | None:
    """Return why work waits for a person and how to take it over, in a sentence; None if none does."""
    git, ours = ctx.git, target_branch.waiting(wanted)
    here, there = git.ref(wanted), git.ref(ours)
    if there is None or here is None or git.is_ancestor(there, here):
        return None
    reasons = "; ".join(_reasons(ctx, wanted, here, there))
    name = target_branch.short(ours)
    waits = f"Finished work waits on the branch {name}{reasons and f': {reasons}'}"
    return f"{waits}. Take it over with: {typed.git('merge', name)}"


def bring_over(ctx: Context, wanted: str, checked: str | None = None) -> str | None:
    """Bring what waits for `wanted` there if nothing is in the way; return a sentence if it has gone over.

    `checked`: as `target_branch.deliver` has it.
    """
    git, ours = ctx.git, target_branch.waiting(wanted)
    here, waited = git.ref(wanted), git.ref(ours)
    blocked = target_branch.deliver(ctx, wanted, checked)
    there = git.ref(wanted)
    if blocked or None in (here, waited, there) or here == there:
        return None
    log = typed.git("log", "--oneline", f"{here}..{there}")
    waited, now_on = target_branch.short(ours), target_branch.short(wanted)
    return f"What waited on the branch {waited} has gone to {now_on}: {log}"


def _reasons(ctx: Context, wanted: str, here: str, there: str) -> Iterator[str]:
    """Yield what keeps the work of `there` from going to `wanted`, which is at `here`."""
    if not ctx.git.is_ancestor(here, there):
        yield f"{target_branch.short(wanted)} has commits of its own"
    try:
        found = _obstacles(ctx, wanted, here, there)
    except (HarnessError, OSError):
        # A full disk, or a repository that one may only read: what waits is to be told there as well.
        return
    if found.refused:
        what = "that" if len(found.refused) == 1 else "them"
        yield (
            f"you have changes in {_listed(found.refused)}, for which git would not merge: "
            f"commit {what} first, or put {what} away"
        )
    if found.changed:
        yield f"you have changes in {_listed(found.changed)}"
    if found.standing:
        # A plain `git merge` would write over it where git ignores it.
        stands = "stands where it has a file" if len(found.standing) == 1 else "stand where it has files"
        what = "that" if len(found.standing) == 1 else "them"
        yield f"your own {_listed(found.standing)} {stands}: move {what} away first"


class _Obstacles(NamedTuple):
    """What of a person's keeps work from going to their checkout.

    `refused`: tracked files with changes, as long as they are there git merges nothing; `changed`: those that
    git would carry along; `standing`: files in the place of the work's.
    """

    refused: Sequence[str] = ()
    changed: Sequence[str] = ()
    standing: Sequence[str] = ()


def _obstacles(ctx: Context, wanted: str, here: str, there: str) -> _Obstacles:
    """Return what is in the way of the work of `there` in the checkout of `wanted`, which is at `here`."""
    holder = worktrees.holder(ctx.git, wanted)
    if holder is None:
        return _Obstacles()
    checkout = ctx.at(Git.open(holder))
    found = fast_forward.obstacles(checkout.git, here, there, checkout.keep_out)
    changed = set(status.changes(checkout.git, checkout.keep_out).tracked if found else ())
    refused = changed and changed.intersection(_merged(checkout.git, here, there))
    return _Obstacles(
        refused=[path for path in found if path in refused],
        changed=[path for path in found if path in changed and path not in refused],
        standing=[path for path in found if path not in changed],
    )


def _merged(git: Git, here: str, there: str) -> set[str]:
    """Return the files that must be without changes for `git merge` of `there` into `here`."""
    base = merge.parted(git, here, there)
    theirs = set(trees.difference(git, base or git.empty_tree(), there))
    if base == here:
        return theirs
    # A merge commit is made from the index, so nothing may stand in it.
    return theirs.union(trees.staged(git))


def _listed(paths: Sequence[str]) -> str:
    """Return the first of `paths` and how many more there are."""
    return quoting.named(paths, NAMED, PATH_LENGTH)

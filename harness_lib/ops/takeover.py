"""How a person takes over finished work that waits on a branch of ours, and why it waits."""

from __future__ import annotations

from collections.abc import Iterator

from harness_lib import typed
from harness_lib.errors import EnvSetupError, HarnessError
from harness_lib.ops import brief, target
from harness_lib.ops.context import Context
from harness_lib.system import advance, worktrees
from harness_lib.system.git import Git

# Of what is in the way of work that waits.
NAMED = 3
PATH_LENGTH = 200


def told(ctx: Context, wanted: str) -> str | None:
    """Return why work waits for a person and how to take it over, in a sentence; None if none does."""
    git, ours = ctx.git, target.waiting(wanted)
    here, there = git.ref(wanted), git.ref(ours)
    if there is None or here is None or git.is_ancestor(there, here):
        return None
    reasons = "; ".join(_reasons(ctx, wanted, here, there))
    name = target.short(ours)
    waits = f"Finished work waits on the branch {name}{reasons and f': {reasons}'}"
    return f"{waits}. Take it over with: {typed.git('merge', name)}"


def _reasons(ctx: Context, wanted: str, here: str, there: str) -> Iterator[str]:
    """Yield what keeps the work of `there` from going to `wanted`, which is at `here`."""
    if not ctx.git.is_ancestor(here, there):
        yield f"{target.short(wanted)} has commits of its own"
    try:
        changed, standing = _obstacles(ctx, wanted, here, there)
    except (HarnessError, OSError):
        # A full disk, or a repository that one may only read: what waits is to be told there as well.
        return
    if changed:
        yield f"you have changes in {_some(changed)}"
    if standing:
        # A plain `git merge` would write over it where git ignores it.
        stands = "stands where it has a file" if len(standing) == 1 else "stand where it has files"
        what = "that" if len(standing) == 1 else "them"
        yield f"your own {_some(standing)} {stands}: move {what} away first"


def _obstacles(ctx: Context, wanted: str, here: str, there: str) -> tuple[list[str], list[str]]:
    """Return the changed tracked files in the checkout of `wanted`, and the files in the way of the work."""
    holder = worktrees.holder(ctx.git, wanted)
    if holder is None:
        return [], []
    checkout = ctx.at(Git.open(holder))
    found = advance.obstacles(checkout.git, here, there, checkout.keep_out)
    changed = set(checkout.git.changes(checkout.keep_out).tracked if found else ())
    return [path for path in found if path in changed], [path for path in found if path not in changed]


def _some(paths: list[str]) -> str:
    """Return the first of `paths` and how many more there are."""
    return brief.some([brief.one_line(path, PATH_LENGTH) for path in paths], NAMED)


def all_told(ctx: Context) -> list[str]:
    """Return what `told` says of each branch for which work waits; nothing where there is no repository."""
    try:
        git = ctx.git
    except EnvSetupError:
        return []
    targets = [target.HEADS + ref.removeprefix(target.WAITING) for ref, _ in git.refs(target.WAITING)]
    return [waits for each in targets if (waits := told(ctx, each))]

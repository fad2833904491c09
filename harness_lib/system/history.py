"""Which commits a branch has since it stood somewhere, and which of them others have too."""

from __future__ import annotations

from harness_lib.system.git import Git


def lost_base(git: Git, base: str) -> bool:
    """Say whether HEAD no longer has `base` in its history: a reset, an amend, another root."""
    head = git.head()
    return head is not None and git.exists(base) and not git.is_ancestor(base, head)


def published(git: Git, base: str, tip: str) -> str:
    """Return the commit between `base` and `tip` before which a branch must not go back.

    A remote-tracking branch has it, or it is the merge that brought in what one has; `base` if there is none.
    """
    if tip == base or not git.is_ancestor(base, tip):
        return base
    ours = set(git.lines("rev-list", tip, "--not", base, "--remotes"))
    for line in git.lines("rev-list", "--first-parent", "--parents", tip, f"^{base}"):
        commit, first, *others = line.split(" ")
        if commit not in ours or any(_brings(git, other, base, first, ours) for other in others):
            return commit
    return base


def _brings(git: Git, merged: str, base: str, first: str, ours: set[str]) -> bool:
    """Say whether merging `merged` brought in a commit that is not `ours` alone."""
    return any(oid not in ours for oid in git.lines("rev-list", merged, "--not", base, first))


def since(git: Git, base: str, head: str) -> list[str]:
    """Return the commits of `head` that `base` lacks, newest first: short name and subject."""
    if base == head or not (git.exists(base) and git.exists(head)):
        return []
    return git.lines("log", "--encoding=UTF-8", "--format=%h %s", f"{base}..{head}")

"""Put commits on top of others in git's object store alone: no work tree, no index, no ref changes.

So nothing has to be undone after a crash, and any number of workers may do it at once. Conflicts get markers
with labels that `left` recognises.
`git merge-tree --write-tree` is a three-way merge of any two commits since git 2.38. The common ancestor that
it uses is made here as a commit, because `--merge-base` came later.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from harness_lib.system.git import status, trees
from harness_lib.system.git.calls import decode, encode, failure
from harness_lib.system.git.repository import Git

_CONFLICTS = 1
_AUTHOR = re.compile(rb"^author (.*) <(.*)> (\d+ [+-]\d{4})$", re.MULTILINE)
SIDE = "harness: one side of a merge"
_LABEL = "[0-9a-f]{40,64}"
# Their number is the attribute conflict-marker-size; the label may be followed by the name of a renamed file.
_LINES = "^(<+|>+) [0-9a-f]{40}"
_LINE = re.compile(rf"^(?:<+|>+) ({_LABEL})(?::.*)?\r?$".encode(), re.MULTILINE)
# Markers of any merge, in a file that git has as unmerged.
_BEGIN = re.compile(rb"^<{7,}(?: |\r?$)", re.MULTILINE)
_NAME = re.compile(rf"~({_LABEL})(?:_\d+)?(?:/|$)")


class Picked(NamedTuple):
    """The result of a pick: the new tip, or the files in conflict and a `tree` with conflict markers."""

    tip: str
    conflicts: tuple[str, ...] = ()
    tree: str = ""


def missing(git: Git, commit: str, tip: str, base: str) -> list[str]:
    """Return the commits of `commit` that neither `tip` nor `base` has, oldest first."""
    if commit in (tip, base):
        return []
    return git.text("rev-list", "--reverse", "--topo-order", commit, f"^{tip}", f"^{base}").split()


def pick(git: Git, commit: str, tip: str, message: str, base: str) -> Picked:
    """Put the commits of `commit` that `tip` lacks on top of `tip`.

    One by one, with authors and messages; as a single commit with `message` if there are merges among them,
    or one conflicts. Commits of `base`, which the work began with, are left out.
    """
    if commit != base and git.parent(commit) == tip:
        return Picked(commit)
    commits = missing(git, commit, tip, base)
    if not commits:
        return Picked(tip)
    # Otherwise what it began with would come along, such as the rest of a batch that was not pushed.
    if git.is_ancestor(tip, commit) and (base == tip or git.is_ancestor(base, tip)):
        return Picked(commit)
    with_one_parent = git.text("rev-list", "--min-parents=1", "--max-parents=1", "--no-walk", *commits)
    if len(with_one_parent.split()) == len(commits):
        done = _one_by_one(git, commits, tip)
        if not done.conflicts:
            return done
    # The whole difference, as one commit.
    base = begun(git, commit, tip, base)
    theirs = git.commit(git.tree_of(commit), [base], message)
    merged = _merged(git, base, theirs, tip)
    if merged.conflicts or merged.tree == git.tree_of(tip):
        return merged
    return Picked(git.commit(merged.tree, [tip], message))


def join(git: Git, ours: str, theirs: str, message: str) -> str | None:
    """Return the commit with both, a merge of them if neither has the other; None if they do not go together.

    They conflict then, or have no common history. For the same two commits it is always the same: work that
    began on it stays on top of it.
    """
    base = parted(git, ours, theirs)
    if base in (None, ours, theirs):
        return base and (theirs if base == ours else ours)
    merged = _three_way(git, ours, theirs, ours)
    if merged.conflicts:
        return None
    newest = max(git.text("log", "--no-walk", "--format=%ct", ours, theirs).split(), key=int)
    when = {f"GIT_{role}_DATE": f"{newest} +0000" for role in ("AUTHOR", "COMMITTER")}
    return git.commit(merged.tree, [ours, theirs], message, env=when)


def begun(git: Git, commit: str, tip: str, base: str) -> str:
    """Return the commit from which `commit` differs by the work for `tip`.

    The work began with `base`. If `tip` lacks that (a merge was made again, for example), only the difference
    from `base` is the work.
    """
    common = parted(git, commit, tip)
    if common is None or (git.is_ancestor(base, commit) and git.is_ancestor(common, base)):
        return base
    return common


def parted(git: Git, commit: str, tip: str) -> str | None:
    """Return the merge base of the two; None if they have no common history."""
    result = git.run("merge-base", commit, tip, check=False)
    return os.fsdecode(result.stdout).strip() or None


def differing(git: Git, base: str, tree: str, tip: str) -> Picked:
    """Put the difference between `base` (a commit) and `tree` on top of `tip`, without a commit.

    `tree` of the result is the content, with conflict markers that `left` recognises.
    """
    return _three_way(git, side(git, git.tree_of(tip), base), side(git, tree, base), tip)


def _one_by_one(git: Git, commits: list[str], tip: str) -> Picked:
    for commit in commits:
        merged = _merged(git, git.text("rev-parse", f"{commit}^"), commit, tip)
        if merged.conflicts:
            return merged
        if merged.tree != git.tree_of(tip):
            tip = like(git, commit, merged.tree, [tip], f"{git.message(commit)}\n")
    return Picked(tip)


def _merged(git: Git, base: str, theirs: str, tip: str) -> Picked:
    """Merge the step from `base` to `theirs` into the content of `tip`."""
    ours = tip
    if parted(git, tip, theirs) != base:
        ours = git.commit(git.tree_of(tip), [base], "harness: a base to merge from")
    return _three_way(git, ours, theirs, tip)


def _three_way(git: Git, ours: str, theirs: str, tip: str) -> Picked:
    args = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
    result = git.run(*args, check=False)
    if result.returncode not in (0, _CONFLICTS):
        raise failure(args, result.returncode, result.stderr)
    tree, *paths = decode(result.stdout)
    return Picked(tip, tuple(dict.fromkeys(paths)), tree)


def like(git: Git, commit: str, tree: str, parents: Sequence[str], message: str) -> str:
    """Return a commit of `tree` on `parents` with `message` and the author of `commit`."""
    raw = git.run("cat-file", "commit", commit).stdout
    author = _AUTHOR.search(raw)
    who = (
        {
            "GIT_AUTHOR_NAME": os.fsdecode(author[1]),
            "GIT_AUTHOR_EMAIL": os.fsdecode(author[2]),
            "GIT_AUTHOR_DATE": os.fsdecode(author[3]),
        }
        if author
        else {}
    )
    return git.commit(tree, parents, message, env=who)


def side(git: Git, tree: str, base: str) -> str:
    """Return a commit of `tree` on `base` that is the label of one side in conflict markers."""
    return git.commit(tree, [base], SIDE)


def left(git: Git, old: str, new: str) -> list[str]:
    """Return the files of the tree `new` with conflict markers of harness that the tree `old` lacks."""
    moved = trees.changed(git, old, new)
    if not moved:
        return []
    named = {
        path
        for path, (_, entry) in moved.items()
        if entry and any(_is_ours(git, x) for x in _NAME.findall(path))
    }
    args = ("--no-renames", "--name-only", "--no-textconv", f"-G{_LINES}", old, new)
    candidates = {*decode(git.run("diff-tree", "-r", "-z", *args).stdout), *_merged_unseen(git, list(moved))}
    marked = {
        path
        for path in candidates
        if any(_is_ours(git, label) for label in _labels(git, new, path) - _labels(git, old, path))
    }
    return sorted(named | marked)


def unresolved(git: Git, tree: str) -> list[str]:
    """Return the files of `tree` that are unmerged in the index, and have conflict markers."""
    contents = {
        path: git.run("cat-file", "blob", f"{tree}:{path}", check=False).stdout
        for path in status.unmerged(git)
    }
    return sorted(path for path, content in contents.items() if _BEGIN.search(content))


def _merged_unseen(git: Git, paths: list[str]) -> list[str]:
    """Return those of `paths` that git merges as text but does not diff: lock files, often."""
    if not paths:
        return []
    answer = git.run("check-attr", "-z", "--stdin", "diff", "merge", stdin=encode(paths), check=False)
    fields = decode(answer.stdout)
    attributes = {
        (path, name): value for path, name, value in zip(*(fields[n::3] for n in range(3)), strict=False)
    }
    return [
        path for path in paths if attributes.get((path, "diff")) == "unset" != attributes.get((path, "merge"))
    ]


def _labels(git: Git, tree: str, path: str) -> set[str]:
    content = git.run("cat-file", "blob", f"{tree}:{path}", check=False).stdout
    return {os.fsdecode(label) for label in _LINE.findall(content)}


def _is_ours(git: Git, label: str) -> bool:
    return git.exists(label) and git.message(label) == SIDE

"""Tell conflict marks that we have written from those that a project keeps on purpose.

Git writes the names of both sides behind the marks, and into the names of files that would not fit.
Ours are commits that were made for that one merge, so whoever reads such a name later knows from the commit
whose marks they are.
"""

from __future__ import annotations

import os
import re

from harness_lib.system.git import hidden, trees
from harness_lib.system.git.calls import decode, encode
from harness_lib.system.git.repository import Git

SIDE = "harness: one side of a merge"

_LABEL = "[0-9a-f]{40,64}"
# As many as the attribute conflict-marker-size says; behind the name the file's, where it was renamed.
_LINES = "^(<+|>+) [0-9a-f]{40}"
_LINE = re.compile(rf"^(?:<+|>+) ({_LABEL})(?::.*)?\r?$".encode(), re.MULTILINE)
# Those of any merge, in a file of which git knows that it is in conflict.
_BEGIN = re.compile(rb"^<{7,}(?: |\r?$)", re.MULTILINE)
_NAME = re.compile(rf"~({_LABEL})(?:_\d+)?(?:/|$)")


def side(git: Git, tree: str, base: str) -> str:
    """Return a commit of `tree` on `base` that stands for one side of a merge with marks."""
    return git.commit(tree, [base], SIDE)


def left(git: Git, old: str, new: str) -> list[str]:
    """Return the files of the tree `new` that have marks of ours which they have not in the tree `old`."""
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
    """Return the files of `tree` that the index has as conflicts, and in which the marks of one stand."""
    contents = {
        path: git.run("cat-file", "blob", f"{tree}:{path}", check=False).stdout
        for path in hidden.unmerged(git)
    }
    return sorted(path for path, content in contents.items() if _BEGIN.search(content))


def _merged_unseen(git: Git, paths: list[str]) -> list[str]:
    """Return those of `paths` that git merges as text and shows no differences of: lock files, often."""
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

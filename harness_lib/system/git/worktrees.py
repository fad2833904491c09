"""Linked work trees of a repository: listed, moved and removed.

Source: git-worktree(1).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from harness_lib.errors import EnvSetupError
from harness_lib.system import flock, fs
from harness_lib.system.git import calls
from harness_lib.system.git.repository import Git

# Git may prune what another git is making, so harness makes and prunes one at a time.
LOCK = "harness-worktrees.lock"
_MAY_BE_BARE = re.compile(rb"include|bare(?!\s*=\s*false)", re.IGNORECASE)


class Linked(NamedTuple):
    """A work tree as git lists it; `branch` is the full name of its branch, None if HEAD is detached."""

    path: Path
    branch: str | None


def listed(git: Git) -> list[Linked]:
    """Return the work trees of the repository, the main one first; deleted ones, too."""
    linked = []
    # Of a submodule, or a git directory that stands apart, git lists that as the main one.
    main = git.top if git.git_dir == git.common_dir else None
    for record in os.fsdecode(git.run("worktree", "list", "--porcelain", "-z").stdout).split("\0\0"):
        facts = dict(line.partition(" ")[::2] for line in record.strip("\0").split("\0"))
        if "worktree" in facts and "bare" not in facts:
            linked.append(Linked(main or Path(facts["worktree"]), facts.get("branch")))
        main = None
    return linked


def holder(git: Git, branch: str) -> Path | None:
    """Return the work tree that has `branch` (full name) checked out or is rebasing it; None without."""
    trees = listed(git)
    having = (each.path for each in trees if each.branch == branch)
    # The main one has the common git directory. A rebase moves its branch when it ends, or is aborted.
    owned = [*((git.common_dir, each.path) for each in trees[:1]), *git.linked()]
    rebasing = (path for own, path in owned if _rebases(own, os.fsencode(branch)))
    return next(filter(Path.is_dir, (*having, *rebasing)), None)


def _rebases(own: Path, branch: bytes) -> bool:
    names = (calls.read(own / kind / "head-name") for kind in ("rebase-merge", "rebase-apply"))
    return branch in (name.strip() for name in names)


def is_hidden(git: Git, branch: str) -> bool:
    """Say whether the repository's own checkout has `branch`, and git does not list it.

    Somebody has set core.bare there, which makes git believe that it has none.
    """
    ask = ("symbolic-ref", "--quiet", "HEAD")
    head = git.run("--git-dir", str(git.common_dir), *ask, check=False).stdout
    has_files = (git.common_dir / "index").is_file()
    return has_files and os.fsdecode(head).strip() == branch and holder(git, branch) is None


def is_bare(git: Git) -> bool:
    """Return whether core.bare is set, so that git ignores the main checkout."""
    # A run asks for each merge, and asking git takes a process.
    settings = (calls.read(git.common_dir / name) for name in ("config", "config.worktree"))
    args = (f"--git-dir={git.common_dir}", "config", "--type=bool", "core.bare")
    is_possible = any(map(_MAY_BE_BARE.search, settings))
    return is_possible and git.run(*args, check=False).stdout.strip() == b"true"


def at(path: Path) -> Git | None:
    """Return the work tree around `path`; None if there is none that git may use."""
    try:
        return Git.open(path)
    except EnvSetupError:
        return None


def switch(git: Git, commit: str) -> None:
    """Detach HEAD at `commit`, with index and files. Raises GitError if a change prevents it."""
    git.run("checkout", "--quiet", "--detach", commit)


def remove(git: Git, path: Path) -> None:
    """Remove the work tree at `path`, ignored files included; the caller has kept what must be kept."""
    with flock.alone(git.common_dir / LOCK):
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            git.run("worktree", "remove", "--force", "--force", str(path), check=False)
            # Git refuses directories that are no longer work trees, for example.
            fs.remove_tree(path)
        git.run("worktree", "prune")

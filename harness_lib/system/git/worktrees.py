"""Linked work trees of a repository, and those of the workers of a run: made, found, moved and removed.

A worker's has an agent's clone as its `.git` (`clones.py`); the file `NAME.git` beside it points to harness's
own git directory of it. Source: git-worktree(1).
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

from harness_lib.errors import EnvSetupError
from harness_lib.system import flock, fs
from harness_lib.system.git import calls
from harness_lib.system.git.repository import Git
from harness_lib.system.place import find_root

# Git may prune what another git is making, so harness makes and prunes one at a time.
LOCK = "harness-worktrees.lock"
# In harness's git directory of a work tree: copies of repositories that an agent has in it.
NESTED = "harness-nested"
# git-crypt looks for its keys there, and knows no work trees.
KEYS = "git-crypt"
# Git's message if an object of a partial clone is missing.
PROMISED = "promisor remote"
CAPTURED = "refs/harness/captured/"
LOCKED = "harness: an agent works here"
# Where a git directory keeps what is rebased.
_REBASES = ("rebase-merge", "rebase-apply")
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
    notes = ((path, own / kind / "head-name") for own, path in owned for kind in _REBASES)
    rebasing = (path for path, note in notes if calls.read(note).strip() == os.fsencode(branch))
    return next(filter(Path.is_dir, (*having, *rebasing)), None)


def is_hidden(git: Git, branch: str) -> bool:
    """Return whether the repository's own checkout has `branch`, and git does not list it.

    Somebody has set core.bare there, which makes git believe that it has none.
    """
    ask = ("symbolic-ref", "--quiet", "HEAD")
    head = git.run("--git-dir", str(git.common_dir), *ask, check=False).stdout
    has_files = (git.common_dir / "index").is_file()
    return has_files and os.fsdecode(head).strip() == branch and not holder(git, branch)


def is_bare(git: Git) -> bool:
    """Return whether core.bare is set, so that git ignores the main checkout."""
    # A run asks for each merge, and asking git takes a process.
    settings = (calls.read(git.common_dir / name) for name in ("config", "config.worktree"))
    args = (f"--git-dir={git.common_dir}", "config", "--type=bool", "core.bare")
    is_possible = any(map(_MAY_BE_BARE.search, settings))
    return is_possible and git.run(*args, check=False).stdout.strip() == b"true"


def usable(path: Path) -> Git | None:
    """Return the work tree around `path`; None if there is none that git may use."""
    try:
        return Git.open(path)
    except EnvSetupError:
        return None


def switch(git: Git, commit: str) -> None:
    """Detach HEAD at `commit`, with index and files. Raises GitError if a change prevents it."""
    git.run("checkout", "--quiet", "--detach", commit)


def link(path: Path) -> Path:
    """Return the file beside the work tree `path` that points to harness's git directory of it."""
    return path.with_name(f"{path.name}.git")


def add(main: Git, path: Path, commit: str) -> Git:
    """Make a work tree at `path` with `commit` checked out; `renew` gives it a clone."""
    fs.make_directory(path.parent)
    later = ["--no-checkout"] * (keys := main.common_dir / KEYS).is_dir()
    with flock.alone(main.common_dir / LOCK):
        _unlock_lost(main, path.resolve().parent.parent)
        main.run("worktree", "prune")
        try:
            main.run("worktree", "add", "--quiet", "--force", "--detach", *later, str(path), commit)
        except calls.GitError as error:
            if PROMISED not in error.stderr:
                raise
            raise EnvSetupError(
                f"This clone is partial, and files that are missing here cannot be fetched: {error.stderr}",
                "Fetch them once while the remote can be reached (git checkout does), then: harness run",
            ) from error
        own = find_root.git_dir(str(path))
        assert own is not None, "BUG: git has made a work tree without a git directory."
        # So that git never prunes it, whatever an agent does with `.git`.
        fs.write(Path(own) / "locked", f"{LOCKED}\n".encode(), durable=False)
        (path / ".git").rename(link(path))
    git = Git(path.resolve(), Path(own), main.common_dir)
    if later:
        (git.git_dir / KEYS).symlink_to(keys)
        git.run("reset", "--quiet", "--hard")
    return git


def _unlock_lost(main: Git, workers: Path) -> None:
    """Let git prune work trees below `workers`, or locked by us, whose directories are gone.

    A git that is killed while it makes one leaves a lock of its own, whose reason is in the user's language.
    """
    for own, top in main.linked():
        is_ours = workers in top.parents or calls.read(own / "locked").startswith(LOCKED.encode())
        if is_ours and not top.exists():
            (own / "locked").unlink(missing_ok=True)


def drop_half_made(main: Git, workers: Path) -> None:
    """Remove work trees below `workers` that a killed git has left without a commit: nobody worked there.

    One that is being made gets its commit first.
    """
    with flock.alone(main.common_dir / LOCK):
        for own, top in main.linked():
            is_without = re.fullmatch(b"0+\n", calls.read(own / "HEAD"))
            if is_without and workers in top.parents and not os.path.lexists(link(top)):
                fs.remove_tree(top)
                fs.remove_tree(own)


def at(main: Git, path: Path) -> Git | None:
    """Return the work tree of a worker at `path`; None if there is none of this repository.

    One of a run of an earlier version has no clone: git knows it.
    """
    git = _linked(path) if os.path.lexists(link(path)) else usable(path)
    same = git is not None and (git.top, git.common_dir) == (path.resolve(), main.common_dir)
    return git if same else None


def around(path: Path, data: str) -> Git | None:
    """Return the work tree of a worker that `path` is in; `data` is the data directory."""
    found = find_root.worker(data, str(path))
    return None if found is None else _linked(Path(found))


def _linked(path: Path) -> Git | None:
    git_dir = find_root.pointed(str(link(path)), "gitdir: ", str(path))
    common = git_dir and find_root.pointed(f"{git_dir}/commondir", "", git_dir)
    if git_dir is None or not common or not path.is_dir():
        return None
    # Not resolved: the work tree may be a link by now.
    back = os.path.normpath(Path(git_dir, os.fsdecode((Path(git_dir) / "gitdir").read_bytes()).rstrip("\n")))
    top = path.resolve()
    return Git(top, Path(git_dir), Path(common)) if Path(back).parent == top else None


def has_clone(git: Git) -> bool:
    """Return whether the work tree was made by `add`: its `.git` is the agent's."""
    return os.path.lexists(link(git.top))


def is_agents(git: Git) -> bool:
    """Return whether repositories inside of this work tree are an agent's.

    No git process of harness may run in one: their settings start programs.
    """
    return has_clone(git) or git.git_dir.parent.name == NESTED


def remove(main: Git, path: Path) -> None:
    """Remove the work tree at `path`, ignored files included; the caller has kept what must be kept."""
    own = find_root.pointed(str(link(path)), "gitdir: ", str(path))
    if own is not None and Path(own).parent == main.common_dir / "worktrees":
        shutil.rmtree(own, ignore_errors=True)
        if main.ref(kept := f"{CAPTURED}{Path(own).name}"):
            main.delete_ref(kept)
    with flock.alone(main.common_dir / LOCK):
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            main.run("worktree", "remove", "--force", "--force", str(path), check=False)
            # Git refuses directories that are no longer work trees, for example.
            fs.remove_tree(path)
        main.run("worktree", "prune")
    for beside in (link(path), path.with_name(f"{path.name}.seen")):
        beside.unlink(missing_ok=True)


def hold_on(git: Git, oid: str) -> None:
    """Keep the captured content of a worker's work tree from `git gc`, until the next capture or its end.

    A check may run for long, and no other ref has what is committed if it passes.
    """
    if has_clone(git) and oid not in (git.head(), git.tree_of("HEAD")):
        git.set_ref(f"{CAPTURED}{git.git_dir.name}", oid)

"""Repositories inside a work tree: submodules and nested ones.

A commit of the work tree has at most the commit of such a repository, never its files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

from harness_lib.system import fs
from harness_lib.system.git import calls, clones, history, status, trees, worktrees
from harness_lib.system.git.repository import Git
from harness_lib.system.place import find_root

MODULES = ".gitmodules"
# The copy that becomes the `.git` of a moved submodule.
COMING = ".git-coming"


def at(git: Git, path: str) -> Git | None:
    """Return the nested repository at `path` (from the top); None if there is none that git can use."""
    place = git.top / path
    if not os.path.lexists(place / ".git"):
        return None
    repository = clones.as_data(git, place) if worktrees.is_agents(git) else worktrees.usable(place)
    return repository if repository and repository.top == place.resolve() else None


def untracked(git: Git) -> list[str]:
    """Return the repositories in the work tree, with commits or without, that its index lacks."""
    return among(status.changes(git))


def among(changes: status.Changes) -> list[str]:
    """Return the repositories in `changes`."""
    return [path.rstrip("/") for path in changes.untracked if path.endswith("/")]


@lru_cache(maxsize=64)
def links(git: Git, oid: str) -> Mapping[str, str]:
    """Return path → commit of the repositories that the tree, or the commit, called `oid` names."""
    args = ("ls-tree", "-r", "-z", "--full-tree", oid)
    return _links(git.run(*args).stdout, 2)


def staged(git: Git) -> Mapping[str, str]:
    """Return path → commit of the repositories that the index names."""
    return _staged_in(git, git.index_state())


@lru_cache(maxsize=32)
def _staged_in(git: Git, _index: bytes) -> Mapping[str, str]:
    args = ("ls-files", "-z", "--stage", "--full-name", ":/")
    return _links(git.run(*args).stdout, 1)


def _links(listing: bytes, column: int) -> dict[str, str]:
    # A large tree has mostly files: only the few others are decoded.
    records = [record for record in listing.split(b"\0") if record.startswith(trees.GITLINK.encode())]
    pairs = (record.partition("\t") for record in calls.decode(b"\0".join(records)))
    return {path: facts.split(" ")[column] for facts, _, path in pairs}


def left_behind(git: Git, merged: Collection[history.Step]) -> set[str]:
    """Return the submodules that are still at the commit of before one of the moves `merged`.

    Nothing is staged or changed in them, and they are at the commit that the branch named before: a move of
    the branch does not change the checkout of a submodule.
    """
    in_index, head = staged(git), git.head()
    known = links(git, head) if in_index and head else {}
    behind = set()
    for path in (path for path in in_index if in_index[path] == known.get(path)):
        repository = at(git, path)
        stands = repository.head() if repository else None
        if not repository or stands in (None, in_index[path]) or status.changes(repository).tracked:
            continue
        if any(git.ref(f"{move.old}:{path}") == stands != git.ref(f"{move.new}:{path}") for move in merged):
            behind.add(path)
    return behind


def is_submodule(git: Git, tree: str, path: str) -> bool:
    """Return whether `tree` has the address of the repository at `path`."""
    return path in _named(git, tree)


def fill(git: Git, commit: str, common: Path) -> None:
    """Check out the submodules of `commit` in this work tree, from the user's repositories.

    Each gets a clone of its own in the git directory of the work tree; nothing is fetched. One that the user
    lacks, or lacks at that commit, is not changed. `common` is the user's git directory.
    """
    clone = git.top / ".git" if worktrees.has_clone(git) else git.git_dir
    for path, (name, known) in _named(git, commit).items():
        source, place, own = _users_repository(common, name), git.top / path, clone / clones.MODULES / name
        if not source or not source.exists(known) or place.resolve() != git.top.resolve() / path:
            continue
        # The stat data of a submodule that is here already stays valid.
        index = (own / "index").read_bytes() if (own / "index").is_file() else None
        for old in (own, place / ".git"):
            clones.discard(old)
        clones.make(source, own, known)
        if index is not None:
            (own / "index").write_bytes(index)
        place.mkdir(exist_ok=True)
        (place / ".git").write_bytes(b"gitdir: " + os.fsencode(os.path.relpath(own, place)) + b"\n")
        repository = Git(place, own, own)
        repository.run("config", "core.worktree", os.path.relpath(place, own))
        repository.run("read-tree", "--reset", "-u", known)
        fill(repository, known, source.git_dir)


def lacking(git: Git, commit: str) -> dict[str, str]:
    """Return path → commit of the submodules of `commit` that the user has, but not at this commit."""
    found = {
        path: (_users_repository(git.common_dir, name), known)
        for path, (name, known) in _named(git, commit).items()
    }
    return {path: known for path, (source, known) in found.items() if source and not source.exists(known)}


def _named(git: Git, commit: str) -> dict[str, tuple[str, str]]:
    """Return path → (name, commit) of the submodules that `commit` names."""
    found = links(git, commit)
    args = ("config", "-z", "--blob", f"{commit}:{MODULES}", "--get-regexp", r"^submodule\..*\.path$")
    pairs = calls.decode(git.run(*args, check=False).stdout) if found else []
    names = {
        path: key.split(".", 1)[1].rpartition(".")[0] for key, _, path in (p.partition("\n") for p in pairs)
    }
    return {path: (names[path], found[path]) for path in found if path in names}


def _users_repository(common: Path, name: str) -> Git | None:
    """Return the user's repository of the submodule `name`; None if there is none."""
    place = common / clones.MODULES / name
    is_there = ".." not in place.parts and (place / "HEAD").is_file()
    return Git(place, place, place) if is_there else None


def is_published(repository: Git, commit: str) -> bool:
    """Return whether a remote of `repository` had `commit` at the last fetch."""
    asked = ("for-each-ref", "--count=1", "--contains", commit, "refs/remotes")
    return bool(repository.run(*asked, check=False).stdout)


def has_own_commits(repository: Git, known: str | None) -> bool:
    """Return whether HEAD, a branch or the stash of `repository` has unpublished commits beside `known`."""
    if repository.head() is None:
        return False
    but = ("--remotes", *([known] if known and repository.exists(known) else []))
    result = repository.run(
        "rev-list", "--max-count=1", "HEAD", "--branches", "--glob=refs/stas[h]", "--not", *but, check=False
    )
    return result.returncode != 0 or bool(result.stdout)


def is_broken(git: Git, path: str) -> bool:
    """Return whether the repository at `path` cannot be used by git, or is half moved."""
    place = git.top / path
    if not os.path.lexists(place / ".git"):
        return os.path.lexists(place / COMING)
    return not at(git, path)


def take_in(git: Git, path: str) -> None:
    """Move the git directory of the submodule at `path` from the linked work tree `git` to its files.

    It would be deleted with the linked work tree.
    """
    repository = at(git, path)
    if not repository:
        return
    take_all_in(repository)
    link, coming = repository.top / ".git", repository.top / COMING
    # A worker's clone has it in its own git directory, which is deleted as well.
    kept, own = (
        {git.git_dir / clones.MODULES, git.top / ".git" / clones.MODULES},
        find_root.git_dir(str(link.parent)),
    )
    if own is None or not link.is_file() or kept.isdisjoint(Path(own).parents):
        return
    # A copy, because the old one must work until the last two steps.
    shutil.rmtree(coming, ignore_errors=True)
    shutil.copytree(own, coming, symlinks=True)
    git.run("config", "--file", str(coming / "config"), "--unset", "core.worktree", check=False)
    link.unlink()
    coming.rename(link)


def take_all_in(git: Git) -> None:
    """Do `take_in` for every submodule of the work tree."""
    for path in staged(git):
        take_in(git, path)


def move(git: Git, path: str, to: Path) -> None:
    """Move the repository at `path` to `to`, all its commits with it."""
    take_in(git, path)
    fs.make_directory(to.parent)
    (git.top / path).rename(to)

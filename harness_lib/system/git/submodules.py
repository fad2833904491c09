"""Repositories inside a work tree: submodules, and those that somebody has made there.

A commit of the work tree names at most the commit that such a repository stands at, never its files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

from harness_lib.system.files import atomic
from harness_lib.system.git import clones, status, worktrees
from harness_lib.system.git.calls import decode
from harness_lib.system.git.repository import Git
from harness_lib.system.git.trees import GITLINK
from harness_lib.system.place import find_root

MODULES = ".gitmodules"
# What becomes the `.git` of a submodule that is moved.
COMING = ".git-coming"


def at(git: Git, path: str) -> Git | None:
    """Return the repository of its own at `path` (from the top); None if there is none that git can use."""
    place = git.top / path
    if not os.path.lexists(place / ".git"):
        return None
    repository = clones.as_data(git, place) if clones.is_agents(git) else worktrees.at(place)
    return repository if repository is not None and repository.top == place.resolve() else None


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
    # Most of a large tree are files: only the few others are worth decoding.
    records = [record for record in listing.split(b"\0") if record.startswith(GITLINK.encode())]
    pairs = (record.partition("\t") for record in decode(b"\0".join(records)))
    return {path: facts.split(" ")[column] for facts, _, path in pairs}


def left_behind(git: Git, merged: Collection[tuple[str, str]]) -> set[str]:
    """Return the submodules that stand where they did before one of `merged` (from, to) moved them on.

    Nothing is staged of them, nothing is changed in them, and they are at the very commit that the branch had
    named: a move of the branch does not touch a submodule's own checkout.
    """
    in_index, head = staged(git), git.head()
    known = links(git, head) if in_index and head else {}
    behind = set()
    for path in (path for path in in_index if in_index[path] == known.get(path)):
        repository = at(git, path)
        stands = repository.head() if repository is not None else None
        if repository is None or stands in (None, in_index[path]) or status.changes(repository).tracked:
            continue
        if any(_at(git, old, path) == stands != _at(git, new, path) for old, new in merged):
            behind.add(path)
    return behind


def _at(git: Git, commit: str, path: str) -> str | None:
    """Return what `commit` names at `path`."""
    return git.ref(f"{commit}:{path}")


def is_submodule(git: Git, tree: str, path: str) -> bool:
    """Say whether `tree` tells everybody where the repository at `path` can be had."""
    return path in _named(git, tree)


def fill(git: Git, commit: str, common: Path) -> None:
    """Check out the submodules that `commit` names in this work tree, from what the person has of them.

    Each gets a clone of its own, where git keeps it for that of the work tree, and nothing is fetched. One
    that the person has not, or not at that commit, stays as it is. `common` is the person's git directory.
    """
    clone = git.top / ".git" if clones.has_clone(git) else git.git_dir
    for path, (name, known) in _named(git, commit).items():
        source, place, own = _persons(common, name), git.top / path, clone / clones.MODULES / name
        if source is None or not source.exists(known) or place.resolve() != git.top.resolve() / path:
            continue
        # Of those that stand here already what git has noted of its files is still right.
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
    """Return path → commit of the submodules of `commit` that the person has, but not at this commit."""
    found = {
        path: (_persons(git.common_dir, name), known) for path, (name, known) in _named(git, commit).items()
    }
    return {path: known for path, (source, known) in found.items() if source and not source.exists(known)}


def _named(git: Git, commit: str) -> dict[str, tuple[str, str]]:
    """Return path → (name, commit) of the submodules that `commit` names."""
    found = links(git, commit)
    args = ("config", "-z", "--blob", f"{commit}:{MODULES}", "--get-regexp", r"^submodule\..*\.path$")
    pairs = decode(git.run(*args, check=False).stdout) if found else []
    names = {
        path: key.split(".", 1)[1].rpartition(".")[0] for key, _, path in (p.partition("\n") for p in pairs)
    }
    return {path: (names[path], found[path]) for path in found if path in names}


def _persons(common: Path, name: str) -> Git | None:
    """Return what the person has of the submodule `name`; None if that is nothing."""
    place = common / clones.MODULES / name
    is_there = ".." not in place.parts and (place / "HEAD").is_file()
    return Git(place, place, place) if is_there else None


def is_published(repository: Git, commit: str) -> bool:
    """Say whether a remote of `repository` had `commit` when it was last heard of."""
    asked = ("for-each-ref", "--count=1", "--contains", commit, "refs/remotes")
    return bool(repository.run(*asked, check=False).stdout)


def has_own_commits(repository: Git, known: str | None) -> bool:
    """Say whether HEAD, a branch or the stash of `repository` has what neither a remote nor `known` has."""
    if repository.head() is None:
        return False
    but = ("--remotes", *([known] if known and repository.exists(known) else []))
    result = repository.run(
        "rev-list", "--max-count=1", "HEAD", "--branches", "--glob=refs/stas[h]", "--not", *but, check=False
    )
    return result.returncode != 0 or bool(result.stdout)


def is_broken(git: Git, path: str) -> bool:
    """Say whether a repository stands at `path` that git cannot use, or half of one that is being moved."""
    place = git.top / path
    if not os.path.lexists(place / ".git"):
        return os.path.lexists(place / COMING)
    return at(git, path) is None


def take_in(git: Git, path: str) -> None:
    """Let the submodule at `path` keep its commits beside its files, where git keeps them for it in `git`.

    What git keeps of a linked work tree goes with that, and so would they.
    """
    repository = at(git, path)
    if repository is None:
        return
    take_all_in(repository)
    link, coming = repository.top / ".git", repository.top / COMING
    # A worker's clone has them in its own git directory, which goes as well.
    kept, own = (
        {git.git_dir / clones.MODULES, git.top / ".git" / clones.MODULES},
        find_root.git_dir(str(link.parent)),
    )
    if own is None or not link.is_file() or kept.isdisjoint(Path(own).parents):
        return
    # A copy, because until the two last steps are made what was there has to work as before.
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
    atomic.make_directory(to.parent)
    (git.top / path).rename(to)

"""Read, compare and edit git trees without a work tree.

Every edit is made in a private index in a scratch directory inside the git directory, so it is independent of
`index.lock`.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from harness_lib.system.git.calls import covers, decode, encode
from harness_lib.system.git.repository import Git

GITLINK = "160000"
SYMLINK = "120000"
REMOVED = "0"
# For a private index: not split, not sparse, and any file name is allowed.
INDEX = tuple(
    word
    for setting in ("splitIndex", "protectNTFS", "protectHFS", "sparseCheckout")
    for word in ("-c", f"core.{setting}=false")
)
# Mode and object of one file in a tree, as git writes them.
Entry = tuple[str, str]
PREFIX = "harness-scratch-"
STALE_SECONDS = 24 * 3600.0
Change = tuple[Entry | None, Entry | None]


@contextmanager
def scratch_directory(git: Git) -> Iterator[Path]:
    """Yield a new directory in the git directory, gone afterwards."""
    for old in git.git_dir.glob(PREFIX + "*"):
        # A killed process has left it: one lives for seconds, so a day is enough.
        with suppress(FileNotFoundError):
            if time.time() - old.stat().st_mtime > STALE_SECONDS:
                _remove(old)
    place = git.git_dir / f"{PREFIX}{os.urandom(8).hex()}"
    place.mkdir(0o700)
    try:
        yield place
    finally:
        _remove(place)


@contextmanager
def private_index(git: Git, *, copy: bool = False) -> Iterator[dict[str, str]]:
    """Yield the environment of a private index: empty, or with `copy` as the real one is now."""
    with scratch_directory(git) as place:
        private = place / "index"
        if copy:
            _copy(git.git_dir / "index", private)
        yield {"GIT_INDEX_FILE": str(private)}


def write_tree(git: Git, env: Mapping[str, str]) -> str:
    """Return the tree of the private index in `env`."""
    result = git.run(*INDEX, "write-tree", env=env, check=False)
    if result.returncode:
        # An excluded file is unmerged: `add` may not resolve it, so HEAD's version is used.
        unmerged = git.run("ls-files", "-u", "-z", env=env).stdout
        paths = dict.fromkeys(record.partition("\t")[2] for record in decode(unmerged))
        update(git, env, dict.fromkeys(paths))
        result = git.run(*INDEX, "write-tree", env=env)
    return os.fsdecode(result.stdout).strip()


def entries(git: Git, tree: str) -> dict[str, Entry]:
    """Return path → (mode, object) of everything in `tree` (or a commit), directories resolved."""
    listing = decode(git.run("ls-tree", "-r", "-z", "--full-tree", tree).stdout)
    by_path = {}
    for record in listing:
        facts, _, path = record.partition("\t")
        mode, _kind, oid = facts.split(" ")
        by_path[path] = (mode, oid)
    return by_path


def staged(git: Git) -> tuple[str, ...]:
    """Return the paths whose content or mode in the index is not that of HEAD."""
    return tuple(
        decode(git.run("diff-index", "--cached", "-z", "--name-only", "--no-renames", "HEAD").stdout)
    )


def unread(git: Git) -> dict[str, Entry]:
    """Return path → entry in the index of the files that git calls changed by their size, time or mode."""
    asked = ("diff-files", "-z", "--raw", "--no-abbrev", "--diff-filter=M", "--ignore-submodules=all")
    parts = decode(git.run(*asked).stdout)
    fields = [facts.removeprefix(":").split(" ") for facts in parts[::2]]
    return {path: (mode, oid) for (mode, _, oid, *_), path in zip(fields, parts[1::2], strict=True)}


def changed(git: Git, old: str, new: str) -> Mapping[str, Change]:
    """Return path → (old, new) entry of what differs between two trees or commits, by id; None is absent."""
    old, new = git.known_tree(old), git.known_tree(new)
    # Whoever captures, looks through, commits and merges a tree asks the same, in one work tree or another.
    return _changed(Git(git.common_dir, git.common_dir, git.common_dir), old, new) if old != new else {}


@lru_cache(maxsize=8)
def _changed(git: Git, old: str, new: str) -> Mapping[str, Change]:
    asked = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
    parts = decode(git.run(*asked).stdout)
    return dict(zip(parts[1::2], map(_sides, parts[::2]), strict=True))


def _sides(facts: str) -> Change:
    old_mode, new_mode, old_oid, new_oid, letter = facts.removeprefix(":").split(" ")
    return None if letter == "A" else (old_mode, old_oid), None if letter == "D" else (new_mode, new_oid)


def without(git: Git, tree: str, paths: Collection[str]) -> str:
    """Return `tree` without `paths` (files, or directories with all below them)."""
    names = frozenset(paths)
    dropped = [path for path in entries(git, tree) if covers(names, path)] if names else []
    return edited(git, tree, dict.fromkeys(dropped)) if dropped else tree


def with_from(git: Git, tree: str, source: str, paths: Collection[str]) -> str:
    """Return `tree` with `paths` (files or directories) as they are in `source`: changed, added or gone."""
    names = frozenset(paths)
    source_entries = {path: entry for path, entry in entries(git, source).items() if covers(names, path)}
    present = {path: entry for path, entry in entries(git, tree).items() if covers(names, path)}
    if source_entries == present:
        return tree
    return edited(git, tree, {**dict.fromkeys(present), **source_entries})


def edited(git: Git, tree: str, edits: Mapping[str, Entry | None]) -> str:
    """Return `tree` with `edits`; None removes."""
    with private_index(git) as env:
        git.run(*INDEX, "read-tree", tree, env=env)
        update(git, env, edits)
        return write_tree(git, env)


def update(git: Git, env: Mapping[str, str], edits: Mapping[str, Entry | None]) -> None:
    """Put `edits` into the index in `env` (default: that of the work tree); None removes."""
    # Removals first: a file may replace a directory, and the other way round.
    ordered = sorted(edits.items(), key=lambda edit: edit[1] is not None)
    zeros = "0" * len(next((entry[1] for _, entry in ordered if entry), "0" * 40))
    lines = [
        f"{REMOVED} {zeros}\t{path}" if not entry else f"{entry[0]} {entry[1]}\t{path}"
        for path, entry in ordered
    ]
    git.run(*INDEX, "update-index", "-z", "--index-info", env=env, stdin=encode(lines))


def write(git: Git, files: Mapping[str, Entry]) -> str:
    """Return the tree of exactly `files`."""
    with private_index(git) as env:
        update(git, env, files)
        return write_tree(git, env)


def blobs(git: Git, names: Sequence[str]) -> Iterator[bytes | None]:
    """Yield the content of each blob, named by its id or as `COMMIT:PATH`; None if it is not a blob."""
    output = (
        git.run("cat-file", "--batch", stdin=os.fsencode("".join(f"{name}\n" for name in names))).stdout
        if names
        else b""
    )
    at = 0
    for _ in names:
        line = output.index(b"\n", at)
        # An object is preceded by its id, type and size; a missing one is only named.
        facts = output[at:line].rsplit(b" ", 2)
        is_there = facts[-1].isdigit()
        end = line + 1 + int(facts[-1]) if is_there else line
        yield output[line + 1 : end] if is_there and facts[1] == b"blob" else None
        at = end + 1


def sizes(git: Git, oids: Iterable[str]) -> dict[str, int]:
    """Return the sizes of blobs in bytes."""
    asked = "".join(f"{oid}\n" for oid in dict.fromkeys(oids))
    if not asked:
        return {}
    answer = git.run("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=asked.encode()).stdout
    return {oid: int(size) for oid, _, size in (line.partition(" ") for line in answer.decode().splitlines())}


def _remove(place: Path) -> None:
    # It usually has one file, and shutil takes long to load.
    try:
        for path in place.iterdir():
            path.unlink()
        place.rmdir()
    except OSError:
        shutil.rmtree(place, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    """Copy an index, if there is one, with its mtime.

    Git does not trust the stat data of a file as young as the index: with a younger copy it would trust a
    file that was changed in the same tick.
    """
    try:
        stream = source.open("rb")
    except FileNotFoundError:
        return
    with stream:
        facts = os.fstat(stream.fileno())
        target.write_bytes(stream.read())
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))

"""The content of a work tree as git objects, taken without touching its index, HEAD or files.

Everything happens in a private index in a scratch directory inside the git directory, so a snapshot neither
needs nor minds git's own `index.lock`.
Source: design section 6, "private index, `write-tree`".
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness_lib.system.git import Git, GitError, covers, decode, encode

SCRATCH = "harness-scratch-"
STALE_SCRATCH_SECONDS = 24 * 3600.0

GITLINK = "160000"
SYMLINK = "120000"
REMOVED = "0"

# For a private index: always whole, and any name a disk can hold is welcome in it.
INDEX = ("-c", "core.splitIndex=false", "-c", "core.protectNTFS=false", "-c", "core.protectHFS=false")

Entry = tuple[str, str]
"""Mode and object of one file in a tree, as git writes them."""

# What `add --ignore-errors` says of what it passes over: unreadable files, repositories without a commit, and
# FIFOs or sockets in the place of a tracked file.
_UNREADABLE = re.compile(rb"^error: unable to index file '(.*?)'$", re.MULTILINE | re.DOTALL)
_PASSED_OVER = (
    b"unable to index file",
    b"open(",
    b"does not have a commit",
    b"can only add",
    b"adding files failed",
)


@dataclass(frozen=True)
class Before:
    """What was untracked before: kept in `tree`, or too large or unreadable and only named there.

    `private` are those of the kept files that only their owner may open: git would forget it.
    """

    tree: str
    protected: tuple[str, ...] = ()
    unprotected: tuple[str, ...] = ()
    private: tuple[str, ...] = ()

    @property
    def paths(self) -> frozenset[str]:
        """Everything that was untracked."""
        return frozenset((*self.protected, *self.unprotected))


@contextmanager
def scratch(git: Git) -> Iterator[Path]:
    """Yield a new directory beside git's own files, gone afterwards."""
    _sweep(git.git_dir)
    place = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=git.git_dir))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _sweep(directory: Path) -> None:
    """Remove what killed processes left; a scratch directory lives for seconds, so a day is beyond doubt."""
    for old in directory.glob(SCRATCH + "*"):
        try:
            stale = time.time() - old.stat().st_mtime > STALE_SCRATCH_SECONDS
        except FileNotFoundError:
            continue
        if stale:
            shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _index(git: Git, *, copy: bool = False) -> Iterator[dict[str, str]]:
    """Yield the environment of a private index: empty, or with `copy` as the real one is now."""
    with scratch(git) as place:
        private = place / "index"
        if copy and (git.git_dir / "index").exists():
            # With its mtime: git trusts no file as young as its index, and a younger copy would make it
            # trust one that was changed within the same tick.
            shutil.copy2(git.git_dir / "index", private)
        yield {"GIT_INDEX_FILE": str(private)}


# -- the work tree ----------------------------------------------------------------------------------------


def capture(
    git: Git, keep_out: Sequence[str] = (), *, base: str | None = None, before: Before | None = None
) -> str:
    """Return the tree of the work tree as it is: tracked and untracked, not ignored; `keep_out` as in HEAD.

    With `base` and `before`, files that those know are in it even where they are ignored by now: whoever
    wants to put the old content back must have saved the new one.
    An untracked file that cannot be read is left out; GitError if it is a tracked one.
    A submodule or nested repository is the commit it stands at, never its content.
    """
    with _index(git, copy=True) as env:
        spec = [f":(top,exclude,literal){path}" for path in keep_out]
        args = (*INDEX, "add", "-A", "--ignore-errors", "--", ":/", *spec)
        added = git.run(*args, env=env, check=False)
        if added.returncode:
            _excuse(git, env, args, added.returncode, added.stderr)
        tree = _write_tree(git, env)
        hidden = _hidden(git, tree, keep_out, base, before)
        if hidden:
            git.run(
                *INDEX, "update-index", "--add", "--replace", "-z", "--stdin", env=env, stdin=encode(hidden)
            )
            tree = _write_tree(git, env)
    return _as_in_head(git, tree, keep_out)


def _excuse(git: Git, env: Mapping[str, str], args: Sequence[str], code: int, stderr: bytes) -> None:
    """Raise GitError unless everything that could not be added is untracked, or no content at all."""
    errors = [line for line in stderr.splitlines() if line.startswith((b"error:", b"fatal:"))]
    if not all(any(words in line for words in _PASSED_OVER) for line in errors):
        raise GitError(args, code, stderr)
    names = [os.fsdecode(name) for name in _UNREADABLE.findall(stderr)]
    known = git.run("--literal-pathspecs", "ls-files", "-z", "--", *names, env=env).stdout if names else b""
    if any(_is_content(git.top / name) for name in decode(known)):
        raise GitError(args, code, stderr)


def _is_content(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _write_tree(git: Git, env: Mapping[str, str]) -> str:
    result = git.run(*INDEX, "write-tree", env=env, check=False)
    if result.returncode:
        # A file of `keep_out` is in a merge conflict: `add` was not allowed to settle it, HEAD's will stand.
        unmerged = git.run("ls-files", "-u", "-z", env=env).stdout
        paths = dict.fromkeys(record.partition("\t")[2] for record in decode(unmerged))
        _update(git, env, dict.fromkeys(paths))
        result = git.run(*INDEX, "write-tree", env=env)
    return os.fsdecode(result.stdout).strip()


def _hidden(
    git: Git, tree: str, keep_out: Sequence[str], base: str | None, before: Before | None
) -> list[str]:
    """Return files that `base` or `before` know and `tree` lacks although they stand on disk."""
    missing: set[str] = set()
    if base is not None:
        listing = git.run(
            "diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=D", base, tree
        )
        missing.update(decode(listing.stdout))
    if before is not None and before.protected:
        missing.update(set(before.protected).difference(entries(git, tree)))
    return sorted(
        path
        for path in missing
        if not covers(keep_out, path) and not obstructed(git.top, path) and _is_content(git.top / path)
    )


def obstructed(top: Path, path: str) -> bool:
    """Say whether a file cannot stand at `path`: a directory does, or something above it is no directory."""
    at = top
    for part in path.split("/")[:-1]:
        at /= part
        if at.is_symlink() or (at.exists() and not at.is_dir()):
            return True
    last = top / path
    return last.is_dir() and not last.is_symlink()


def _as_in_head(git: Git, tree: str, keep_out: Sequence[str]) -> str:
    if not keep_out:
        return tree
    compare = ("--literal-pathspecs", "diff-tree", "--quiet", "HEAD", tree, "--", *keep_out)
    answer = git.run(*compare, check=False).returncode
    if answer == 0:
        return tree
    # Anything but 0 and 1: there is no HEAD yet.
    return with_from(git, tree, "HEAD" if answer == 1 else git.empty_tree(), keep_out)


# -- trees ------------------------------------------------------------------------------------------------


def entries(git: Git, tree: str) -> dict[str, Entry]:
    """Return path → (mode, object) of everything in `tree` (or a commit), directories resolved."""
    listing = decode(git.run("ls-tree", "-r", "-z", "--full-tree", tree).stdout)
    found = {}
    for record in listing:
        facts, _, path = record.partition("\t")
        mode, _kind, oid = facts.split(" ")
        found[path] = (mode, oid)
    return found


def difference(git: Git, old: str, new: str) -> tuple[str, ...]:
    """Return the paths whose content or mode differs between two trees or commits."""
    return tuple(decode(git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new).stdout))


def changed(git: Git, old: str, new: str) -> dict[str, tuple[Entry | None, Entry | None]]:
    """Return path → (old, new) entry of what differs between two trees or commits; None is absent."""
    parts = decode(git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new).stdout)
    found = {}
    for facts, path in zip(parts[::2], parts[1::2], strict=True):
        old_mode, new_mode, old_oid, new_oid, letter = facts.removeprefix(":").split(" ")
        found[path] = (
            None if letter == "A" else (old_mode, old_oid),
            None if letter == "D" else (new_mode, new_oid),
        )
    return found


def without(git: Git, tree: str, paths: Collection[str]) -> str:
    """Return `tree` less `paths` (files, or directories with all below them)."""
    names = frozenset(paths)
    dropped = [path for path in entries(git, tree) if covers(names, path)] if names else []
    return _edited(git, tree, dict.fromkeys(dropped)) if dropped else tree


def with_from(git: Git, tree: str, source: str, paths: Collection[str]) -> str:
    """Return `tree` with `paths` (files or directories) as they are in `source`: changed, added or gone."""
    names = frozenset(paths)
    wanted = {path: entry for path, entry in entries(git, source).items() if covers(names, path)}
    present = {path: entry for path, entry in entries(git, tree).items() if covers(names, path)}
    if wanted == present:
        return tree
    return _edited(git, tree, {**dict.fromkeys(present), **wanted})


def _edited(git: Git, tree: str, edits: Mapping[str, Entry | None]) -> str:
    with _index(git) as env:
        git.run(*INDEX, "read-tree", tree, env=env)
        _update(git, env, edits)
        return _write_tree(git, env)


def _update(git: Git, env: Mapping[str, str], edits: Mapping[str, Entry | None]) -> None:
    """Put `edits` into a private index; None removes."""
    # Removals first: a directory must be out of the way of a file, and the other way round.
    ordered = sorted(edits.items(), key=lambda edit: edit[1] is not None)
    zeros = "0" * len(next((entry[1] for _, entry in ordered if entry), "0" * 40))
    lines = [
        f"{REMOVED} {zeros}\t{path}" if entry is None else f"{entry[0]} {entry[1]}\t{path}"
        for path, entry in ordered
    ]
    git.run(*INDEX, "update-index", "-z", "--index-info", env=env, stdin=encode(lines))


def write(git: Git, files: Mapping[str, Entry]) -> str:
    """Return the tree of exactly `files`."""
    with _index(git) as env:
        _update(git, env, files)
        return _write_tree(git, env)


def commit(git: Git, tree: str, parents: Sequence[str], message: str) -> str:
    """Return a new commit of `tree`, unsigned, without hooks; no ref moves."""
    return git.commit(tree, parents, message)


# -- single files, byte for byte --------------------------------------------------------------------------


def hashed(git: Git, paths: Iterable[str], *, store: bool) -> dict[str, Entry]:
    """Return path → (mode, object) of the files that stand at `paths`; of a symlink, its target.

    Byte for byte: no line ending is converted and no filter runs. With `store`, git keeps the content.
    What is no file, or cannot be read, is left out.
    """
    modes = {path: mode for path in paths if (mode := _mode(git.top, path))}
    if not modes:
        return {}
    with scratch(git) as place:
        names = [
            _readable_copy(git.top / path, mode, place / str(n))
            for n, (path, mode) in enumerate(modes.items())
        ]
        write_it = ("-w",) if store else ()
        listing = b"".join(_quoted(name) + b"\n" for name in names)
        result = git.run("hash-object", *write_it, "--no-filters", "--stdin-paths", stdin=listing)
    oids = os.fsdecode(result.stdout).split()
    return {path: (mode, oid) for (path, mode), oid in zip(modes.items(), oids, strict=True)}


def _mode(top: Path, path: str) -> str | None:
    if path.endswith("/") or obstructed(top, path):
        return None
    try:
        mode = (top / path).lstat().st_mode
    except OSError:
        return None
    if stat.S_ISLNK(mode):
        return SYMLINK
    if not stat.S_ISREG(mode) or not os.access(top / path, os.R_OK):
        return None
    return "100755" if mode & stat.S_IXUSR else "100644"


def _readable_copy(path: Path, mode: str, copy: Path) -> Path:
    """Return a file with the content of `path`: hash-object would follow a symlink."""
    if mode != SYMLINK:
        return path
    copy.write_bytes(os.fsencode(os.readlink(path)))  # noqa: PTH115 (Path drops "./")
    return copy


def _quoted(path: Path) -> bytes:
    """Return `path` in git's C style: the list is read by lines, and a name may have a line break in it."""
    raw = os.fsencode(path)
    plain = set(range(0x20, 0x7F)) - {0x22, 0x5C}
    return b'"' + b"".join(bytes([c]) if c in plain else b"\\%03o" % c for c in raw) + b'"'


def capture_untracked(git: Git, paths: Sequence[str], limit_bytes_each: int, limit_total: int) -> Before:
    """Keep the content of untracked `paths` in a tree: `content`, and two directories of empty files.

    `private` names what only its owner may open, `unprotected` what is larger than `limit_bytes_each`, what no longer fits into
    `limit_total` (small files first), what cannot be read, and nested repositories.
    """
    chosen, total = [], 0
    for size, path in sorted((_size(git.top / path), path) for path in paths):
        if size <= limit_bytes_each and total + size <= limit_total:
            chosen.append(path)
            total += size
    kept = hashed(git, chosen, store=True)
    named = sorted({path.rstrip("/") for path in paths} - set(kept))
    files = {f"content/{path}": entry for path, entry in kept.items()}
    private = sorted(path for path, (mode, _) in kept.items() if mode != SYMLINK and _private(git.top / path))
    names = [*(f"unprotected/{path}" for path in named), *(f"private/{path}" for path in private)]
    if names:
        empty = git.text("hash-object", "-t", "blob", "-w", "--stdin")
        files |= dict.fromkeys(names, ("100644", empty))
    return Before(write(git, files), tuple(sorted(kept)), tuple(named), tuple(private))


def _private(path: Path) -> bool:
    try:
        return not path.lstat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    except FileNotFoundError:
        return False


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def read_untracked(git: Git, tree_or_commit: str) -> Before:
    """Return what `capture_untracked` had kept in this tree, or in the commit of it."""
    found: dict[str, list[str]] = {"content": [], "unprotected": [], "private": []}
    for path in entries(git, tree_or_commit):
        part, _, name = path.partition("/")
        found[part].append(name)
    content, unprotected, private = (tuple(names) for names in found.values())
    return Before(git.tree_of(tree_or_commit), content, unprotected, private)


def glob_tree(
    git: Git, globs: Sequence[str], cwd: str | Path | None = None, keep_out: Sequence[str] = ()
) -> str:
    """Return the tree of the files on disk, tracked or ignored or neither, that match git-style `globs`.

    The globs are relative to `cwd`, which is relative to the top (None: the top itself); a directory stands
    for all below it. Byte for byte, so two such trees differ exactly if a file does.
    """
    if not globs:
        return git.empty_tree()
    prefix = "" if cwd is None else os.path.relpath(git.top / cwd, git.top) + "/"
    specs = [f":(top,glob){os.path.normpath(prefix + glob.lstrip('/'))}" for glob in globs]
    listing = git.run("ls-files", "-z", "--cached", "--others", "--", *specs).stdout
    paths = [path for path in dict.fromkeys(decode(listing)) if not covers(keep_out, path)]
    return write(git, hashed(git, paths, store=True))

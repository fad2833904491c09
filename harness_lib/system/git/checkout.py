"""Put single files into a work tree, remove them, and read them byte for byte; touch nothing else.

Crash model: git writes a checked-out file in place; killed half-way it leaves a half file, which looks like a
user's edit. So a file is made elsewhere and renamed to its place: old or new, never between.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness_lib import sha256
from harness_lib.system.git.calls import encode
from harness_lib.system.git.repository import Git
from harness_lib.system.git.trees import INDEX, SYMLINK, Entry, blobs, scratch_directory

_DEFAULTS = {"core.autocrlf": "false", "core.eol": "native"}


def obstructed(top: Path, path: str) -> bool:
    """Return whether no file can be at `path`, because of `obstacle`."""
    return obstacle(top, path) is not None


def obstacle(top: Path, path: str) -> str | None:
    """Return what keeps a file from being at `path`: a directory there, or above it what is no directory.

    Neither may a path lead out of `top` or into `.git`: git reads trees with such forged names.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
        return path
    for end in range(1, len(parts)):
        at = top.joinpath(*parts[:end])
        if at.is_symlink() or (at.exists() and not at.is_dir()):
            return "/".join(parts[:end])
    last = top / path
    return path if last.is_dir() and not last.is_symlink() else None


def hashed(git: Git, paths: Iterable[str], *, store: bool) -> dict[str, Entry]:
    """Return path → (mode, object) of the files at `paths`; of a symlink, its target.

    Byte for byte: no line ending is converted and no filter runs. With `store`, git keeps the content.
    Other things than files, and unreadable files, are left out.
    """
    modes = {path: found for path in paths if (found := mode(git.top, path))}
    if not modes:
        return {}
    with scratch_directory(git) as place:
        names = [
            _readable_copy(git.top / path, kind, place / str(n))
            for n, (path, kind) in enumerate(modes.items())
        ]
        write_it = ("-w",) if store else ()
        listing = b"".join(quoted(name) + b"\n" for name in names)
        result = git.run("hash-object", *write_it, "--no-filters", "--stdin-paths", stdin=listing)
    oids = os.fsdecode(result.stdout).split()
    return {path: (kind, oid) for (path, kind), oid in zip(modes.items(), oids, strict=True)}


def mode(top: Path, path: str) -> str | None:
    """Return git's mode of the file at `path`; None if there is no readable file."""
    if path.endswith("/") or obstructed(top, path):
        return None
    try:
        bits = (top / path).lstat().st_mode
    except OSError:
        return None
    if stat.S_ISLNK(bits):
        return SYMLINK
    if not stat.S_ISREG(bits) or not os.access(top / path, os.R_OK):
        return None
    return "100755" if bits & stat.S_IXUSR else "100644"


def _readable_copy(path: Path, kind: str, copy: Path) -> Path:
    """Return a file with the content of `path`: hash-object would follow a symlink."""
    if kind != SYMLINK:
        return path
    copy.write_bytes(os.fsencode(os.readlink(path)))  # noqa: PTH115 (Path drops "./")
    return copy


def quoted(path: Path | str) -> bytes:
    """Return `path` in git's C style, for lists by line: a name may have a line break."""
    raw = os.fsencode(path)
    plain = set(range(0x20, 0x7F)) - {0x22, 0x5C}
    return b'"' + b"".join(bytes([c]) if c in plain else b"\\%03o" % c for c in raw) + b'"'


def hashed_by(
    git: Git, paths: Sequence[str], wanted: Mapping[str, str], differing: Sequence[str]
) -> dict[str, str]:
    """Return path → blob of the files at `paths` as git would commit them under the settings `wanted`.

    `differing` are the settings that have changed; a name with "=" cannot be given on a command line, so none
    has one. The blobs are kept.
    """
    words = []
    for key in differing:
        default = _DEFAULTS.get(key, "false" if key.endswith(".required") else "")
        words += ["-c", f"{key}={wanted.get(key, default)}"]
    # Relative to the top: git finds the attributes of a file by its path.
    listing = b"".join(quoted(path) + b"\n" for path in paths)
    result = git.run(*words, "hash-object", "-w", "--stdin-paths", stdin=listing)
    return dict(zip(paths, os.fsdecode(result.stdout).split(), strict=True))


BATCH = 64


def checkout(
    git: Git, files: Mapping[str, Entry], *, untouched: Callable[[str], bool] = lambda _path: True
) -> list[str]:
    """Put tracked `files` (path → mode, object) in their places; return those whose place is obstructed.

    Line endings and filters as in any checkout. `untouched` is called for each at the last moment; if it
    returns False, the file is not changed.
    """
    free = {path: entry for path, entry in files.items() if _is_free(git.top, path)}
    if free:
        with scratch_directory(git) as place:
            env = {"GIT_INDEX_FILE": str(place / "index")}
            listing = encode([f"{mode} {oid}\t{path}" for path, (mode, oid) in free.items()])
            git.run(*INDEX, "update-index", "-z", "--index-info", env=env, stdin=listing)
            prefix = f"--prefix={place}/files/"
            git.run(*INDEX, "checkout-index", "-z", "--stdin", prefix, env=env, stdin=encode(list(free)))
            for path, (mode, _) in free.items():
                if mode != SYMLINK:
                    _take_bits(place / "files" / path, mode, git.top / path)
                if untouched(path):
                    _move(place / "files" / path, git.top / path)
    return [path for path in files if path not in free]


def move(
    git: Git,
    put: Mapping[str, Entry],
    gone: Sequence[str],
    *,
    untouched: Callable[[str], bool] = lambda _path: True,
) -> list[str]:
    """Remove the files `gone`, then put `put` in their places; return those whose place is obstructed.

    In this order, as a directory may replace a file of its name, or the other way round. `untouched` as in
    `checkout`.
    """
    for path in filter(untouched, gone):
        remove(git.top, path)
    prune(git.top, gone)
    return checkout(git, put, untouched=untouched)


def apply(git: Git, moves: Mapping[str, tuple[Entry | None, Entry | None]]) -> list[str]:
    """Do `move` for a result of `trees.changed`: each path gets its second entry; None removes it."""
    put = {path: entry for path, (_, entry) in moves.items() if entry}
    return move(git, put, [path for path in moves if path not in put])


def write_exactly(git: Git, files: Mapping[str, Entry], modes: Mapping[str, int]) -> list[str]:
    """Put `files` in their places byte for byte, with these permissions where they are known.

    Return those whose place is obstructed.
    """
    free = {path: entry for path, entry in files.items() if _is_free(git.top, path)}
    if free:
        with scratch_directory(git) as place:
            copy = place / "file"
            for (path, (mode, _)), content in zip(free.items(), _contents(git, free.values()), strict=True):
                if mode == SYMLINK:
                    copy.symlink_to(os.fsdecode(content))
                else:
                    copy.write_bytes(content)
                    _take_bits(copy, mode, git.top / path)
                    if path in modes:
                        copy.chmod(modes[path])
                _move(copy, git.top / path)
    return [path for path in files if path not in free]


def restore_modes(git: Git, modes: Mapping[str, int]) -> None:
    """Give existing files these permissions."""
    for path, bits in modes.items():
        file = git.top / path
        if obstructed(git.top, path) or file.is_symlink() or not file.is_file():
            continue
        if stat.S_IMODE(file.stat().st_mode) != bits:
            file.chmod(bits)


def _is_free(top: Path, path: str) -> bool:
    """Return whether a file can be put at `path`; a directory without any file is removed for it."""
    if not obstructed(top, path + "/x"):
        _remove_if_hollow(top / path)
    return not obstructed(top, path)


def _remove_if_hollow(directory: Path) -> None:
    folders = []
    for folder, below, files in os.walk(directory):
        # os.walk counts a symlink to a directory among the directories.
        if files or any(Path(folder, name).is_symlink() for name in below):
            return
        folders.append(folder)
    for folder in reversed(folders):
        with _writable(Path(folder).parent):
            Path(folder).rmdir()


def remove(top: Path, path: str) -> None:
    """Remove the file or symlink at `path` (relative to `top`), if it exists."""
    if not obstructed(top, path):
        with _writable((top / path).parent):
            (top / path).unlink(missing_ok=True)


def prune(top: Path, paths: Iterable[str]) -> None:
    """Remove the directories above `paths` that are empty now; never one that a symlink leads to."""
    # Deepest first, and in the same order in every process: crash tests kill at each step.
    parents = {path.rpartition("/")[0] for path in paths}
    for directory in sorted(parents, key=lambda name: (len(name), name), reverse=True):
        at = directory
        while at and not obstructed(top, at + "/x") and _removed_if_empty(top / at):
            at = at.rpartition("/")[0]


def _removed_if_empty(directory: Path) -> bool:
    try:
        with _writable(directory.parent):
            directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _take_bits(copy: Path, mode: str, like: Path) -> None:
    """Give `copy` the permissions of `like`, if that exists, except those that `mode` decides."""
    if like.is_file() and not like.is_symlink():
        # git knows only one permission bit; an existing file keeps the others.
        copy.chmod(stat.S_IMODE(like.stat().st_mode) | stat.S_IRUSR)
    bits = stat.S_IMODE(copy.stat().st_mode)
    readable = (bits & 0o444) >> 2
    copy.chmod(bits | readable if mode == "100755" else bits & ~0o111)


def _move(source: Path, target: Path) -> None:
    """Rename `source` to `target`, whose directories are made; on another file system by a copy beside it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with _writable(target.parent):
        if source.lstat().st_dev != target.parent.stat().st_dev:
            # The same name each time, so that the next run replaces what a killed one left.
            name = sha256.digest(os.fsencode(target.name))[:16]
            neighbour = target.parent / f".harness-moving-{name}"
            neighbour.unlink(missing_ok=True)
            shutil.copy2(source, neighbour, follow_symlinks=False)
            source.unlink()
            source = neighbour
        source.replace(target)


@contextmanager
def _writable(directory: Path) -> Iterator[None]:
    """Make `directory` writable inside the block, if its owner had made it read-only."""
    try:
        mode = stat.S_IMODE(directory.stat().st_mode)
    except FileNotFoundError:
        mode = stat.S_IRWXU
    writable = mode | stat.S_IWUSR | stat.S_IXUSR
    if writable == mode:
        yield
        return
    directory.chmod(writable)
    try:
        yield
    finally:
        directory.chmod(mode)


def _contents(git: Git, files: Iterable[Entry]) -> Iterator[bytes]:
    """Yield the content of each object, with a bounded number of them in memory."""
    oids = [oid for _, oid in files]
    for start in range(0, len(oids), BATCH):
        yield from (content or b"" for content in blobs(git, oids[start : start + BATCH]))

"""Read single files of a work tree byte for byte, and the settings by which git converts them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness_lib.system.git.calls import decode
from harness_lib.system.git.repository import Git
from harness_lib.system.git.trees import SYMLINK, Entry, scratch_directory

_KEYS = r"^(filter\..*\.(clean|process|required)|core\.(autocrlf|eol))$"
_DEFAULTS = {"core.autocrlf": "false", "core.eol": "native"}


def obstructed(top: Path, path: str) -> bool:
    """Say whether a file cannot stand at `path`: a directory does, or something above it is no directory.

    Neither can one whose path leads out of `top` or into git's own directory: a tree in which somebody has
    forged such a name is readable for git.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
        return True
    at = top
    for part in parts[:-1]:
        at /= part
        if at.is_symlink() or (at.exists() and not at.is_dir()):
            return True
    last = top / path
    return last.is_dir() and not last.is_symlink()


def hashed(git: Git, paths: Iterable[str], *, store: bool) -> dict[str, Entry]:
    """Return path → (mode, object) of the files that stand at `paths`; of a symlink, its target.

    Byte for byte: no line ending is converted and no filter runs. With `store`, git keeps the content.
    What is no file, or cannot be read, is left out.
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


def stored(git: Git, content: bytes) -> str:
    """Let git keep `content`, and return the object."""
    return os.fsdecode(git.run("hash-object", "-w", "--stdin", stdin=content).stdout).strip()


def mode(top: Path, path: str) -> str | None:
    """Return the mode that git has for the file that stands at `path`; None if none can be read there."""
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
    """Return `path` in git's C style: the list is read by lines, and a name may have a line break in it."""
    raw = os.fsencode(path)
    plain = set(range(0x20, 0x7F)) - {0x22, 0x5C}
    return b'"' + b"".join(bytes([c]) if c in plain else b"\\%03o" % c for c in raw) + b'"'


def conversion_settings(git: Git) -> dict[str, str]:
    """Return key → value of these settings, as git has them from all its files; the last value counts."""
    records = decode(git.run("config", "-z", "--get-regexp", _KEYS, check=False).stdout)
    pairs = (record.partition("\n") for record in records)
    # A key that stands alone is a switch that is on.
    return {key: value if line_end else "true" for key, line_end, value in pairs}


def changed_settings(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the settings that differ."""
    return sorted(key for key in {*old, *new} if old.get(key) != new.get(key))


def hashed_by(
    git: Git, paths: Sequence[str], wanted: Mapping[str, str], differing: Sequence[str]
) -> dict[str, str]:
    """Return path → blob of the files at `paths` as git would commit them under the settings `wanted`.

    `differing`: those that are other ones now; none has a "=" in its name, which no command line can give to
    git. The blobs are kept.
    """
    words = []
    for key in differing:
        default = _DEFAULTS.get(key, "false" if key.endswith(".required") else "")
        words += ["-c", f"{key}={wanted.get(key, default)}"]
    # Relative to the top: by its path git knows what is to be done with a file.
    listing = b"".join(quoted(path) + b"\n" for path in paths)
    result = git.run(*words, "hash-object", "-w", "--stdin-paths", stdin=listing)
    return dict(zip(paths, os.fsdecode(result.stdout).split(), strict=True))

"""Read and write small files, read directories, and tell names from paths."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, TypeVar

from harness_lib.loop.piped import Json, as_object
from harness_lib.system import fs
from harness_lib.system.place import own_files

T = TypeVar("T")
# Unlike this, `Path.is_dir` raises an error without permission to look.
is_directory = os.path.isdir
# The longest name of a tool that hosts accept.
LONGEST = 64
_MOST_DIGITS = 18
# Characters: a clone may bring files of any size.
_MOST_READ = 16 * 1024 * 1024
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def read_conf(path: Path) -> dict[str, str]:
    """Return the values in the file `path`; none if it cannot be read. The first of equal keys counts."""
    return parse_conf(read_text(path))


def read_text(path: Path) -> str:
    """Return the text of the file `path`, of a huge one its beginning.

    It is "" if the file cannot be read, or is a pipe or a device.
    """
    try:
        if not path.is_file():
            return ""
        with path.open(encoding="utf-8-sig", errors="replace") as stream:
            return stream.read(_MOST_READ)
    except OSError:
        return ""


def parse_conf(text: str) -> dict[str, str]:
    """Return the values in `text`; lines without `=` and those that begin with `#` are skipped."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            values.setdefault(key.strip(), value.strip())
    return values


def number(text: str, default: int = 0) -> int:
    """Return the whole number in `text`, `default` for any other text, and for one with too many digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else default


def read_object(path: Path) -> Json:
    """Return the JSON object in the file `path`; an empty one if there is none."""
    return as_object(read_text(path)) or {}


def render_conf(values: dict[str, str]) -> str:
    """Return `values` as lines; a line break in a value would be another key, so it becomes a space."""
    return "".join(f"{key}={' '.join(value.splitlines())}\n" for key, value in values.items())


def visible_names(directory: str) -> list[str]:
    """Return the visible names in `directory`, sorted; none if it cannot be read."""
    try:
        return sorted(name for name in os.listdir(directory) if not name.startswith("."))
    except OSError:
        return []


def programs(directory: str) -> list[str]:
    """Return the names of the executable files in `directory`."""
    found = []
    for name in visible_names(directory):
        with suppress(OSError):
            path = os.path.join(directory, name)
            if stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK):
                found.append(name)
    return found


def directories(directory: str) -> list[str]:
    """Return the paths of the directories in `directory`."""
    return [path for name in visible_names(directory) if os.path.isdir(path := os.path.join(directory, name))]


def write(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a file that only its owner reads, in one step; makes its directory. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fs.write(path, data, durable=durable, mode=0o600)


def appending(path: str | Path) -> IO[bytes]:
    """Open the log `path` to append to it; no other user can read one that is made here. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "ab")


def end_of(path: Path, most: int) -> str:
    """Return the text at the end of the log `path`, at most so many bytes; "" if it cannot be read."""
    try:
        return own_files.tail(path, most).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def remembered(kept: dict[str, Any], path: Path, read: Callable[[Path], T]) -> T | None:
    """Return what `read` makes of the file `path`, called again only when it has changed; None without it."""
    known: dict[tuple[Path, str], tuple[object, T]] = kept.setdefault("remembered", {})
    stamp = fs.stamp(path)
    if not stamp:
        return None
    key = (path, f"{read.__module__}.{read.__qualname__}")
    if key not in known or known[key][0] != stamp:
        known[key] = stamp, read(path)
    return known[key][1]


def is_name(text: str) -> bool:
    """Return whether `text` names something in a directory and leads nowhere else."""
    return bool(text) and text not in {".", ".."} and not any(c == "/" or ord(c) < ord(" ") for c in text)


def for_hosts(text: str) -> str:
    """Return the name of a tool, or the id of a call, in the characters and the length that hosts accept."""
    return _OTHER.sub("_", text)[:LONGEST] or "_"


@lru_cache(maxsize=256)
def matcher(*patterns: str) -> Callable[[str], bool]:
    """Return a function that matches a path against `patterns` in the syntax of .gitignore."""
    import pathspec  # noqa: PLC0415 (only where there are rules about files)

    # A leading # or ! has no special meaning here.
    lines = [f"\\{each}" if each.startswith(("#", "!")) else each for each in patterns]
    return pathspec.GitIgnoreSpec.from_lines(lines).match_file

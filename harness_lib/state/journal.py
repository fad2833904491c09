"""The log of a project: what its lines look like, and the file, which is appended to and read from its end.

One line per call, whole or not at all: `O_APPEND` makes position and write one step, so that the lines of
several writers never mix. The file may have grown to gigabytes.
Source: docs/protocol.md, "Standardized Log Format"; docs/design.md, "On disk".
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from harness_lib import timestamps
from harness_lib.errors import EnvSetupError
from harness_lib.system import flock
from harness_lib.system.clock import Clock
from harness_lib.system.place import own_files
from harness_lib.task import CATEGORIES, Category, LogType
from harness_lib.text import cut, escape

_LINE = r"\[(?P<at>[^\]]*)\] \[SESSION-(?P<session>[0-9]{1,9})\] (?P<type>[A-Za-z]+)(?P<rest>.*)"
_TAG = r" \[([^\s\[\]]+)\]"


def line(
    kind: LogType,
    message: str,
    *,
    now: datetime,
    session: int,
    task: str | None = None,
    category: Category | None = None,
) -> str:
    """Return `[stamp] [SESSION-N] TYPE [task]? [category]? message`; `append` escapes line breaks."""
    parts = [f"[{timestamps.render(now)}]", f"[SESSION-{session}]", kind]
    parts += [f"[{tag}]" for tag in (task, category) if tag is not None]
    return " ".join([*parts, message]) if message else " ".join(parts)


class Entry(NamedTuple):
    """One parsed line of the log; a line outside the grammar has only `text`."""

    text: str
    at: str | None = None
    session: int | None = None
    type: str | None = None
    task: str | None = None
    category: str | None = None
    message: str = ""


def parse(text: str) -> Entry:
    """Parse a line as `line` makes it."""
    match = re.fullmatch(_LINE, text)
    if not match:
        return Entry(text, message=text)
    task, category, message = _tags(match["rest"])
    return Entry(text, match["at"], int(match["session"]), match["type"], task, category, message)


def _tags(rest: str) -> tuple[str | None, str | None, str]:
    """Return (task, category, message); a single tag is a category only if one has this name."""
    tags: list[str] = []
    at = 0
    while len(tags) < len(("task", "category")) and (match := re.compile(_TAG).match(rest, at)):
        if tags and match[1] not in CATEGORIES:
            break
        tags.append(match[1])
        at = match.end()
    message = rest[at:].strip()
    if len(tags) == 1 and tags[0] in CATEGORIES:
        return None, tags[0], message
    return (tags[0] if tags else None), (tags[1] if len(tags) > 1 else None), message


MAX_LINE = 4000
TAIL_BYTES = 1024 * 1024
POLL_SECONDS = 0.2
_BLOCK = 64 * 1024


def append(path: Path, line: str) -> None:
    """Add `line`, cut to MAX_LINE characters, to the log at `path`; make the file if needed.

    Begins a new line if the last one is unfinished (a torn write, an editor).
    Raises OSError; EnvSetupError if `path` is not a regular file.
    """
    data = cut(escape(line), MAX_LINE).encode("utf-8", "backslashreplace") + b"\n"
    descriptor = own_files.descriptor(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            message = f"The log is not a regular file: {path}"
            raise EnvSetupError(message, "Move it away; the next command makes a new log.")
        # On Linux readers see a write page by page: without the lock, a line being written looks torn.
        flock.take(descriptor)
        if is_torn(descriptor):
            data = b"\n" + data
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def tail(path: Path, lines: int = TAIL_BYTES) -> list[str]:
    """Return up to `lines` last lines without their ends, oldest first; [] if there is no file.

    At most TAIL_BYTES are read, and by default all lines in them are returned. Bytes that are not UTF-8
    become replacement characters.
    """
    try:
        with own_files.reading(path) as stream:
            if lines <= 0 or not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return []
            data, whole = _read_back(stream.fileno(), lines)
    except FileNotFoundError:
        return []
    rows = data.decode("utf-8", "replace").split("\n")
    if rows[-1] == "":
        rows.pop()
    # The first row began before the bytes that were read.
    return rows[-lines:] if whole or len(rows) > lines else rows[1:][-lines:]


def follow(path: Path, clock: Clock) -> Iterator[str]:
    """Yield each line added to `path` after the call, forever; polls every POLL_SECONDS.

    A file that replaces it is read from its start.
    """
    # Not a generator itself, so that lines count from the call and not from the first `next`.
    return _added(path, clock, *_identity(path))


def _added(path: Path, clock: Clock, identity: tuple[int, int] | None, offset: int) -> Iterator[str]:
    pending = b""
    while True:
        current, size = _identity(path)
        if current is not None and (current != identity or size < offset):
            identity, offset, pending = current, 0, b""
        chunk = _chunk(path, offset) if current and size > offset else b""
        offset += len(chunk)
        *complete, pending = (pending + chunk).split(b"\n")
        for raw in complete:
            yield raw.decode("utf-8", "replace")
        if not chunk:
            clock.sleep(POLL_SECONDS)


def is_torn(descriptor: int) -> bool:
    """Return whether the last line is unfinished; after an `echo >>` in progress an empty line remains."""
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _read_back(descriptor: int, lines: int) -> tuple[bytes, bool]:
    """Return the end of the file with `lines` lines, and whether that is the whole file."""
    start = end = os.fstat(descriptor).st_size
    blocks: list[bytes] = []
    newlines = 0
    while start > 0 and newlines <= lines and end - start < TAIL_BYTES:
        length = min(_BLOCK, start)
        start -= length
        block = os.pread(descriptor, length, start)
        newlines += block.count(b"\n")
        blocks.append(block)
    return b"".join(reversed(blocks)), start == 0


def _identity(path: Path) -> tuple[tuple[int, int] | None, int]:
    try:
        info = path.stat()
    except FileNotFoundError:
        return None, 0
    return (info.st_dev, info.st_ino), info.st_size


def _chunk(path: Path, offset: int) -> bytes:
    try:
        with own_files.reading(path) as stream:
            return os.pread(stream.fileno(), _BLOCK, offset)
    except FileNotFoundError:
        return b""

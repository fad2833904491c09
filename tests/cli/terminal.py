"""A terminal for `harness`: what is typed is started on it, and what it prints is read."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@contextmanager
def typed(cwd: Path, *argv: str, **env: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start `harness ARGV` with a terminal of 100 columns as standard output; yield it and our end."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40", **env}
    command = [sys.executable, "-m", "harness_lib", *argv]
    process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_to_end(ours: int) -> str:
    """Return all that is printed until the other side is closed."""
    said = b""
    while True:
        try:
            chunk = os.read(ours, 4096)
        except OSError:
            # How Linux says that nobody writes to this terminal any more.
            break
        if not chunk:
            break
        said += chunk
    return said.decode().replace("\r\n", "\n")


def read_until(ours: int, words: str) -> str:
    """Return what is printed up to `words`; pytest's own deadline ends a wait in vain."""
    said = b""
    while words.encode() not in said:
        said += os.read(ours, 4096)
    # What has been read may end within a character.
    return said.decode(errors="ignore")

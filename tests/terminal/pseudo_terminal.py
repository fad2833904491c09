"""A terminal for `harness`: what is typed runs on it, and what it prints is read."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from harness_lib.cli import main
from tests import lasting
from tests.system.git.gitrepo import put
from tests.verbs.project import placed

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def _with_harness() -> str:
    """Return a PATH that has a `harness`: without one, commands are shown with the launcher's path."""
    place = lasting.directory()
    program = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m harness_lib "$@"\n'
    put(place / "harness", program, executable=True)
    return f"{place}{os.pathsep}{os.environ['PATH']}"


# What a terminal of 100 columns tells a program of itself.
TERMINAL = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40", "PATH": _with_harness()}


def answered(cwd: Path, keys: str, *argv: str, **env: str) -> tuple[int, str]:
    """Type `harness ARGV` on a terminal, and `keys`; return the exit code and what it printed.

    It runs in this process, which is much cheaper than another one.
    """
    ours, theirs = pty.openpty()
    os.write(ours, keys.encode())
    stdin, out = os.fdopen(theirs, closefd=False), os.fdopen(theirs, "w", encoding="utf-8")
    with ThreadPoolExecutor() as pool, placed(cwd, {**TERMINAL, **env}):
        said = pool.submit(read_to_end, ours)
        with stdin, out, mock.patch.object(sys, "stdin", stdin), redirect_stdout(out), redirect_stderr(out):
            code = main.main(argv)
        printed = said.result()
    os.close(ours)
    return code, printed


def shown(cwd: Path, *argv: str, **env: str) -> str:
    """Return what `harness ARGV` prints on a terminal."""
    return answered(cwd, "", *argv, **env)[1]


@contextmanager
def typed(cwd: Path, *argv: str, **env: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start `harness ARGV` with a terminal of 100 columns as standard output; yield it and our end."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, **TERMINAL, **env}
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

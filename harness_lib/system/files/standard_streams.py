"""Repair the standard streams of a process: closed, full, or no longer read.

Python sets `sys.stdout` to None if a process starts with it closed, and exits with 120 if the buffer cannot
be written at the end.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys


def open_closed() -> None:
    """Open the null device for each standard stream that is closed, also one that this process has closed.

    Otherwise the next file that is opened gets its number, and child processes print into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None or stream.closed:
            # It gets the lowest free number, which is that of this stream: those before it are open by now.
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)  # noqa: FBT003 (it takes no names)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 (for good)


def take_any_character(instead: str) -> None:
    """Let stdout and stderr print what their encoding lacks, as the error handler `instead` replaces it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=instead)


def drop_unwritten() -> None:
    """Discard what stdout and stderr still have to write, if it cannot be written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            with contextlib.suppress(OSError):
                stream.flush()


def leave_terminal() -> None:
    """Redirect standard streams that are a terminal to the null device: the terminal was closed."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        # A closed terminal no longer says that it is one.
        if stat.S_ISCHR(os.fstat(descriptor).st_mode):
            os.dup2(nowhere, descriptor)
    os.close(nowhere)

"""A bug of ours: one line for the person, the traceback in a file that can be sent to us."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from harness_lib.system.files import atomic


def one_line(error: BaseException) -> str:
    """Return the one line that says what went wrong."""
    words = " ".join(str(error).split())
    return f"This is a bug in hs: {type(error).__name__}{f': {words}' if words else ''}."


def keep(error: BaseException, environ: Mapping[str, str]) -> str:
    """Write the traceback of `error` into the home of hs; say where it is."""
    import traceback  # noqa: PLC0415 (rarely needed)

    report = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    home = Path(environ.get("HARNESS_HOME") or Path(environ.get("HOME") or "~", ".harness").expanduser())
    path = home / f"bug-{os.getpid()}.txt"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic.write(path, report.encode("utf-8", "backslashreplace"), durable=False, mode=0o600)
    except OSError:
        return f"Please report it with these lines:\n{report.rstrip()}"
    return f"Please report it with {path}."

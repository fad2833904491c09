"""The task: the words of the command line, and what stands on standard input behind them."""

from __future__ import annotations

import os
import select
import stat
import sys

_WAIT_SECONDS = 3.0


def read(words: tuple[str, ...], *, wait: bool = False) -> str:
    """Return the task; what stands on standard input follows it.

    Beside words, input that does not begin within some seconds is left alone, unless one wants to `wait`:
    who starts hs from a program often leaves a pipe open that nobody will ever write to.
    """
    typed = " ".join(words)
    piped = sys.stdin.read() if _is_to_be_read(typed, wait=wait) else ""
    return "\n\n".join(part for part in (typed, piped.rstrip("\n")) if part.strip())


def _is_to_be_read(typed: str, *, wait: bool) -> bool:
    if sys.stdin is None or sys.stdin.isatty():
        return False
    if not typed.strip() or wait or not _is_pipe(sys.stdin.fileno()):
        return True
    if select.select([sys.stdin], [], [], _WAIT_SECONDS)[0]:
        return True
    print(
        f"hs: nothing came on standard input within {_WAIT_SECONDS:.0f} s, so it is not read; "
        "for input that takes its time add the word -",
        file=sys.stderr,
    )
    return False


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)

"""`hs` on a machine that is slow when a question is asked: a program, `slow_hs.py WHO ARGS`.

`work`: what is handed to the line that the user types in is drawn before the thread that has handed it over
goes on, and that sleeps from the question on until somebody opens the pipe `awake` to write.
`line`: as soon as there is a file `asking`, what is handed to the line waits until somebody has typed, which
the file `waits` says.
"""

from __future__ import annotations

import asyncio
import select
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prompt_toolkit.output.vt100 import Vt100_Output

from harness_lib.hs.main import entry

_hand_over = asyncio.BaseEventLoop.call_soon_threadsafe
_write = Vt100_Output.write_raw
_shown = threading.Event()
# Longer than the line waits before it draws again.
_DRAWN_SECONDS = 0.1


def _writes(output: Vt100_Output, text: str) -> None:
    _write(output, text)
    if "may bash run?" in text:
        _shown.set()


def _work_sleeps(
    loop: asyncio.BaseEventLoop, callback: Callable[..., Any], *args: Any, **options: Any
) -> Any:
    handle = _hand_over(loop, callback, *args, **options)
    if threading.current_thread() is threading.main_thread():
        done = threading.Event()
        _hand_over(loop, loop.call_later, _DRAWN_SECONDS, done.set)
        # Where the line is about to end, nobody says so.
        done.wait(1)
        if _shown.is_set():
            _shown.clear()
            Path("awake").open().close()
    return handle


def _line_waits(loop: asyncio.BaseEventLoop, callback: Callable[..., Any], *args: Any, **options: Any) -> Any:
    def late(*arguments: Any) -> None:
        Path("waits").touch()
        select.select([sys.stdin], [], [])
        callback(*arguments)

    slow = threading.current_thread() is threading.main_thread() and Path("asking").exists()
    if slow:
        Path("asking").unlink()
    return _hand_over(loop, late if slow else callback, *args, **options)


if __name__ == "__main__":
    _slow = _work_sleeps if sys.argv.pop(1) == "work" else _line_waits
    asyncio.BaseEventLoop.call_soon_threadsafe = _slow  # type: ignore[assignment,method-assign]
    Vt100_Output.write_raw = _writes  # type: ignore[assignment,method-assign]
    sys.exit(entry())

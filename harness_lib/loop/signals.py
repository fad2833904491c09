"""Handle signals so that none has to wait for a system call to end.

Python runs a handler between two steps of the main thread. A signal that comes after the last such step and
before the call that waits interrupts nothing: Ctrl-C would be seen when the pause is over, or the model has
answered. A thread hears of every signal at once and sends it again where no handler has run shortly after.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

AGAIN_SECONDS = 0.1

Handler = Callable[[int, FrameType | None], None]


class _Redelivery:
    """Sends a signal to the main thread again until its handler has run."""

    def __init__(self) -> None:
        self._handled = threading.Event()
        self._watched: set[int] = set()
        self._heard, write_end = os.pipe()
        os.set_blocking(write_end, False)
        # Python's own handler, which no call can hold back, writes the number of each signal there.
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, daemon=True).start()

    def watch(self, number: int) -> None:
        """Send `number` again where it is needed, from now on."""
        self._watched.add(number)

    def handled(self) -> None:
        """Note that a handler runs."""
        self._handled.set()

    def _watch(self) -> None:
        main = threading.main_thread().ident
        assert main is not None
        while numbers := os.read(self._heard, 64):
            if number := next(iter(self._watched.intersection(numbers)), None):
                self._handled.wait(AGAIN_SECONDS)
                # Looked at once more: on a busy machine the handler may run as the time runs out.
                if self._handled.is_set():
                    self._handled.clear()
                else:
                    # What this one writes lets us look again.
                    signal.pthread_kill(main, number)


_redelivery: _Redelivery | None = None


def handle(number: int, handler: Handler) -> None:
    """Call `handler` for signal `number`, also when it comes while the main thread begins to wait."""
    global _redelivery  # noqa: PLW0603 (a process has one set of handlers)
    redelivery = _redelivery = _redelivery or _Redelivery()

    def noted(got: int, frame: FrameType | None) -> None:
        redelivery.handled()
        handler(got, frame)

    redelivery.watch(number)
    signal.signal(number, noted)

"""Let Ctrl-C end what is being done for a person, wherever it is.

It is done in the main thread, the only one that a signal can take out of any waiting; the keys are read in
another one.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from harness_lib.loop import processes, signals


class UnderWay:
    """A block of work: inside it a SIGINT is raised as Interrupted, outside it is nothing.

    `changed` is called whenever work has begun or ended.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self.now = False
        self._changed = changed
        self._main = threading.main_thread().ident
        signals.handle(signal.SIGINT, self._signalled)

    def __enter__(self) -> None:
        self.now = True
        self._changed()

    def __exit__(self, *_: object) -> None:
        self.now = False
        self._changed()

    def interrupt(self) -> bool:
        """End the work from another thread; return whether there was any."""
        if self.now and self._main is not None:
            signal.pthread_kill(self._main, signal.SIGINT)
        return self.now

    def _signalled(self, number: int, frame: object) -> None:
        if self.now:
            processes.interrupt(number, frame)

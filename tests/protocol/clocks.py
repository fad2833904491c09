"""Time for tests that would have to wait."""

from __future__ import annotations

from collections.abc import Callable

from tests.verbs.project import Time


class Hurried(Time):
    """Whoever sleeps has slept a second, at once; `act` is done at the first one."""

    def __init__(self, act: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.slept = 0.0
        self._act: Callable[[], None] | None = act

    def monotonic(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        del seconds
        self.slept += 1.0
        act, self._act = self._act, None
        if act is not None:
            act()


class Impatient(Time):
    """Whoever waits fails the test."""

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"It waited for {seconds} s.")

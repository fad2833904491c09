"""Keep what a person has typed until somebody takes it.

The line editor puts it in from a thread of its own, also while a turn is under way; the conversation and
that turn take it out.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Line:
    """What was sent, as which one; `soon`: the turn under way is to hear of it behind its running tools."""

    text: str
    soon: bool
    number: int


class Ahead(NamedTuple):
    """What was typed ahead, for the next conversation: what was sent, and what stands in the line."""

    sent: tuple[str, ...] = ()
    line: str = ""


class Typed:
    """The lines that wait; `is_command` says which of them are ours, and those never go to a turn."""

    def __init__(self, is_command: Callable[[str], bool]) -> None:
        self._is_command = is_command
        self._sent: queue.SimpleQueue[Line | None] = queue.SimpleQueue()
        self._sorted: deque[Line] = deque()
        self._left = False
        self._count = 0
        self._known: int | None = None
        # What is shown as waiting: by value, since it is only looked at.
        self.waiting: list[str] = []

    def put(self, text: str, *, soon: bool) -> None:
        """Send a line."""
        self.waiting.append(text)
        self._count += 1
        self._sent.put(Line(text, soon and not self._is_command(text), self._count))

    def leave(self) -> None:
        """Let `take` return that nothing more will come."""
        self._sent.put(None)

    def take(self) -> str | None:
        """Wait for the next line and return it; None when the person leaves."""
        self._sort()
        while not self._sorted and not self._left:
            self._keep(self._sent.get())
        return self._taken(self._sorted.popleft()) if self._sorted else None

    def soon(self) -> list[str]:
        """Return what the turn under way is to hear now."""
        self._sort()
        due = [line for line in self._sorted if line.soon]
        self._sorted = deque(line for line in self._sorted if not line.soon)
        return [self._taken(line) for line in due]

    def begin(self) -> None:
        """Begin with the next piece of work: of its end nobody knows yet."""
        self._known = None

    def known(self) -> None:
        """Note that the person knows of the end from now on, and means what they send to follow it."""
        self._known = self._count

    def withdraw(self) -> list[str]:
        """Take back what was sent before the end of the work was known."""
        self._sort()
        last = self._count if self._known is None else self._known
        withdrawn = [line for line in self._sorted if line.number <= last]
        self._sorted = deque(line for line in self._sorted if line.number > last)
        return [self._taken(line) for line in withdrawn]

    def _sort(self) -> None:
        while not self._sent.empty():
            self._keep(self._sent.get())

    def _keep(self, line: Line | None) -> None:
        if line is None:
            self._left = True
        else:
            self._sorted.append(line)

    def _taken(self, line: Line) -> str:
        self.waiting.remove(line.text)
        return line.text

"""The events of a turn, one JSON object per line in the session's `.stream`, for whoever draws it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from harness_lib.loop.piped import Json, dumps

Listener = Callable[[Json], None]


class Stream:
    """Appends events; foreign programs append to the same file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._descriptor: int | None = None
        self.listeners: list[Listener] = []

    def emit(self, kind: str, **values: object) -> None:
        """Append the event `kind` and tell the listeners."""
        event = {"type": kind, **values}
        # What cannot be written here is not lost: it stands in the messages.
        with suppress(OSError):
            descriptor = self._open()
            if descriptor is not None:
                os.write(descriptor, f"{dumps(event)}\n".encode())
        for listener in self.listeners:
            listener(event)

    def empty(self) -> None:
        """Begin anew, as before every request."""
        with suppress(OSError):
            descriptor = self._open()
            if descriptor is not None:
                os.ftruncate(descriptor, 0)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int | None:
        if self._descriptor is None and self._path is not None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(self._path, flags, 0o600)
        return self._descriptor

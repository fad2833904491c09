"""A process of harness in which `.harness/` is gone before each thing that it does there, once each."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.crash.effects import text_of

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_RANDOM = re.compile(r"\.[0-9a-f]{16}\b|\b\d{10}\b|-\d+(?=\.json)")
# How many of their arguments are paths.
_PATHS = {"os.mkdir": 1, "os.rename": 2, "os.scandir": 1, "os.listdir": 1, "fcntl.flock": 1}


class Remover:
    """Removes the directory `private` at the first moment of each name, and writes the name to `moments`."""

    def __init__(self, private: str, moments: str) -> None:
        self._private, self._moments = private, moments
        self._seen: set[str] = set()
        self._busy = False

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            name = self._moment(event, args)
            if name is not None and name not in self._seen:
                self._seen.add(name)
                with Path(self._moments).open("a") as stream:
                    stream.write(name + "\n")
                shutil.rmtree(self._private, ignore_errors=True)
        finally:
            self._busy = False

    def _moment(self, event: str, args: Sequence[object]) -> str | None:
        if event == "open" and isinstance(args[2], int) and args[2] & _WRITING:
            return self._named(event, args[:1])
        if event in _PATHS:
            return self._named(event, args[: _PATHS[event]])
        if event == "subprocess.Popen":
            # Between what was made for a command and its beginning.
            return f"start {args[1][0]}" if isinstance(args[1], (list, tuple)) else None
        return None

    def _named(self, event: str, paths: Sequence[object]) -> str | None:
        names = [text_of(path) or "" for path in paths]
        if not any(name.startswith(self._private) for name in names):
            return None
        return _RANDOM.sub("", " ".join([event, *(name.removeprefix(self._private) for name in names)]))


def main(argv: list[str]) -> int:
    """Be `harness` with arguments behind the directory that is removed, and the file that says when."""
    private, moments, *rest = argv
    from harness_lib.cli.main import main as harness  # noqa: PLC0415 (loaded before the directory goes)

    sys.addaudithook(Remover(private, moments))
    return harness(rest)

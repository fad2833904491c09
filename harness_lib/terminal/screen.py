"""Where output goes: stdout is data, stderr is talk; with `--json` stdout is one object and nothing else."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from harness_lib.errors import UsageError
from harness_lib.text import harmless

# What stands for the bytes of a name that is no text; the streams write them as escapes.
_UNDECODED = "".join(map(chr, range(0xD800, 0xE000)))


class Screen:
    """The two streams of a command; `json` asks for the reply object."""

    def __init__(self, *, json: bool = False, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.json = json
        self.out = out or sys.stdout
        self.err = err or sys.stderr

    @property
    def is_terminal(self) -> bool:
        """Return whether the user watches: then colours and live tables are welcome."""
        return not self.json and self.out.isatty()

    def width(self, otherwise: int) -> int:
        """Return how many characters a line of the terminal has; `otherwise` where there is none."""
        if not self.is_terminal:
            return otherwise
        try:
            return os.get_terminal_size(self.out.fileno()).columns or otherwise
        except (OSError, ValueError):
            return otherwise

    def data(self, text: str) -> None:
        """Write a line of what was asked for."""
        print(_safe(text), file=self.out, flush=True)

    def talk(self, text: str) -> None:
        """Write a line about what is going on."""
        print(f"harness: {_safe(text)}", file=self.err, flush=True)

    def busy(self, text: str) -> None:
        """Write a line about what takes long, to the user who waits for it."""
        if self.err.isatty():
            self.talk(text)

    def refuse_json(self, option: str, instead: str) -> None:
        """Raise UsageError where one object is asked for and `option` goes on and on."""
        if self.json:
            raise UsageError(f"{option} goes on and on, and --json is one object.", f"Ask again: {instead}")

    @property
    def is_answerable(self) -> bool:
        """Return whether the user can be asked."""
        return sys.stdin is not None and sys.stdin.isatty() and self.err.isatty()

    def ask(self, question: str) -> bool:
        """Ask a yes-or-no question; only "y" and "yes" mean yes."""
        print(question, end="", file=self.err, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")


def _safe(text: str) -> str:
    """Return `text`, which may quote a list of anybody's, without what would move a terminal's cursor."""
    return text if text.isprintable() else harmless(text, keep="\n\t" + _UNDECODED)

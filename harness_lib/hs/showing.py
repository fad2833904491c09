"""Text for whoever called `hs`: as it is for a program, and harmless for a person at a terminal.

Names, answers and errors come from models, hosts and repositories; none of them may move a cursor.
"""

from __future__ import annotations

import sys

from harness_lib.text import harmless

_KEPT = "\n\t"


def show(text: object = "", end: str = "\n") -> None:
    """Print `text` on standard output."""
    output = f"{text}{end}"
    sys.stdout.write(harmless(output, keep=_KEPT) if sys.stdout.isatty() else output)


def complain(text: object) -> None:
    """Print `text` on standard error, which is for people."""
    sys.stderr.write(f"{harmless(str(text), keep=_KEPT)}\n")

"""A person at the terminal who is asked whether a call may run."""

from __future__ import annotations

import os
import sys
import termios
import threading
from pathlib import Path

from harness_lib.loop.asking import Asker, Question, Said, always_about
from harness_lib.text import harmless

_SHOWN = 2000
_COLOURS = {"+": "green", "-": "red", "@": "cyan", " ": ""}
_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "cyan": 36}
# A line and the name of its colour.
Line = tuple[str, str]
_TERMINAL = Path("/dev/tty")


class Terminal:
    """Asks at the terminal, one question after another: subagents may ask at the same time."""

    def __init__(self) -> None:
        self._one_person = threading.Lock()

    def ask(self, question: Question) -> Said:
        """Ask, and return what was said; an end of the input is a no."""
        with self._one_person:
            try:
                with _TERMINAL.open("r", encoding="utf-8", errors="replace") as terminal:
                    # What was typed before the question stood there is no answer to it.
                    termios.tcflush(terminal, termios.TCIFLUSH)
                    sys.stderr.write(f"{coloured(shown(question))}\n{choices(question)}")
                    sys.stderr.flush()
                    answer = terminal.readline()
            except (OSError, termios.error):
                return Said(allowed=False, reason="the terminal is gone")
            return understood(answer, question)


def asker() -> Asker | None:
    """Return how the person is asked; None where there is no terminal."""
    is_interactive = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    return Terminal().ask if is_interactive else None


def shown(question: Question) -> list[Line]:
    """Return the call for a person to look at, an edit as its difference."""
    who = f" (subagent {harmless(question.who)})" if question.who else ""
    head = f"hs: may {harmless(question.name)} run{who}? {harmless(question.reason)}".rstrip()
    if question.difference:
        return [("bold", head), *difference(question.difference)]
    lines = [("bold", head)]
    for key, value in question.input.items():
        text = str(value)
        cut = f"{text[:_SHOWN]}\n... ({len(text) - _SHOWN} more characters)" if len(text) > _SHOWN else text
        lines += [("", f"  {harmless(key)}: {harmless(line)}") for line in cut.splitlines() or [""]]
    return lines


def difference(text: str) -> list[Line]:
    """Return the lines of a unified difference in their colours; nothing in them moves the cursor."""
    # Where each line ends so, none of it is of interest.
    lines = [harmless(line.removesuffix("\r"), keep="\t") for line in text.split("\n")]
    return [(_COLOURS.get(line[:1], "dim"), f"  {line}") for line in lines]


def coloured(lines: list[Line]) -> str:
    """Return `lines` for a terminal; without colours where NO_COLOR says so."""
    if os.environ.get("NO_COLOR"):
        return "\n".join(text for _, text in lines)
    return "\n".join(f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style else text for style, text in lines)


def choices(question: Question) -> str:
    """Return the line that says what can be answered."""
    subject = harmless(always_about(question))
    always = f", a = always ({subject})" if subject else ""
    return f"  y = once{always}, n = no, or say why not: "


def understood(answer: str, question: Question) -> Said:
    """Return what the words mean: only a clear yes is one."""
    words = answer.strip()
    if words.lower() in {"y", "yes"}:
        return Said(allowed=True)
    if words.lower() in {"a", "always"} and always_about(question):
        return Said(allowed=True, always=True)
    if words.lower() in {"", "n", "no", "a", "always"}:
        return Said(allowed=False, reason="the user said no")
    return Said(allowed=False, reason=f"the user said no: {words}")

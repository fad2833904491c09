"""A reply or an error as text for people and agents, or as the JSON object; both say the same.

Stdout is data, stderr is talk; with `--json` stdout is one object and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from harness_lib import typed
from harness_lib.core.context import Reply
from harness_lib.errors import Exit, HarnessError, UsageError
from harness_lib.system.place import data_home
from harness_lib.text import Strings, harmless

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

    @property
    def is_redrawn(self) -> bool:
        """Return whether a live table can be drawn; a dumb terminal, as in Emacs, only takes lines."""
        return self.is_terminal and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")

    def data(self, text: str) -> None:
        """Write a line of what was asked for."""
        print(_safe(text), file=self.out, flush=True)

    def talk(self, text: str) -> None:
        """Write a line about what is going on; what cannot be written stops no work."""
        with suppress(OSError):
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

    @property
    def may_ask(self) -> Callable[[str], bool] | None:
        """Return `ask`, or None if the user cannot be asked or wants JSON."""
        return self.ask if self.is_answerable and not self.json else None

    def ask(self, question: str) -> bool:
        """Ask a yes-or-no question; only "y" and "yes" mean yes."""
        print(question, end="", file=self.err, flush=True)
        line = sys.stdin.readline()
        if not line:
            # Ctrl-D ends no line.
            print(file=self.err)
        return line.strip().lower() in ("y", "yes")


def _safe(text: str) -> str:
    """Return `text`, which may quote an untrusted list, without what would move a terminal's cursor."""
    return text if text.isprintable() else harmless(text, keep="\n\t" + _UNDECODED)


# How a reply begins on a terminal, by what it means for the caller.
GROUNDS = {Exit.DONE: "", Exit.STOP: "bold yellow"}
BAD = "bold red"


def reply(outcome: Reply, screen: Screen) -> int:
    """Show `outcome` and return its exit code; the text ends with the next command."""
    if screen.json:
        screen.data(_dump(outcome.document()))
        return int(outcome.exit)
    for warning in outcome.warnings:
        _talk(screen, f"warning: {warning}", "yellow")
    if outcome.message:
        _data(screen, outcome.message, GROUNDS.get(outcome.exit, BAD))
    if outcome.next:
        _data(screen, f"next: {outcome.next}", "bold")
    return int(outcome.exit)


def error(problem: HarnessError, verb: str, screen: Screen, warnings: Strings = ()) -> int:
    """Show why `verb` failed, what it had to warn about before, and what to do; return the exit code."""
    if screen.json:
        said = {"kind": problem.kind, "message": problem.message, "hint": problem.hint}
        extra = {"error": said, **problem.extra}
        failed = Reply(problem.message, problem.exit_code, warnings=warnings, extra=extra, verb=verb)
        # Where it cannot be written, stderr may still be read.
        with suppress(OSError):
            screen.data(_dump(failed.document()))
            return int(problem.exit_code)
    for warning in warnings:
        _talk(screen, f"warning: {warning}", "yellow")
    _talk(screen, f"{problem.kind}: {problem.message}", BAD)
    if problem.hint:
        _talk(screen, f"hint: {problem.hint}")
    return int(problem.exit_code)


def _data(screen: Screen, text: str, style: str) -> None:
    """Write to stdout; `style` is for the first line, on a terminal."""
    if not screen.is_terminal:
        screen.data(_typeable(text, _FOR_THE_USER))
        return
    text = _typeable(text, _COMMAND)
    first, _, rest = text.partition("\n")
    _draw(screen.out, first, style)
    if rest:
        _draw(screen.out, rest)


def _talk(screen: Screen, text: str, style: str = "") -> None:
    if screen.err.isatty():
        with suppress(OSError):
            _draw(screen.err, f"harness: {_typeable(text, _COMMAND)}", style)
    else:
        screen.talk(_typeable(text, _FOR_THE_USER))


# A command in a sentence; and one that an agent hands on to its user, who has not read where the launcher is.
_COMMAND = re.compile(r"((?<![\w./-]))harness(?= [a-z]+)")
_FOR_THE_USER = re.compile(r"(\buser\b[^:\n]*: )harness(?= [a-z]+)")


def _typeable(text: str, commands: re.Pattern[str]) -> str:
    """Return `text` with the launcher's path in its `commands`, where no `harness` is on the PATH."""
    launcher = data_home.launcher() if commands.search(text) else None
    if launcher is None:
        return text
    # Claude Code puts our own directory on the PATH of its agent, and not of its user.
    own = f"{data_home.HOME}/bin" if commands is _FOR_THE_USER else ""
    if _is_on_path(os.environ.get("PATH", ""), own):
        return text
    return commands.sub(lambda found: found[1] + typed.word(launcher), text)


def _is_on_path(path: str, without: str = "") -> bool:
    # Without `shutil`, which every verb would have to load.
    entries = [entry for entry in path.split(os.pathsep) if entry and os.path.realpath(entry) != without]
    return any(os.access(f"{entry}/harness", os.X_OK) for entry in entries)


def _draw(stream: TextIO, text: str, style: str = "") -> None:
    try:
        from harness_lib.terminal.drawing import write  # noqa: PLC0415 (a pipe does not pay for rich)
    except ImportError:
        # Only for the looks: whoever has put another rich beside harness still reads what is said.
        print(text, file=stream)
        return
    write(stream, text, style)


def _dump(document: object) -> str:
    # Names of files that are not UTF-8 carry lone surrogates, which no UTF-8 stream takes.
    text = json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
    if text.isprintable():
        return text
    # Inside a string, where alone they can stand, these mean the same.
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def advice(path: str) -> str | None:
    """Return what to type in the place of `harness`; None where `path` (as in PATH) has one."""
    launcher = data_home.launcher()
    if launcher is None or _is_on_path(path):
        return None
    link = f"mkdir -p ~/.local/bin && ln -s {typed.word(launcher)} ~/.local/bin/harness"
    return f"`harness` is not on your PATH: type {typed.word(launcher)} in its place, or once: {link}"

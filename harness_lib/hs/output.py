"""Show a turn of the one-shot `hs`: as its answer, as it streams in, or as events for a program.

Names, answers and errors come from models, hosts and repositories; none of them may move a cursor. A bug of
ours is one line for the user, and a traceback in a file that can be sent to us.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from harness_lib.errors import HarnessError
from harness_lib.loop import disk
from harness_lib.loop.piped import Json, dumps
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions.context import Account
from harness_lib.loop.turn import Turn
from harness_lib.text import harmless, sentence

_KEPT = "\n\t"


class Answer:
    """A way to show a turn: the answer alone, when it is complete, as pipes and files want it."""

    def begin(self, runtime: Runtime, *, is_new: bool) -> None:
        """Say on standard error which session begins, before its turn does."""
        if is_new:
            directory, home = str(runtime.session.directory), runtime.env.get("HOME", "")
            if home and directory.startswith(f"{home}/"):
                directory = f"~{directory.removeprefix(home)}"
            complain(f"session: {directory}\nprovider: {runtime.provider}\nmodel: {runtime.model}")

    def end(self, done: Turn) -> None:
        """Show how it ended."""
        if done.output:
            print(done.output)
        if done.error:
            complain(f"error: {done.error}")


class Streamed(Answer):
    """The answer as it comes: for the user at a terminal."""

    # What was printed last.
    _last = "\n"

    def begin(self, runtime: Runtime, *, is_new: bool) -> None:
        super().begin(runtime, is_new=is_new)
        runtime.stream.listeners.append(self._hear)

    def end(self, done: Turn) -> None:
        self._break()
        super().end(done._replace(output=""))

    def _hear(self, event: Json) -> None:
        if event["type"] == "text":
            # The text of a model must not move the cursor.
            text = harmless(str(event.get("text", "")), keep=_KEPT)
            self._last = text or self._last
            sys.stdout.write(text)
            sys.stdout.flush()
        elif event["type"] in {"tool_start", "stop", "retry"}:
            self._break()

    def _break(self) -> None:
        if not self._last.endswith("\n"):
            print(flush=True)
        self._last = "\n"


class Events(Answer):
    """One JSON object per line: the session, its events, the usage so far, and the result."""

    def __init__(self) -> None:
        self._runtime: Runtime | None = None
        if isinstance(sys.stdout, io.TextIOWrapper):
            # JSON for a program is UTF-8, whatever the locale of the user is.
            sys.stdout.reconfigure(encoding="utf-8")

    def begin(self, runtime: Runtime, *, is_new: bool) -> None:  # noqa: ARG002 (its first event says it)
        self._runtime = runtime
        tell({
            "type": "session",
            "session": runtime.session.id,
            "directory": str(runtime.session.directory),
            "provider": runtime.provider,
            "model": runtime.model,
        })  # fmt: skip
        runtime.stream.listeners.append(self._hear)

    def end(self, done: Turn) -> None:
        tell({
            "type": "result",
            "output": done.output,
            "session": done.session,
            "stop": done.stop,
            **_sums(done.account),
            "error": done.error or None,
        })  # fmt: skip

    def _hear(self, event: Json) -> None:
        tell(event)
        if event["type"] == "stop" and self._runtime is not None:
            tell({"type": "usage", **_sums(self._runtime.spent())})


def _sums(account: Account) -> Json:
    return {"tokens_in": account.tokens_in, "tokens_out": account.tokens_out, "cost": account.cost}


def tell(event: Json) -> None:
    """Print `event` for another program, as a line of JSON."""
    sys.stdout.write(f"{dumps(event)}\n")
    sys.stdout.flush()


def show(text: object = "", end: str = "\n") -> None:
    """Print `text` on standard output."""
    output = f"{text}{end}"
    sys.stdout.write(harmless(output, keep=_KEPT) if sys.stdout.isatty() else output)


def complain(text: object) -> None:
    """Print `text` on standard error; continue if it cannot be written."""
    with suppress(OSError):
        sys.stderr.write(f"{harmless(str(text), keep=_KEPT)}\n")


def one_line(error: HarnessError) -> str:
    """Return the message and the hint of `error` in one line."""
    return f"{sentence(error.message)} {error.hint}" if error.hint else error.message


def bug_line(error: BaseException) -> str:
    """Return the one line that says what went wrong."""
    words = " ".join(str(error).split())
    return f"This is a bug in hs: {type(error).__name__}{f': {words}' if words else ''}."


def keep_bug(error: BaseException, environ: Mapping[str, str]) -> str:
    """Write the traceback of `error` into the home of hs; say where it is."""
    import traceback  # noqa: PLC0415 (rarely needed)

    report = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    home = Path(environ.get("HARNESS_HOME") or Path(environ.get("HOME") or "~", ".harness").expanduser())
    path = home / f"bug-{os.getpid()}.txt"
    try:
        disk.write(path, report.encode("utf-8", "backslashreplace"))
    except OSError:
        return f"Please report it with these lines:\n{report.rstrip()}"
    return f"Please report it with {path}."

"""Show a turn of the one-shot `hs`: as its answer, as it streams in, or as events for a program."""

from __future__ import annotations

import io
import sys
from typing import Protocol

from harness_lib.hs.showing import complain
from harness_lib.loop import turn
from harness_lib.loop.piped import Json, dumps
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions.accounts import Account
from harness_lib.loop.turn import Turn
from harness_lib.text import harmless


class Output(Protocol):
    """Where a turn is shown."""

    def begin(self, runtime: Runtime) -> None:
        """Take notice of a session that is about to be worked in."""
        ...

    def end(self, done: Turn) -> None:
        """Show how it ended."""
        ...


def choose(*, json: bool, streamed: bool = False) -> Output:
    """Return what fits standard output; `streamed`: a person reads along, though it is no terminal."""
    if json:
        return Events()
    return Streamed() if streamed or sys.stdout.isatty() else Answer()


class Answer:
    """The answer alone, when it is complete: for pipes and files."""

    def begin(self, runtime: Runtime) -> None:
        """Nothing is shown before the answer."""

    def end(self, done: Turn) -> None:
        if done.output:
            print(done.output)
        if done.error:
            complain(f"error: {done.error}")


class Streamed(Answer):
    """The answer as it comes: for a person at a terminal."""

    def __init__(self) -> None:
        self._said = ""

    def begin(self, runtime: Runtime) -> None:
        runtime.stream.listeners.append(self._hear)

    def end(self, done: Turn) -> None:
        if done.error or done.output.strip() != self._said.strip():
            self._break()
            super().end(Turn(harmless(done.output, keep="\n\t"), error=done.error))
        else:
            self._break()

    def _hear(self, event: Json) -> None:
        if event["type"] == "text":
            text = str(event.get("text", ""))
            self._said += text
            # What a model says must not move the cursor of whoever reads it.
            sys.stdout.write(harmless(text, keep="\n\t"))
            sys.stdout.flush()
        elif event["type"] in {"tool_start", "retry"}:
            self._break()

    def _break(self) -> None:
        if self._said and not self._said.endswith("\n"):
            print(flush=True)
        self._said = ""


class Events:
    """One JSON object per line: the session, the events of `.stream`, the sums so far, and the result."""

    def __init__(self) -> None:
        self._runtime: Runtime | None = None
        if isinstance(sys.stdout, io.TextIOWrapper):
            # JSON for a program is UTF-8, whatever the locale of the person is.
            sys.stdout.reconfigure(encoding="utf-8")

    def begin(self, runtime: Runtime) -> None:
        self._runtime = runtime
        session = runtime.session
        _line({
            "type": "session",
            "session": session.id if session else "",
            "directory": str(session.directory) if session else "",
            "provider": runtime.provider,
            "model": runtime.model,
        })  # fmt: skip
        runtime.stream.listeners.append(self._hear)

    def end(self, done: Turn) -> None:
        _line({
            "type": "result",
            "output": done.output,
            "session": done.session,
            "stop": done.stop,
            **_sums(done.account),
            "error": done.error or None,
        })  # fmt: skip

    def _hear(self, event: Json) -> None:
        _line(event)
        if event["type"] == "stop" and self._runtime is not None:
            _line({"type": "usage", **_sums(turn.spent(self._runtime))})


def _sums(account: Account) -> Json:
    return {"tokens_in": account.tokens_in, "tokens_out": account.tokens_out, "cost": account.cost}


def _line(event: Json) -> None:
    sys.stdout.write(f"{dumps(event)}\n")
    sys.stdout.flush()

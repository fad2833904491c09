"""The process of one session: takes turns as it is told, and tells in lines of JSON what happens."""

from __future__ import annotations

import sys

from harness_lib.errors import HarnessError
from harness_lib.hs.acp import choices
from harness_lib.hs.acp.edits import Edits
from harness_lib.hs.acp.inbox import Inbox
from harness_lib.hs.acp.permission import Permission
from harness_lib.hs.setup import open_session, own_sessions
from harness_lib.hs.setup.options import Options
from harness_lib.loop import turn
from harness_lib.loop.failures import Interrupted, one_line
from harness_lib.loop.mcp.servers import OF_THE_CLIENT
from harness_lib.loop.piped import Json, dumps
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.turn import Turn
from harness_lib.loop.wires import http


def work(runtime: Runtime) -> int:
    """Open the session that the first line names, and take turns in it until no more lines come."""
    inbox = Inbox()
    first = inbox.take()
    if first is None:
        return 0
    try:
        opened = _open(runtime, first)
    except HarnessError as error:
        tell({"type": "refused", "message": one_line(error)})
        return int(error.exit_code)
    tell(opened)
    worker = Worker(runtime, inbox)
    try:
        while (request := inbox.take()) is not None:
            worker.do(request)
    finally:
        runtime.close()
    return 0


def _open(runtime: Runtime, first: Json) -> Json:
    named = first.get("session")
    session = open_session.known(runtime, str(named)) if named else None
    if session is not None:
        # The client says where it works in it now.
        session.conf["cwd"] = str(runtime.cwd)
        own_sessions.check(runtime, session)
    # A client has a person.
    runtime.approve = "ask"
    runtime.kept[OF_THE_CLIENT] = first.get("servers") or {}
    open_session.enter(runtime, session, Options())
    assert runtime.session is not None
    if runtime.env["HARNESS_LOG"] == "/dev/stderr":
        runtime.env["HARNESS_LOG"] = str(runtime.session.directory / "acp.log")
    opened = {"type": "opened", "session": runtime.session.id, "directory": str(runtime.session.directory)}
    return {**opened, "config": choices.config(runtime), "commands": choices.commands(runtime)}


class Worker:
    """Does what a line says, in a session that is open."""

    def __init__(self, runtime: Runtime, inbox: Inbox) -> None:
        self._runtime = runtime
        self._inbox = inbox
        self._edits = Edits(runtime)
        self._said = ""
        runtime.asker = Permission(inbox, tell)
        runtime.stream.listeners.append(self._hear)
        runtime.notices.append(lambda text: tell({"type": "notice", "message": text}))

    def do(self, request: Json) -> None:
        """Take a turn, or change a setting."""
        if "prompt" in request:
            done = self._take(int(request["turn"]), choices.expand(self._runtime, str(request["prompt"])))
            tell({
                "type": "result", "turn": request["turn"], "stop": done.stop, "error": done.error,
                "tokens_in": done.account.tokens_in, "tokens_out": done.account.tokens_out,
            })  # fmt: skip
        elif "config" in request:
            try:
                choices.choose(self._runtime, str(request["config"]), str(request["value"]))
                problem = ""
            except HarnessError as error:
                problem = one_line(error)
            tell({"type": "config", "config": choices.config(self._runtime), "error": problem})

    def _take(self, number: int, message: str) -> Turn:
        cancelled = Turn(stop="cancelled")
        self._said = ""
        try:
            try:
                if not self._inbox.begin(number):
                    return cancelled
                done = turn.take(self._runtime, message)
            finally:
                self._inbox.end()
        except Interrupted:
            # It may have come just before the end was noted.
            self._inbox.end()
            # What was half read from the provider is nobody's any more.
            http.forget(self._runtime.kept)
            return cancelled
        if done.output.strip() and done.output.strip() != self._said.strip():
            # Foreign providers and hooks speak without a stream of ours.
            tell({"type": "text", "text": done.output})
        return done

    def _hear(self, event: Json) -> None:
        kind = event["type"]
        if kind == "text":
            self._said += str(event.get("text", ""))
        elif kind in {"tool_start", "retry"}:
            self._said = ""
        tell({**event, **self._edits.hear(event)})
        if kind == "stop":
            tell({"type": "usage", **choices.usage(self._runtime)})


def tell(event: Json) -> None:
    """Write a line for the process that speaks the protocol."""
    sys.stdout.write(f"{dumps(event)}\n")
    sys.stdout.flush()

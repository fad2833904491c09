"""The process of one session: takes turns as it is told, and tells in lines of JSON what happens."""

from __future__ import annotations

import sys
from html import unescape
from pathlib import Path

from harness_lib.errors import ConfigError, HarnessError, UsageError
from harness_lib.hs.acp.inbox import Inbox, Permission
from harness_lib.hs.setup import choose_model, open_session, session_store
from harness_lib.hs.setup.open_session import Options
from harness_lib.hs.words import unknown
from harness_lib.loop import approval, turn
from harness_lib.loop.failures import Interrupted, one_line
from harness_lib.loop.mcp.servers import OF_THE_CLIENT
from harness_lib.loop.piped import Json, dumps
from harness_lib.loop.providers import models
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import context
from harness_lib.loop.tools import skills
from harness_lib.loop.turn import Turn
from harness_lib.loop.wires import http

_APPROVALS = {
    "ask": "Ask before a command or an edit",
    "auto": "Run all tools without asking",
    "read-only": "Run only tools that change nothing",
}
TOOLS = ("edit_file", "replace", "write_file")
# More is no diff that anybody reads.
_LIMIT = 1024 * 1024


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
        session_store.check_own(runtime, session)
    # A client has a person.
    runtime.approve = "ask"
    runtime.kept[OF_THE_CLIENT] = first.get("servers") or {}
    open_session.enter(runtime, session, Options())
    assert runtime.session is not None
    if runtime.env["HARNESS_LOG"] == "/dev/stderr":
        runtime.env["HARNESS_LOG"] = str(runtime.session.directory / "acp.log")
    opened = {"type": "opened", "session": runtime.session.id, "directory": str(runtime.session.directory)}
    return {**opened, "config": config(runtime), "commands": commands(runtime)}


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
            done = self._answer(int(request["turn"]), str(request["prompt"]))
            tell({
                "type": "result", "turn": request["turn"], "stop": done.stop, "error": done.error,
                "tokens_in": done.account.tokens_in, "tokens_out": done.account.tokens_out,
            })  # fmt: skip
        elif "config" in request:
            try:
                choose(self._runtime, str(request["config"]), str(request["value"]))
                problem = ""
            except HarnessError as error:
                problem = one_line(error)
            tell({"type": "config", "config": config(self._runtime), "error": problem})

    def _answer(self, number: int, prompt: str) -> Turn:
        if problem := unknown(self._runtime, prompt, ()):
            return Turn(error=f"{problem} It was not sent.")
        return self._take(number, expand(self._runtime, prompt))

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
            # Nobody reads the rest of this response any more.
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
            tell({"type": "usage", **usage(self._runtime)})


def tell(event: Json) -> None:
    """Write a line for the process that speaks the protocol."""
    sys.stdout.write(f"{dumps(event)}\n")
    sys.stdout.flush()


def config(runtime: Runtime) -> list[Json]:
    """Return the settings, each with its value and what else it may be."""
    current = f"{runtime.provider}/{runtime.model}"
    known = dict.fromkeys([current, *map(str, choose_model.ready(runtime))])
    return [
        {"id": "model", "name": "Model", "value": current, "options": {name: name for name in known}},
        {"id": "approval", "name": "Approval", "value": _approval(runtime), "options": _APPROVALS},
    ]


def choose(runtime: Runtime, name: str, value: str) -> None:
    """Set `name` to `value`. Raises UsageError."""
    setting = next((each for each in config(runtime) if each["id"] == name), None)
    if setting is None or value not in setting["options"]:
        raise UsageError(f"{name} cannot be {value}.")
    if name == "approval":
        runtime.env["HARNESS_APPROVE"] = value
        return
    choose_model.choose(runtime, value)


def _approval(runtime: Runtime) -> str:
    try:
        return approval.mode(runtime)
    except approval.UnknownModeError as error:
        raise ConfigError(f"{error}.", "It stands in HARNESS_APPROVE or in a settings.conf.") from error


def commands(runtime: Runtime) -> list[Json]:
    """Return the slash commands: the skills."""
    return [
        {"name": skill.name, "description": unescape(skill.description)}
        for skill in skills.every(runtime).values()
    ]


def expand(runtime: Runtime, text: str) -> str:
    """Return `text` as the model is told it: a slash command is the skill of its name."""
    name, _, rest = text.removeprefix("/").partition(" ")
    if not text.startswith("/") or name.strip() not in skills.every(runtime):
        return text
    return f"Load the skill {name.strip()} by the tool `skill` and follow it.\n\n{rest}".rstrip()


def usage(runtime: Runtime) -> Json:
    """Return what the context holds and what the session has cost."""
    session = runtime.session
    messages = session.messages() if session else []
    answers = [message for message in messages if message.role == "assistant"]
    last = context.total(answers[-1:])
    return {
        "used": last.tokens_in + last.tokens_out,
        "size": models.of(runtime).context,
        "cost": context.total(messages).cost,
    }


class Edits:
    """Listens to the events of a session."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._before: dict[str, tuple[Path, str | None]] = {}

    def hear(self, event: Json) -> Json:
        """Return what is to be told beside `event`."""
        if event["type"] == "tool_run":
            self._keep(event)
        if event["type"] != "tool_done":
            return {}
        return {"result": self._result(str(event.get("seq"))), **self._diff(event)}

    def _keep(self, event: Json) -> None:
        path = (event.get("input") or {}).get("path")
        if event["name"] in TOOLS and isinstance(path, str) and path and "\0" not in path:
            full = self._runtime.work_directory / Path(path).expanduser()
            if not full.exists() or full.is_file():
                self._before[str(event["id"])] = full, _read(full)

    def _diff(self, event: Json) -> Json:
        path, old = self._before.pop(str(event["id"]), (None, None))
        new = _read(path) if path and event.get("error") != "true" else None
        if path is None or new is None:
            return {}
        return {"diff": {"path": str(path), "old": old, "new": new}}

    def _result(self, seq: str) -> str:
        session = self._runtime.session
        messages = session.messages() if session and seq else []
        return next((message.body for message in reversed(messages) if f"{message.seq:04d}" == seq), "")


def _read(path: Path) -> str | None:
    """Return the text of `path`; None if it cannot be shown."""
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= _LIMIT else None
    except (OSError, UnicodeDecodeError):
        return None

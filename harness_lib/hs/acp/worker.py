"""Work as the process of one session: take turns as it is told, and tell in lines of JSON what happens.

It listens beside the work, so that a turn that is cancelled, or whose client has gone, ends wherever it is.
The user is asked by way of the client whether a call may run.
"""

from __future__ import annotations

import queue
import signal
import sys
import threading
from html import unescape

from harness_lib.errors import HarnessError, UsageError
from harness_lib.hs import session_store, setup
from harness_lib.hs.acp import ALLOW_ALWAYS, ALLOW_ONCE
from harness_lib.hs.terminal import one_line, skill_names, tell, unknown
from harness_lib.loop import context, hosted, mcp_servers, processes, trust, turn
from harness_lib.loop.piped import Json, as_object
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.tools import builtin, skills
from harness_lib.loop.tools.asking import Question, Said, always_about
from harness_lib.loop.turn import Turn
from harness_lib.loop.wires import http


class Inbox:
    """Requests that have arrived and were not taken yet."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        self._answers: dict[int, queue.SimpleQueue[str]] = {}
        self._asked = 0
        # The turn that was begun last, and the last one that was cancelled.
        self.turn = 0
        self.cancelled = 0
        self.under_way = processes.UnderWay(signal.SIGINT, signal.SIGTERM)
        threading.Thread(target=self._read, daemon=True).start()

    def take(self) -> Json | None:
        """Return the next line; None when no more will come."""
        return self._lines.get()

    def expect(self) -> tuple[int, queue.SimpleQueue[str]]:
        """Return the number of a new question, and the queue that its answer will come in."""
        self._asked += 1
        self._answers[self._asked] = queue.SimpleQueue()
        return self._asked, self._answers[self._asked]

    def _read(self) -> None:
        # Not sys.stdin: the interpreter cannot end while a thread waits in it.
        for line in open(0, encoding="utf-8", closefd=False):  # noqa: SIM115 (a descriptor, never closed)
            request = as_object(line)
            if request is not None and "cancel" in request:
                self._cancel(int(request["cancel"]))
            elif request is not None and "permission" in request:
                self._answers.pop(int(request["permission"])).put(str(request["answer"]))
            elif request is not None:
                self._lines.put(request)
        # With the client go all turns that it has asked for.
        self._cancel(sys.maxsize)
        self._lines.put(None)

    def _cancel(self, turn: int) -> None:
        self.cancelled = turn
        if self.turn <= turn:
            self.under_way.interrupt()


_APPROVALS = {
    "ask": "Ask before a command or an edit",
    "auto": "Run all tools without asking",
    "read-only": "Run only tools that change nothing",
}
# The longest text whose difference is shown.
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
    session = session_store.known(runtime, str(named)) if named else None
    if session is not None:
        # The client says where it works in it now.
        session.cwd = runtime.cwd
        session_store.check_own(runtime, session)
    # A client has the user.
    runtime.approve = "ask"
    runtime.kept[mcp_servers.OF_THE_CLIENT] = first.get("servers") or {}
    setup.enter(runtime, session, setup.Options())
    if runtime.env["HARNESS_LOG"] == "/dev/stderr":
        runtime.env["HARNESS_LOG"] = str(runtime.session.directory / "acp.log")
    opened = {"type": "opened", "session": runtime.session.id, "directory": str(runtime.session.directory)}
    return {**opened, "config": config(runtime), "commands": commands(runtime)}


class Worker:
    """Handles requests in an open session."""

    def __init__(self, runtime: Runtime, inbox: Inbox) -> None:
        self._runtime = runtime
        self._inbox = inbox
        # What the running calls make of files.
        self._edits: dict[str, Json] = {}
        runtime.asker = self._ask
        runtime.stream.listeners.append(self._hear)
        runtime.notices.append(lambda text: tell({"type": "notice", "message": text}))

    def do(self, request: Json) -> None:
        """Take a turn, or change a setting."""
        if "prompt" in request:
            prompt = str(request["prompt"])
            self._runtime.found = {}
            if problem := unknown(self._runtime.provider, prompt, skill_names(self._runtime)):
                done = Turn(error=f"{problem} It was not sent.")
            else:
                done = self._take(int(request["turn"]), prompt)
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

    def _take(self, number: int, message: str) -> Turn:
        cancelled = Turn(stop="cancelled")
        try:
            with self._inbox.under_way:
                self._inbox.turn = number
                return cancelled if number <= self._inbox.cancelled else turn.take(self._runtime, message)
        except processes.Interrupted:
            self._inbox.under_way.now = False
            # Nobody reads the rest of this response any more.
            http.forget(self._runtime.kept)
            return cancelled

    def _ask(self, question: Question) -> Said:
        """Ask the user by way of the client; a turn that was cancelled asks nothing more."""
        if self._inbox.turn <= self._inbox.cancelled:
            return Said(allowed=False, reason="the turn was cancelled")
        number, answer = self._inbox.expect()
        # The client has not heard of a subagent's calls.
        call: Json = {"id": question.id or f"asked-{number}", "name": question.name, "input": question.input}
        if not question.who:
            call |= edited(self._runtime, call)
        tell({"type": "permission", "asked": number, "call": call, "for": always_about(question)})
        choice = answer.get()
        if choice in {ALLOW_ONCE, ALLOW_ALWAYS}:
            return Said(allowed=True, always=choice == ALLOW_ALWAYS)
        return Said(allowed=False, reason="the user said no")

    def _hear(self, event: Json) -> None:
        kind = event["type"]
        if kind == "tool_run":
            self._edits[str(event["id"])] = edited(self._runtime, event)
        elif kind == "tool_done":
            event = {**event, **self._done(event)}
        tell(event)
        if kind == "stop":
            tell({"type": "usage", **usage(self._runtime)})

    def _done(self, event: Json) -> Json:
        """Return the result of a call that has ended, and the difference that it made."""
        diff = self._edits.pop(str(event["id"]), {})
        bodies = {f"{message.seq:04d}": message.body for message in self._runtime.session.messages()}
        result = {"result": bodies.get(str(event.get("seq")), "")}
        return {**result, **diff} if event.get("error") != "true" else result


def config(runtime: Runtime) -> list[Json]:
    """Return the settings, each with its value and its options, in the words of the protocol."""
    current = f"{runtime.provider}/{runtime.model}"
    models = dict.fromkeys([current, *setup.models(runtime)])
    approval = trust.setting(runtime, "approve")
    return [
        _setting("model", "model", current, {name: name for name in models}),
        _setting("approval", "mode", approval, _APPROVALS),
    ]


def _setting(name: str, category: str, value: str, options: dict[str, str]) -> Json:
    return {
        "type": "select",
        "id": name,
        "name": name.capitalize(),
        "category": category,
        "currentValue": value,
        "options": [{"value": each, "name": words} for each, words in options.items()],
    }


def choose(runtime: Runtime, name: str, value: str) -> None:
    """Set `name` to `value`. Raises UsageError."""
    known = {each["id"]: [option["value"] for option in each["options"]] for each in config(runtime)}
    if value not in known.get(name, ()):
        raise UsageError(f"{name} cannot be {value}.")
    if name == "approval":
        runtime.env["HARNESS_APPROVE"] = value
        return
    provider, _, model = value.partition("/")
    setup.switch(runtime, provider, model)


def commands(runtime: Runtime) -> list[Json]:
    """Return the slash commands: the skills."""
    return [
        {"name": skill.name, "description": unescape(skill.description)}
        for skill in skills.every(runtime).values()
    ]


def usage(runtime: Runtime) -> Json:
    """Return the tokens in the context, its size, and the cost of the session."""
    messages = runtime.session.messages()
    answers = [message for message in messages if message.role == "assistant"]
    last = context.total(answers[-1:])
    return {
        "used": last.tokens_in + last.tokens_out,
        "size": hosted.model_of(runtime).context,
        "cost": context.total(messages).cost,
    }


def edited(runtime: Runtime, call: Json) -> Json:
    """Return what `call` makes of a file as the key `diff`; nothing if it edits none, or a very large one."""
    change = builtin.change_of(runtime, str(call.get("name")), call.get("input") or {})
    if not change or max(len(change.old or ""), len(change.new)) > _LIMIT:
        return {}
    return {"diff": {"path": str(change.path), "old": change.old, "new": change.new}}

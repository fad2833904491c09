"""The conversation of Claude Code that a session continues, and how its events become messages.

Claude Code keeps its own transcript. It counts as long as nobody else has spoken in the session and nobody
has edited it; otherwise a new conversation begins, and is told what has been said.
"""

from __future__ import annotations

import uuid
from typing import NamedTuple

from harness_lib.loop import disk
from harness_lib.loop.piped import Json, dumps
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import context
from harness_lib.loop.sessions.context import Answered, Entry, User
from harness_lib.loop.sessions.message import Call, Message, Text
from harness_lib.loop.sessions.session import CONVERSATION, Session
from harness_lib.loop.stages import send, tasks, tool_calls
from harness_lib.loop.wires import anthropic
from harness_lib.loop.wires.answer import Answer
from harness_lib.sha256 import digest

_ROLES = frozenset({"user", "assistant", "tool_result"})
_GO_ON = "Go on."
_BEGAN = "This conversation began elsewhere. What was said and done so far:"
_NOW = "Now:"
# In characters, about a quarter as many tokens; the newest part is kept.
_LONGEST = 200_000
_LONGEST_RESULT = 2_000


class Conversation(NamedTuple):
    """`id` is Claude Code's; `known`: it was started before; `prompt` is the next message.

    `cost` is what it has cost so far, in US dollars: Claude Code tells sums.
    """

    id: str
    known: bool
    prompt: str
    cost: float = 0.0


def conversation(runtime: Runtime) -> Conversation:
    """Return the conversation that the session continues."""
    messages = _messages(runtime.session)
    kept = disk.read_object(runtime.session.directory / CONVERSATION)
    seq, session_id = kept.get("seq"), kept.get("session")
    if isinstance(seq, int) and isinstance(session_id, str) and kept.get("cwd") == str(runtime.session.cwd):
        seen = [message for message in messages if message.seq <= seq]
        news = [message for message in messages if message.seq > seq]
        if kept.get("sha256") == _hash(seen) and all(message.role == "user" for message in news):
            prompt = "\n\n".join(message.body for message in news if message.body.strip())
            cost = kept.get("cost")
            before = float(cost) if isinstance(cost, int | float) else 0.0
            return Conversation(session_id, known=True, prompt=prompt or _GO_ON, cost=before)
    return anew(runtime)


def anew(runtime: Runtime) -> Conversation:
    """Return a new conversation whose prompt holds the whole session."""
    entries = context.entries(runtime.messages(), {})
    place = len(entries)
    while place and isinstance(entries[place - 1], User):
        place -= 1
    asked = "\n\n".join(entry.text for entry in entries[place:] if isinstance(entry, User)) or _GO_ON
    before = "\n\n".join(_as_text(entry) for entry in entries[:place])
    prompt = f"{_BEGAN}\n\n{before[-_LONGEST:]}\n\n{_NOW}\n\n{asked}" if before else asked
    return Conversation(str(uuid.uuid4()), known=False, prompt=prompt)


def keep(runtime: Runtime, session_id: str, cost: float) -> None:
    """Store that the conversation `session_id` knows the session as it is now, and its cost so far."""
    messages = _messages(runtime.session)
    value = {
        "session": session_id,
        "seq": messages[-1].seq if messages else 0,
        "sha256": _hash(messages),
        "cwd": str(runtime.session.cwd),
        "cost": cost,
    }
    runtime.session.write(CONVERSATION, dumps(value).encode())


def _messages(session: Session) -> list[Message]:
    return [message for message in session.messages() if message.role in _ROLES]


def _hash(messages: list[Message]) -> str:
    texts = (f"{message.seq}\0{message.role}\0{message.body}\0" for message in messages)
    return digest("".join(texts).encode("utf-8", "replace"))


def _as_text(entry: Entry) -> str:
    if isinstance(entry, User):
        return f"User: {entry.text}"
    if isinstance(entry, Answered):
        return f"Result of {entry.call.name}: {entry.text[:_LONGEST_RESULT]}"
    parts = [block.text for block in entry.blocks if isinstance(block, Text)]
    parts += [f"[{block.name} {block.arguments}]" for block in entry.blocks if isinstance(block, Call)]
    return "Assistant: " + "\n".join(parts)


# The cost of the whole turn is known at its end, and saved with its last answer.
_COUNTED_LATER = {"cost": "0"}


class Scribe:
    """Hear the events of one turn; `last` is its last answer, saved when the cost of the turn is known."""

    def __init__(self, runtime: Runtime, conversation: Conversation) -> None:
        self._runtime = runtime
        self._total = conversation.cost
        self._reader = anthropic.Reader()
        self._calls: dict[str, Call] = {}
        self._session_id = ""
        self.last: Answer | None = None
        self.model = ""

    def hear(self, event: Json) -> None:
        """Take an event; ignore unknown ones and those of its subagents."""
        kind = event.get("type")
        if kind == "system" and event.get("subtype") == "init":
            self._session_id = str(event.get("session_id") or "")
            self._keep()
        elif event.get("parent_tool_use_id") is not None:
            return
        elif kind == "stream_event":
            self._streamed(event.get("event") or {})
        elif kind == "user":
            content = (event.get("message") or {}).get("content")
            for block in content if isinstance(content, list) else []:
                if isinstance(block, dict) and block.get("type") == "tool_result":
                    self._result(block)

    def spent(self, result: Json) -> dict[str, str]:
        """Return the cost of the turn from its `result`; nothing if it has none."""
        total = result.get("total_cost_usd")
        if not isinstance(total, int | float):
            return {}
        before, self._total = self._total, float(total)
        self._keep()
        return {"cost": f"{total - before if total >= before else total:.6f}"}

    def write_last(self, spent: dict[str, str]) -> None:
        """Save the last answer, if there is one that is not saved yet; `spent` is what the turn has cost."""
        answer, self.last = self.last, None
        if answer is not None:
            send.write(self._runtime, answer, self.model or self._runtime.model, spent)
            self._keep()

    def _streamed(self, event: Json) -> None:
        if event.get("type") == "message_start":
            self.write_last(_COUNTED_LATER)
            self._reader = anthropic.Reader()
            self.model = str((event.get("message") or {}).get("model") or "")
        for shown in self._reader.feed(event):
            self._runtime.stream.emit(shown.kind, **shown.values)
        native = self._reader.native()
        if event.get("type") != "message_stop" or native is None:
            return
        self.last = anthropic.answer(native)
        if self.last.calls:
            # Saved before its tools run: if hs is killed, the session must show what was started.
            self._calls |= {call.id: call for call in self.last.calls}
            self.write_last(_COUNTED_LATER)

    def _result(self, block: Json) -> None:
        call_id, error = str(block.get("tool_use_id") or ""), block.get("is_error") is True
        call = self._calls.pop(call_id, None)
        text = _text(block.get("content"))
        name, tool_input = call.name if call else "", (call.input if call else None) or {}
        tool_calls.show(self._runtime, name, tool_input, Result(text, error=error))
        tool_calls.record(self._runtime, {"call_id": call_id, "name": name, "result": text, "error": error})
        # The stage `tool_done` sees none of these calls.
        tasks.beat(self._runtime, {"name": name, "input": tool_input})
        self._keep()

    def _keep(self) -> None:
        if self._session_id:
            keep(self._runtime, self._session_id, self._total)


def _text(content: object) -> str:
    """Return a result as text; only name blocks that are not text."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return "\n".join(str(part.get("text", f"({part.get('type')})")) for part in parts)


def assemble(runtime: Runtime, payload: Json) -> Json:
    """Go on to `send` with the new messages of the user; Claude Code knows the others."""
    payload = {**payload, "messages": [], "tools": [], "next_state": "send"}
    return {**payload, "system": runtime.system} if runtime.system else payload


def pass_on(runtime: Runtime, payload: Json) -> Json:  # noqa: ARG001 (as every hook)
    """Add nothing: Claude Code brings its own."""
    return payload


def save(runtime: Runtime, result: Json) -> Json:
    """Save an answer that was not streamed, and go on to `done` with the result."""
    text = str(result.get("result") or "")
    if not result.get("saved"):
        spent = result.get("spent")
        answer = Answer([Text(text)] if text else [], "end")
        send.write(runtime, answer, runtime.model, spent if isinstance(spent, dict) else {})
    runtime.stop = str(result.get("stop") or "end")
    return {"next_state": "done", "output": text}

"""Write the events of Claude Code into the session's events and messages; the stages of such a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib.loop.claude import conversation as of_session
from harness_lib.loop.claude.conversation import Conversation
from harness_lib.loop.piped import Json
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions.message import Text
from harness_lib.loop.stages import send, tasks, tool_calls
from harness_lib.loop.wires import anthropic
from harness_lib.loop.wires.answer import Answer

if TYPE_CHECKING:
    from harness_lib.loop.sessions.message import Call


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
            of_session.keep(self._runtime, self._session_id, self._total)


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

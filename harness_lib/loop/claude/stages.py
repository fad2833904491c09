"""The stages of a turn that Claude Code does: it has its own history, tools, prompts and skills."""

from __future__ import annotations

from harness_lib.loop.piped import Json, Piped, as_object
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions.message import Text
from harness_lib.loop.stages import receive
from harness_lib.loop.wires.answer import Answer


def assemble(runtime: Runtime, piped: Piped) -> Piped:
    """Go on to `send` with what only a person says; what the session says, the provider tells."""
    payload: Json = {**(as_object(piped) or {}), "messages": [], "tools": [], "next_state": "send"}
    return {**payload, "system": runtime.system} if runtime.system else payload


def pass_on(runtime: Runtime, piped: Piped) -> Piped:  # noqa: ARG001 (as every hook)
    """Add nothing: Claude Code brings its own."""
    return piped


def save(runtime: Runtime, piped: Piped) -> Piped:
    """Save an answer that was not streamed, and go on to `done` with the result."""
    result = as_object(piped) or {}
    text = str(result.get("result") or "")
    if not result.get("saved"):
        spent = result.get("spent")
        answer = Answer([Text(text)] if text else [], "end")
        receive.write(runtime, answer, runtime.model, spent if isinstance(spent, dict) else {})
    runtime.stop = str(result.get("stop") or "end")
    return {"next_state": "done", "output": text}

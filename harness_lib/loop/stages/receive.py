"""The stage `receive`: save the answer, and see which of its calls may run."""

from __future__ import annotations

import os
from dataclasses import replace

from harness_lib.loop import disk, plugins
from harness_lib.loop.failures import HookError, ProviderError
from harness_lib.loop.piped import Json, Piped, as_object
from harness_lib.loop.providers import endpoints, models
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import history
from harness_lib.loop.sessions.message import Call, Message, render_blocks
from harness_lib.loop.stages import tool_calls
from harness_lib.loop.wires import exchange
from harness_lib.loop.wires.answer import Answer

# An answer of which no call could be run; so many in a row, and the model will not find out by itself.
_SPOILED_ANSWERS = 3
_USUAL_FENCE = 3


def save(runtime: Runtime, piped: Piped) -> Piped:
    """Save the answer; go on to `tool_exec` with its calls, or to `done` with its text."""
    try:
        speaker, answer = exchange.read(endpoints.speaker(runtime), as_object(piped) or {})
    except ProviderError as error:
        raise HookError(str(error), {"error": str(error)}) from error
    answer = _repeatable(answer)
    runtime.stop = answer.stop
    message = write(runtime, answer, runtime.model, models.spent(runtime, answer, speaker.model))
    if answer.native and message is not None and runtime.session is not None:
        history.save_native(runtime.session, message, speaker, answer.native)
    if not answer.calls:
        return {"next_state": "done", "output": answer.text}
    runnable = [call for call in answer.calls if not _refused(runtime, call, answer.stop)]
    if runnable:
        runtime.kept["spoiled"] = 0
        calls = [{"id": call.id, "name": call.name, "input": call.input} for call in runnable]
        return {"next_state": "tool_exec", "tool_calls": calls}
    runtime.kept["spoiled"] = runtime.kept.get("spoiled", 0) + 1
    if runtime.kept["spoiled"] < _SPOILED_ANSWERS:
        return {"next_state": "assemble"}
    problem = f"The model's last {_SPOILED_ANSWERS} answers had calls that could not be run; the turn ends."
    raise HookError(problem, {"error": problem})


def _repeatable(answer: Answer) -> Answer:
    """Make an answer of which its host takes back every call: no host checks what its own model says.

    Calls without an id of their own get a new one, and names get the characters that hosts take.
    """
    known: set[str] = set()
    blocks = []
    for block in answer.blocks:
        repeatable = block
        if isinstance(block, Call) and (not block.id or block.id in known or block.id.split() != [block.id]):
            repeatable = replace(block, id=f"call_{os.urandom(16).hex()}")
        if isinstance(repeatable, Call):
            known.add(repeatable.id)
            name = disk.for_hosts(repeatable.name)
            repeatable = repeatable if name == repeatable.name else replace(repeatable, name=name)
        blocks.append(repeatable)
    return answer if blocks == answer.blocks else answer._replace(blocks=blocks, native=None)


def write(runtime: Runtime, answer: Answer, model: str, spent: dict[str, str]) -> Message | None:
    """Save `answer`, and tell that it has stopped; None without a session. `spent`: its `cost`, if known."""
    if runtime.session is None:
        return None
    body, fence = render_blocks(answer.blocks)
    fields = {
        "model": model,
        "provider": runtime.provider,
        "stop": answer.stop,
        "tokens_in": str(answer.tokens_in),
        "tokens_out": str(answer.tokens_out),
        "tokens_cached": str(answer.tokens_cached),
        "tokens_cache_write": str(answer.tokens_cache_write),
        **spent,
        **({"fence": str(fence)} if fence > _USUAL_FENCE else {}),
    }
    message = runtime.session.append("assistant", fields, body)
    runtime.stream.emit("stop", reason=answer.stop, seq=f"{message.seq:04d}")
    return message


def _refused(runtime: Runtime, call: Call, stop: str) -> bool:
    """Answer a call that must not run with the reason; return whether it was one."""
    problem = _problem(runtime, call, stop)
    if problem:
        done: Json = {"call_id": call.id, "name": call.name, "result": f"error: {problem}", "error": True}
        tool_calls.record(runtime, done)
    return bool(problem)


def _problem(runtime: Runtime, call: Call, stop: str) -> str:
    if stop == "length":
        return "the answer was cut off by its length limit, so this call was not run. Ask for less at once."
    tool_input = call.input
    if tool_input is None:
        return "the arguments are no JSON object, so this call was not run."
    tool = plugins.tool(runtime, call.name)
    schema = tool.schema(runtime) if tool else None
    required = ((schema or {}).get("input_schema") or {}).get("required") or []
    missing = [name for name in required if name not in tool_input]
    return f"the call lacks {', '.join(missing)}, so it was not run." if missing else ""

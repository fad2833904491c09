"""The stages `send` and `receive`: ask the provider, save its answer, and see which of its calls may run.

Where the session fills the context of its model, it is summarised first.

The messages stay where they are; `NNNN-summary.md` names the first that is still told (`keep`). A summary
that does not help is not tried again in the same turn, or it would cost a request before every request.
"""

from __future__ import annotations

from dataclasses import replace

from harness_lib.loop import disk, plugins
from harness_lib.loop.piped import ContextError, HookError, Json, ProviderError
from harness_lib.loop.providers import hosted
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import context
from harness_lib.loop.sessions.context import Cut
from harness_lib.loop.sessions.session import SIZE_LIMIT, Call, Message, Text, Thinking, render_blocks
from harness_lib.loop.stages import tool_calls
from harness_lib.loop.wires.answer import Answer, adapter, new_id

# The most requests of a turn.
DEFAULT_TURNS = 100
_FULL = 0.8
_HELPS = 0.8
_ASKED = (
    "The conversation has become too long. Write a summary that will take the place of everything above: "
    "what was asked for, word for word where it matters, what was decided and why, what was done and how it "
    "came out, what is left to do, and every name, path, number and error that is still needed. "
    "Call no tool; answer with the summary alone."
)
_HEAD = "Summary of the conversation so far, whose messages are left out:"


def send(runtime: Runtime, payload: Json) -> Json:
    """Return the provider's native answer to the payload, and go on to `receive`."""
    _check_limits(runtime)
    plugin = hosted.with_own_api(runtime)
    limit = hosted.model_of(runtime).context
    is_full = limit and context.tokens(runtime.session.messages()) > limit * _FULL
    # A provider that keeps the conversation also makes room in it.
    if is_full and plugin is None and compact(runtime, payload):
        return {"next_state": "assemble"}
    runtime.requests += 1
    runtime.stream.empty()
    try:
        answer = (plugin.target if plugin else hosted.host(runtime)).ask(runtime, payload)
    except ContextError:
        # Only once: if the request is too long even after a summary, a second one does not help.
        if runtime.kept.get("overflowed") or not compact(runtime, payload):
            raise
        runtime.kept["overflowed"] = True
        runtime.requests -= 1
        return {"next_state": "assemble"}
    runtime.kept["overflowed"] = False
    return {**answer, "next_state": "receive"}


def _check_limits(runtime: Runtime) -> None:
    """Raise HookError at the limit of the session's size, of requests, or of cost."""
    if runtime.session.is_full:
        message = (
            f"The session {runtime.session.id} has more than {SIZE_LIMIT >> 20} MiB on disk, which is the "
            f"limit. Look at what is large in {runtime.session.directory}, or begin another session."
        )
        raise HookError(message)
    allowed = disk.number(runtime.env["HARNESS_MAX_TURNS"], DEFAULT_TURNS)
    most, stop, why = runtime.env.get("HARNESS_MAX_COST", ""), "", ""
    if runtime.requests >= allowed:
        stop = "max_turns"
        why = f"The limit of {allowed} requests is reached (--max-turns, HARNESS_MAX_TURNS)"
    elif most and (runtime.requests or float(most) == 0):
        stop, account = "max_cost", runtime.spent()
        if account.cost is None:
            # Going on could cost anything.
            why = f"--max-cost cannot be kept: no price is known for {runtime.model}"
        elif account.cost >= float(most):
            why = f"The limit of {most} dollars is reached (--max-cost): {account.shown()} spent"
    if why:
        runtime.stop = stop
        raise HookError(f"{why}; resume the session to go on.")


def compact(runtime: Runtime, payload: Json) -> bool:
    """Summarise the older messages; return whether that worked. Show the problem if not."""
    if not runtime.session or runtime.kept.get("summary failed") == runtime.first:
        return False
    problem = _summarise(runtime, runtime.session.messages(), payload)
    if problem:
        runtime.kept["summary failed"] = runtime.first
        runtime.notice(f"the conversation is not summarised: {problem}")
    return not problem


def _summarise(runtime: Runtime, messages: list[Message], payload: Json) -> str:
    """Return why there is no summary, or "" where one was written."""
    limit = hosted.model_of(runtime).context
    seen = context.view(messages)
    before = seen.tokens
    cut = context.cut(messages, limit or before)
    if cut is None or context.guess(cut.older) < before * (1 - _HELPS):
        return "there is too little that a summary could stand for."
    try:
        text, fields = _ask_summary(runtime, cut, payload)
    except ProviderError as error:
        return str(error)
    body = "\n\n".join(part for part in (_HEAD, text, context.carried(cut.older)) if part)
    kept = [message for message in seen.messages if message.seq >= cut.keep]
    after = context.guess([Message(0, "summary", body), *kept])
    is_too_long = after > before * _HELPS or (limit and after > limit * _FULL)
    if not text or is_too_long:
        problem = "the summary is too long to help." if text else "the model has written none."
        # Kept for what it has cost.
        runtime.session.append("error", {**fields, "stop": "error", "error": problem}, text)
        return problem
    message = runtime.session.append("summary", {**fields, "keep": f"{cut.keep:04d}"}, body)
    runtime.log(
        f"hs: the conversation was summarised, {before} tokens to {after} ({message.seq:04d}-summary.md)."
    )
    runtime.stream.emit("summary", seq=f"{message.seq:04d}")
    return ""


def _ask_summary(runtime: Runtime, cut: Cut, payload: Json) -> tuple[str, dict[str, str]]:
    """Return the model's summary and its cost. The request begins as the others do, for the host's cache."""
    host = hosted.host(runtime)
    speaker = host.speaker(runtime)
    wire = adapter(speaker.wire)
    replayed = context.load_native(runtime.session, cut.older, speaker, runtime.kept)
    entries = [*context.entries(cut.older, replayed), context.User(_ASKED)]
    answer = wire.answer(host.ask(runtime, {**payload, "messages": wire.messages(entries)}, quiet=True))
    fields = {
        "model": speaker.model,
        "provider": speaker.provider,
        "tokens_in": str(answer.tokens_in),
        "tokens_out": str(answer.tokens_out),
        **hosted.model_of(runtime, speaker.model).spent(answer),
    }
    return ("" if answer.stop == "length" else answer.text.strip()), fields


# So many answers in a row without a valid call end the turn: the model will not correct itself.
_SPOILED_ANSWERS = 3
_USUAL_FENCE = 3
# How an answer stops in which the model has said all that it wanted to.
_WHOLE = frozenset({"end", "tool_calls", "stop_sequence"})


def save(runtime: Runtime, native: Json) -> Json:
    """Save the answer; go on to `tool_exec` with its calls, or to `done` with its text."""
    speaker = hosted.host(runtime).speaker(runtime)
    if speaker.wire == "responses" and "choices" in native:
        # OpenAI's two APIs are told apart by the shape.
        speaker = speaker._replace(wire="chat")
    answer = _repeatable(adapter(speaker.wire).answer(native))
    runtime.stop = answer.stop
    message = write(runtime, answer, runtime.model, hosted.model_of(runtime, speaker.model).spent(answer))
    if answer.native:
        context.save_native(runtime.session, message, speaker, answer.native)
    if not answer.calls:
        if answer.stop not in _WHOLE:
            runtime.notice(f"the answer ended early: {answer.stop}")
        return {"next_state": "done", "output": answer.text}
    calls: list[Json] = []
    for call in answer.calls:
        if problem := _problem(runtime, call, answer.stop):
            done: Json = {"call_id": call.id, "name": call.name, "result": f"error: {problem}", "error": True}
            tool_calls.record(runtime, done)
        else:
            calls.append({"id": call.id, "name": call.name, "input": call.input})
    if calls:
        runtime.kept["spoiled"] = 0
        return {"next_state": "tool_exec", "tool_calls": calls}
    runtime.kept["spoiled"] = runtime.kept.get("spoiled", 0) + 1
    if runtime.kept["spoiled"] < _SPOILED_ANSWERS:
        return {"next_state": "assemble"}
    problem = f"The model's last {_SPOILED_ANSWERS} answers had calls that could not be run; the turn ends."
    raise HookError(problem)


def _repeatable(answer: Answer) -> Answer:
    """Return `answer` with ids and names of calls that its host accepts back.

    Calls without an id of their own get a new one, and names get the characters that hosts take.
    """
    known: set[str] = set()
    blocks = []
    for block in answer.blocks:
        repeatable = block
        if isinstance(block, Call) and (not block.id or block.id in known or block.id.split() != [block.id]):
            repeatable = replace(block, id=new_id())
        if isinstance(repeatable, Call):
            known.add(repeatable.id)
            name = disk.for_hosts(repeatable.name)
            repeatable = repeatable if name == repeatable.name else replace(repeatable, name=name)
        blocks.append(repeatable)
    told = [block for block in blocks if not isinstance(block, Text) or block.text.strip()]
    # Hosts refuse thoughts that nothing follows, and arguments that they cannot read.
    spoils = not told or isinstance(told[-1], Thinking) or any(call.input is None for call in answer.calls)
    return answer._replace(blocks=blocks, native=None if spoils or blocks != answer.blocks else answer.native)


def write(runtime: Runtime, answer: Answer, model: str, spent: dict[str, str]) -> Message:
    """Save `answer`, and tell that it has stopped. `spent`: its `cost`, if known."""
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


def _problem(runtime: Runtime, call: Call, stop: str) -> str:
    """Return why `call` of an answer that ended by `stop` must not run; "" if it may."""
    if stop == "length":
        return "the answer was cut off by its length limit, so this call was not run. Ask for less at once."
    tool_input = call.input
    if tool_input is None:
        return "the arguments are not a JSON object, so this call was not run."
    tool = plugins.tool(runtime, call.name)
    schema = tool.schema(runtime) if tool else None
    required = ((schema or {}).get("input_schema") or {}).get("required") or []
    missing = [name for name in required if name not in tool_input]
    return f"the call lacks {', '.join(missing)}, so it was not run." if missing else ""

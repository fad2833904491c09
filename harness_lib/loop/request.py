"""A request from its parts to its saved answer: the stages `start`, `assemble`, `send`, `receive`, `error`.

Where the session fills the context of its model, it is summarised first.
The messages stay where they are; `NNNN-summary.md` names the first that is still told (`keep`). A summary
that does not help is not tried again in the same turn, or it would cost a request before every request.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import cast

from harness_lib.loop import context, disk, hosted, mcp_servers, processes, tool_calls, trust
from harness_lib.loop.piped import ContextError, HookError, Json, ProviderError
from harness_lib.loop.plugins import Tool
from harness_lib.loop.runtime import Plugin, Runtime
from harness_lib.loop.session import SIZE_LIMIT, Call, Message, Text, Thinking, render_blocks
from harness_lib.loop.tools import skills
from harness_lib.loop.wires.answer import Answer, adapter, new_id

_AGENTS_LIMIT = 32 * 1024
_PROMPT_LIMIT = 256 * 1024
_SKILLS = (
    "These skills hold instructions for particular work. "
    "When a task matches a description, load the skill by the tool `skill` before you begin."
)


def start(runtime: Runtime, payload: Json) -> Json:  # noqa: ARG001
    """Go on to `assemble`."""
    return {**payload, "next_state": "assemble"}


def display(runtime: Runtime, payload: Json) -> Json:
    """Turn the error into the output of the run."""
    error = payload.get("error")
    text = str(error) if error else f"hook pipeline failed (check {runtime.env['HARNESS_LOG']})"
    runtime.stream.emit("error", message=text)
    return {"output": f"error: {text}"}


def tell_typed(runtime: Runtime, payload: Json) -> Json:
    """Append the messages typed during the turn; every call has its result here, so they may follow."""
    # A message that is taken is stored nowhere else yet.
    with processes.uninterrupted():
        for text in runtime.typed_meanwhile():
            runtime.session.append("user", {}, skills.called(runtime, text))
    return payload


def messages(runtime: Runtime, payload: Json) -> Json:
    """Add `messages`: the session's, on the API of its provider."""
    speaker = hosted.host(runtime).speaker(runtime)
    conversation = runtime.session.messages()
    replayed = context.load_native(runtime.session, conversation, speaker, runtime.kept)
    entries = context.entries(conversation, replayed)
    return {**payload, "messages": adapter(speaker.wire).messages(entries)}


def tools(runtime: Runtime, payload: Json) -> Json:
    """Add `tools`: the schema of each, by name, so that the beginning of every request is the same."""
    if runtime.servers and mcp_servers.prepare(runtime):
        for plugin in mcp_servers.known(runtime):
            if plugin[:3] not in runtime.table.entries:
                runtime.table.add(plugin)
    schemas = (schema_of(runtime, plugin) for plugin in runtime.table.of("tools"))
    return {**payload, "tools": [schema for schema in schemas if schema is not None]}


def schema_of(runtime: Runtime, plugin: Plugin) -> Json | None:
    """Return the schema of the tool `plugin`; None, reported once, if its name is not that of the file."""
    name, schema = plugin.name, cast("Tool", plugin.target).schema(runtime)
    if schema is None or (schema.get("name") == name and disk.for_hosts(name) == name):
        return schema
    other = schema.get("name")
    why = f"its schema has the name {other}" if other != name else "no host takes such a name"
    runtime.notice_once(f"the tool {name} is left out: {why}.")
    return None


def prompts(runtime: Runtime, payload: Json) -> Json:
    """Set `system` to the prompts of all sources and the instructions here, and go on to `send`."""
    if runtime.system is None:
        files = (
            Path(source, "prompts", name)
            for source in runtime.sources
            for name in disk.visible_names(f"{source}{os.sep}prompts")
            if name.endswith(".md")
        )
        owners = ((file, trust.project_of_source(runtime, str(file.parents[1]))) for file in files)
        parts = [_read_prompt(file, _PROMPT_LIMIT) for file, owner in owners if trust.has_text(owner, file)]
    else:
        parts = [runtime.system.strip()]
    parts += [_read_prompt(path, _AGENTS_LIMIT) for path in instructions(runtime)]
    system = "\n\n".join(part for part in parts if part)
    return {**payload, "system": system, "next_state": "send"}


def instructions(runtime: Runtime) -> list[Path]:
    """Return the AGENTS.md of home, beside each source, and from the repository's root to here.

    CLAUDE.md counts where there is none. A link out of the project is ignored: it could lead to a secret. Of
    a caller that has named its sources only what is beside those.
    """
    work_directory = runtime.work_directory.resolve()
    root = trust.project_root(runtime, work_directory)
    way = [path for path in (*reversed(work_directory.parents), work_directory) if path.is_relative_to(root)]
    beside = [Path(source).parent for source in runtime.sources]
    places = [(path, path) for path in beside if path not in way or runtime.without_core]
    if not runtime.without_core:
        places += [(path, root) for path in way]
    mine = runtime.home.parent / "AGENTS.md"
    files = [mine] if mine.is_file() and not runtime.without_core else []
    for directory, project in places:
        there = [path for name in ("AGENTS.md", "CLAUDE.md") if (path := directory / name).is_file()]
        files += [path for path in there[:1] if path not in files and trust.has_text(project, path)]
    return files


def _read_prompt(path: Path, limit: int) -> str:
    """Return the text of `path`, at most `limit` bytes; nothing if it cannot be read."""
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError:
        return ""
    text = data[:limit].decode("utf-8", "replace").strip()
    return f"{text}\n[{path} goes on; read the file for the rest]" if len(data) > limit else text


def catalogue(runtime: Runtime, payload: Json) -> Json:
    """Append the catalogue of skills to `system`."""
    available = skills.every(runtime)
    if not available:
        return payload
    lines = [
        f'<skill name="{skill.name}" path="{skill.path}">\n{skill.description}\n</skill>'
        for skill in available.values()
    ]
    text = "\n".join([_SKILLS, "", "<available-skills>", *lines, "</available-skills>"])
    system = payload.get("system") or ""
    if not isinstance(system, str):
        raise HookError("a hook of the stage assemble has made a `system` that is not text")
    return {**payload, "system": f"{system}\n\n{text}".lstrip()}


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
    if is_full and not plugin and compact(runtime, payload):
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
    if not cut or context.guess(cut.older) < before * (1 - _HELPS):
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


def _ask_summary(runtime: Runtime, cut: context.Cut, payload: Json) -> tuple[str, dict[str, str]]:
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
        if isinstance(block, Call):
            is_usable = block.id not in known and block.id.split() == [block.id]
            repeatable = (block if is_usable else replace(block, id=new_id())).named_for_hosts
            known.add(repeatable.id)
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
    plugin = runtime.table.find("tools", call.name)
    schema = schema_of(runtime, plugin) if plugin else {}
    if schema is None:
        return f"there is no tool {call.name} here, so this call was not run."
    required = (schema.get("input_schema") or {}).get("required") or []
    missing = [name for name in required if name not in tool_input]
    return f"the call lacks {', '.join(missing)}, so it was not run." if missing else ""

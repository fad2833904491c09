"""The adapter of Anthropic's Messages API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from harness_lib.loop import context, disk
from harness_lib.loop.piped import Json, ProviderError, as_object
from harness_lib.loop.session import Block, Call, Text, Thinking
from harness_lib.loop.wires.answer import (
    Answer,
    Endpoint,
    Shown,
    as_string,
    as_table,
    as_tables,
    broken_off,
    count,
    started,
    tools_of,
)

_STOPS = {
    "end_turn": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
# The parts of a block: the kind of each, and its key. Some are shown as they come.
_DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
_SHOWN = frozenset({"text", "thinking"})
_MARK = {"type": "ephemeral"}
_LOOKED_BACK = 18


def messages(history: list[context.Entry]) -> list[Json]:
    """Return the history; results that follow each other are one message, as the host demands."""
    messages: list[Json] = []
    named: Callable[[str], str] = str
    for entry in history:
        if isinstance(entry, context.User):
            messages.append({"role": "user", "content": entry.text})
        elif isinstance(entry, context.Assistant):
            # Ids of another host may have characters that this one refuses.
            named = str if entry.native else disk.for_hosts
            messages.append({"role": "assistant", "content": entry.native or _content(entry.blocks)})
        elif messages and messages[-1]["role"] == "user" and isinstance(messages[-1]["content"], list):
            messages[-1]["content"].append(_result(entry, named(entry.call.id)))
        else:
            messages.append({"role": "user", "content": [_result(entry, named(entry.call.id))]})
    return messages


def body(payload: Json, endpoint: Endpoint) -> Json:
    """Return the request; its beginning is the same for every request of a session."""
    request: Json = {"model": endpoint.model, "max_tokens": endpoint.max_tokens}
    tools = tools_of(payload)
    if tools:
        request["tools"] = tools
    if payload.get("system"):
        request["system"] = payload["system"]
    request["messages"] = payload.get("messages") or []
    if endpoint.effort:
        request |= {"thinking": {"type": "adaptive"}, "output_config": {"effort": endpoint.effort}}
    if endpoint.cached:
        _mark(request)
    return request


def answer(native: Json) -> Answer:
    """Return what a message says."""
    content = native.get("content")
    if not isinstance(content, list):
        raise ProviderError("The provider's answer has no content.")
    content = as_tables(content)
    blocks = [block for entry in content if (block := _block(entry))]
    usage = as_table(native.get("usage"))
    cached, written = (
        count(usage.get("cache_read_input_tokens")),
        count(usage.get("cache_creation_input_tokens")),
    )
    stop = str(native.get("stop_reason") or "end_turn")
    return Answer(
        blocks=blocks,
        stop=_STOPS.get(stop, stop),
        tokens_in=count(usage.get("input_tokens")) + cached + written,
        tokens_out=count(usage.get("output_tokens")),
        tokens_cached=cached,
        tokens_cache_write=written,
        # The host does not take back text without a word.
        native=[
            each for each in content if each.get("type") != "text" or as_string(each.get("text")).strip()
        ],
    )


class Reader:
    """Puts a streamed message together, block by block."""

    def __init__(self) -> None:
        self._message: Json = {}
        self._usage: Json = {}
        self._blocks: dict[int, Json] = {}
        self._finished: list[int] = []
        self._ended = False

    def feed(self, event: Json) -> Iterator[Shown]:
        kind = event.get("type")
        if kind == "message_start":
            self._message = as_table(event.get("message"))
            self._usage = dict(as_table(self._message.get("usage")))
        elif kind == "content_block_start":
            self._blocks[count(event.get("index"))] = dict(as_table(event.get("content_block")))
        elif kind == "content_block_delta":
            yield from self._delta(count(event.get("index")), as_table(event.get("delta")))
        elif kind == "content_block_stop":
            yield from self._stop(count(event.get("index")))
        elif kind == "message_delta":
            reason = as_table(event.get("delta")).get("stop_reason")
            self._message["stop_reason"] = reason or self._message.get("stop_reason")
            self._usage |= {
                key: value for key, value in as_table(event.get("usage")).items() if value is not None
            }
        elif kind == "message_stop":
            self._ended = True
        elif kind == "error":
            raise broken_off(event.get("error"))

    def native(self) -> Json | None:
        if not self._ended:
            return None
        return {
            "model": self._message.get("model", ""),
            "stop_reason": self._message.get("stop_reason"),
            "usage": self._usage,
            "content": [self._blocks[index] for index in self._finished],
        }

    def _delta(self, index: int, delta: Json) -> Iterator[Shown]:
        block, key = self._blocks.setdefault(index, {}), _DELTAS.get(str(delta.get("type")), "")
        text = as_string(delta.get(key))
        if key:
            block[key] = as_string(block.get(key)) + text
        if key in _SHOWN:
            yield Shown(key, {"text": text})

    def _stop(self, index: int) -> Iterator[Shown]:
        block = self._blocks.get(index)
        if block is None:
            return
        self._finished.append(index)
        if block.get("type") == "tool_use":
            text = block.pop("partial_json", "")
            value = as_object(text) if text.strip() else as_table(block.get("input"))
            # Invalid arguments are kept as text.
            block |= {"partial_json": text} if value is None else {"input": value}
            yield started(_call(block))


def _block(entry: Json) -> Block | None:
    kind = entry.get("type")
    if kind == "text":
        return Text(str(entry.get("text") or ""))
    if kind == "thinking":
        return Thinking(str(entry.get("thinking") or ""), str(entry.get("signature") or ""))
    return _call(entry) if kind == "tool_use" else None


def _call(entry: Json) -> Call:
    arguments = entry["partial_json"] if "partial_json" in entry else json.dumps(entry.get("input", {}))
    return Call(str(entry.get("id") or ""), str(entry.get("name") or ""), arguments)


def _content(blocks: list[Block]) -> str | list[Json]:
    """Return the blocks; leave out thinking of another host and empty text, which this one refuses."""
    content: list[Json] = []
    for block in blocks:
        if isinstance(block, Text):
            content.append({"type": "text", "text": block.text.rstrip()})
        elif isinstance(block, Call):
            identity = disk.for_hosts(block.id)
            content.append(
                {"type": "tool_use", "id": identity, "name": block.name, "input": block.input or {}}
            )
    if not content:
        return "(no answer)"
    return str(content[0]["text"]) if len(content) == 1 and content[0]["type"] == "text" else content


def _result(entry: context.Answered, identity: str) -> Json:
    result: Json = {"type": "tool_result", "tool_use_id": identity, "content": entry.text}
    if not entry.error:
        return result
    # An empty error is refused.
    return {**result, "content": entry.text if entry.text.strip() else "(no output)", "is_error": True}


def _mark(request: Json) -> None:
    """Mark where the host's cache may end: after the fixed part, after the last request, and at the end.

    A host looks some twenty blocks back from a mark for what it knows, so there is one between where an
    answer had more calls than that. Four are allowed.
    """
    if request.get("system"):
        request["system"] = [{"type": "text", "text": request["system"], "cache_control": _MARK}]
    elif request.get("tools"):
        request["tools"] = [*request["tools"][:-1], {**request["tools"][-1], "cache_control": _MARK}]
    messages = request["messages"] = [
        {**message, "content": _blocks(message)} for message in request["messages"]
    ]
    places = [
        (message, block) for message, entry in enumerate(messages) for block in range(len(entry["content"]))
    ]
    if not places:
        return
    answered = max(
        (number for number, entry in enumerate(messages) if entry["role"] == "assistant"), default=0
    )
    before = sum(len(entry["content"]) for entry in messages[:answered])
    marked = {len(places) - 1, *([before - 1] if before else [])}
    if len(places) - before > _LOOKED_BACK:
        marked.add(before + (len(places) - before) // 2)
    for number in marked:
        message, block = places[number]
        content = messages[message]["content"]
        # What is signed cannot be marked.
        if content[block].get("type") not in {"thinking", "redacted_thinking"}:
            content[block] = {**content[block], "cache_control": _MARK}


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)

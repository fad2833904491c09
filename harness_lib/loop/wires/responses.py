"""The adapter of OpenAI's Responses API; nothing is stored there."""

from __future__ import annotations

from collections.abc import Iterator

from harness_lib.loop.context import Assistant, Entry, User
from harness_lib.loop.piped import Json, ProviderError
from harness_lib.loop.session import Block, Call, Text, Thinking
from harness_lib.loop.wires.answer import (
    NO_FIELD,
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

# These do not reason, and their host refuses to encrypt what they have not thought.
_WITHOUT_REASONING = ("gpt-3", "gpt-4", "chatgpt-4")
# Nothing is stored, so no item can be found again by its id.
_STORED = frozenset({"id", "status"})


def messages(history: list[Entry]) -> list[Json]:
    """Return the history as items."""
    items: list[Json] = []
    for entry in history:
        if isinstance(entry, User):
            items.append(_message("user", "input_text", entry.text))
        elif isinstance(entry, Assistant):
            said = entry.native or _items(entry.blocks)
            # Models leave arguments empty, which no host takes back.
            items += [
                {**item, "arguments": item["arguments"] or "{}"} if "arguments" in item else item
                for item in said
            ]
        else:
            items.append({"type": "function_call_output", "call_id": entry.call.id, "output": entry.text})
    return items


def body(payload: Json, endpoint: Endpoint) -> Json:
    """Return the request."""
    request: Json = {"model": endpoint.model, "store": False}
    if endpoint.conf.get("max_tokens_field") != NO_FIELD:
        request["max_output_tokens"] = endpoint.max_tokens
    if payload.get("system"):
        request["instructions"] = payload["system"]
    tools = tools_of(payload)
    if tools:
        request["tools"] = [
            {
                "type": "function",
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["input_schema"],
                # What strict schemas may not say, tools do.
                "strict": False,
            }
            for tool in tools
        ]
    request["input"] = payload.get("messages") or []
    if not endpoint.model.startswith(_WITHOUT_REASONING):
        request["include"] = ["reasoning.encrypted_content"]
    if endpoint.session:
        request["prompt_cache_key"] = endpoint.session
    if endpoint.effort:
        request["reasoning"] = {"effort": endpoint.effort}
    return request


def answer(native: Json) -> Answer:
    """Return what a response says."""
    output = native.get("output")
    if not isinstance(output, list):
        raise ProviderError("The provider's answer has no output.")
    output = as_tables(output)
    blocks = [block for item in output for block in _blocks(item)]
    usage = as_table(native.get("usage"))
    details = as_table(usage.get("input_tokens_details"))
    stop = "tool_calls" if any(isinstance(block, Call) for block in blocks) else "end"
    if native.get("status") == "incomplete":
        reason = str(as_table(native.get("incomplete_details")).get("reason") or "")
        stop = "length" if reason in {"", "max_output_tokens"} else reason
    items = [{key: value for key, value in item.items() if key not in _STORED} for item in output]
    return Answer(
        blocks=blocks,
        stop=stop,
        tokens_in=count(usage.get("input_tokens")),
        tokens_out=count(usage.get("output_tokens")),
        tokens_cached=count(details.get("cached_tokens")),
        # Models read from the phase whether a message was the answer.
        native=items if any(item.get("type") == "reasoning" or item.get("phase") for item in items) else None,
    )


class Reader:
    """Takes the response that the last event carries; items are kept for hosts that leave them out of it."""

    def __init__(self) -> None:
        self._items: dict[int, Json] = {}
        self._response: Json | None = None

    def feed(self, event: Json) -> Iterator[Shown]:
        kind = event.get("type")
        if kind == "response.output_text.delta":
            yield Shown("text", {"text": as_string(event.get("delta"))})
        elif kind in {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}:
            yield Shown("thinking", {"text": as_string(event.get("delta"))})
        elif kind == "response.output_item.done":
            item = as_table(event.get("item"))
            self._items[count(event.get("output_index"))] = item
            if item.get("type") == "function_call":
                yield started(_call(item))
        elif kind in {"response.completed", "response.incomplete"}:
            self._response = as_table(event.get("response"))
        elif kind == "response.failed":
            raise broken_off(as_table(event.get("response")).get("error"))
        elif kind == "error":
            raise broken_off(event.get("error") or event)

    def native(self) -> Json | None:
        if self._response is None:
            return None
        items = [self._items[index] for index in sorted(self._items)]
        return {"object": "response", **self._response, "output": self._response.get("output") or items}


def _blocks(item: Json) -> list[Block]:
    kind = item.get("type")
    if kind == "message":
        parts = as_tables(item.get("content"))
        text = "".join(as_string(part.get("text")) or as_string(part.get("refusal")) for part in parts)
        return [Text(text)] if text else []
    if kind == "function_call":
        return [_call(item)]
    if kind == "reasoning":
        # Open models show what they think, not a summary of it.
        parts = as_tables(item.get("summary")) or as_tables(item.get("content"))
        text = "\n".join(str(part.get("text") or "") for part in parts)
        return [Thinking(text)] if text else []
    return []


def _call(item: Json) -> Call:
    return Call(str(item.get("call_id") or ""), str(item.get("name") or ""), as_string(item.get("arguments")))


def _items(blocks: list[Block]) -> list[Json]:
    items: list[Json] = []
    for block in blocks:
        if isinstance(block, Text):
            items.append(_message("assistant", "output_text", block.text))
        elif isinstance(block, Call):
            call = {"type": "function_call", "call_id": block.id, "name": block.name}
            items.append({**call, "arguments": block.compact})
    return items or [_message("assistant", "output_text", "(no answer)")]


def _message(role: str, kind: str, text: str) -> Json:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

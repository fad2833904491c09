"""A host of Anthropic's Messages API, as strict as the real one about the order of messages."""

from __future__ import annotations

import re

from tests.loop.servers.cache import Count
from tests.loop.servers.script import Handler, Json, Step, check_name, check_tool, new_id, refuse_unless


class Messages(Handler):
    def check(self, body: Json) -> None:
        refuse_unless(self.path == "/v1/messages", f"no such path: {self.path}")
        refuse_unless(
            self.headers.get("x-api-key") or self.headers.get("authorization"), "x-api-key is missing"
        )
        refuse_unless(self.headers.get("anthropic-version"), "anthropic-version is missing")
        known = {"model", "max_tokens", "system", "messages", "tools", "stream", "thinking", "output_config"}
        refuse_unless(set(body) <= known, f"extra inputs are not permitted: {set(body) - known}")
        refuse_unless(body.get("model"), "model: field required")
        refuse_unless(isinstance(body.get("max_tokens"), int), "max_tokens: field required")
        refuse_unless(body.get("messages"), "messages: at least one message is required")
        for tool in body.get("tools", []):
            check_tool(tool["name"], tool["input_schema"])
            extra = set(tool) - {"name", "description", "input_schema", "cache_control"}
            refuse_unless(not extra, f"tools: extra inputs are not permitted: {extra}")
        _check_messages(body["messages"])

    def error(self, message: str) -> Json:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}

    def events(self, step: Step, body: Json) -> list[tuple[str, Json | str]]:
        count = self.server.cache.anthropic(body) if self.server.cache else Count(20, 7, 3)
        return [(event["type"], event) for event in answered(step, body["model"], count)]


def answered(step: Step, model: str, count: Count) -> list[Json]:
    """Return the events of an answer."""
    usage = {
        "input_tokens": count.tokens - count.read - count.written,
        "output_tokens": 1,
        "cache_creation_input_tokens": count.written,
        "cache_read_input_tokens": count.read,
    }
    head = {"type": "message", "role": "assistant", "content": []}
    message = {**head, "id": new_id("msg"), "model": model, "usage": usage}
    events: list[Json] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for index, (start, deltas) in enumerate(_blocks(step)):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = step.stop or ("tool_use" if step.uses else "end_turn")
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}})
    return [*events, {"type": "message_stop"}]


def _blocks(step: Step) -> list[tuple[Json, list[Json]]]:
    blocks: list[tuple[Json, list[Json]]] = []
    if step.thinking:
        thought = {"type": "thinking_delta", "thinking": step.thinking}
        deltas = [thought, {"type": "signature_delta", "signature": "c2lnbmVk"}]
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if step.redacted:
        blocks.append(({"type": "redacted_thinking", "data": step.redacted}, []))
    if step.text:
        half = len(step.text) // 2
        parts = [{"type": "text_delta", "text": part} for part in (step.text[:half], step.text[half:])]
        blocks.append(({"type": "text", "text": ""}, parts))
    for use in step.uses:
        named = new_id("toolu") if use.id is None else use.id
        start = {"type": "tool_use", "id": named, "name": use.name, "input": {}}
        blocks.append((start, [{"type": "input_json_delta", "partial_json": part} for part in use.parts]))
    return blocks


def _check_messages(messages: list[Json]) -> None:
    refuse_unless(messages[0]["role"] == "user", "messages: first message must use the user role")
    waiting: set[str] = set()
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        refuse_unless(blocks, f"{where}: content is empty")
        results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        refuse_unless(results == waiting, f"{where}: tool_use ids {waiting} were not answered by {results}")
        refuse_unless(not results or message["role"] == "user", f"{where}: results must be the user's")
        for block in blocks:
            if block["type"] == "tool_use":
                check_name(block["name"])
                refuse_unless(re.fullmatch("[a-zA-Z0-9_-]+", block["id"]), f"{where}: id: {block['id']!r}")
        is_last = "thinking" in blocks[-1]["type"]
        refuse_unless(not is_last, f"{where}: The final block in an assistant message cannot be `thinking`")
        uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
        refuse_unless(len(set(uses)) == len(uses), f"{where}: tool_use ids must be unique")
        waiting = set(uses)
        for block in blocks:
            _check_block(block, where)
    refuse_unless(not waiting, f"tool_use ids {waiting} have no result")


def _check_block(block: Json, where: str) -> None:
    kind = block["type"]
    if kind == "text":
        refuse_unless(block["text"].strip(), f"{where}: text content blocks must contain non-whitespace text")
        refuse_unless(set(block) <= {"type", "text", "cache_control"}, f"{where}: extra inputs: {set(block)}")
    elif kind == "tool_use":
        refuse_unless(isinstance(block["input"], dict), f"{where}: input must be an object")
        refuse_unless(
            set(block) <= {"type", "id", "name", "input", "cache_control"}, f"{where}: {set(block)}"
        )
    elif kind == "thinking":
        refuse_unless(block.get("signature"), f"{where}: thinking.signature: field required")
    elif kind == "redacted_thinking":
        refuse_unless(set(block) == {"type", "data"}, f"{where}: redacted_thinking: {set(block)}")
    else:
        refuse_unless(kind == "tool_result", f"{where}: unknown block {kind}")

"""A host of OpenAI's two wires, as strict as the real one about calls and their results."""

from __future__ import annotations

from harness_lib.loop.piped import as_object
from tests.loop.servers.cache import Count
from tests.loop.servers.script import Handler, Json, Step, Use, check_name, check_tool, new_id, refuse_unless


class OpenAI(Handler):
    """Chat completions at /v1/chat/completions, Responses at /v1/responses."""

    def check(self, body: Json) -> None:
        refuse_unless(body.get("model"), "you must provide a model parameter")
        if self.path == "/v1/chat/completions":
            _check_chat(body)
        elif self.path == "/v1/responses":
            _check_responses(body)
        else:
            refuse_unless(condition=False, message=f"no such path: {self.path}")

    def events(self, step: Step, body: Json) -> list[tuple[str, Json | str]]:
        count = self.server.cache.openai(body) if self.server.cache else Count(tokens=10, read=4)
        if self.path == "/v1/responses":
            return [(event["type"], event) for event in responses(step, body["model"], count)]
        return [*(("", chunk) for chunk in chunks(step, body["model"], count)), ("", "[DONE]")]


def _check_chat(body: Json) -> None:
    known = {
        "model", "messages", "tools", "stream", "stream_options", "max_tokens", "max_completion_tokens",
        "reasoning_effort",
    }  # fmt: skip
    refuse_unless(set(body) <= known, f"unrecognized request argument: {set(body) - known}")
    refuse_unless(body.get("messages"), "[] is too short - 'messages'")
    for tool in body.get("tools", []):
        refuse_unless(tool.get("type") == "function" and tool["function"]["name"], "tools: no function")
        check_tool(tool["function"]["name"], tool["function"].get("parameters", {}))
        extra = set(tool["function"]) - {"name", "description", "parameters", "strict"}
        refuse_unless(not extra, f"tools: unknown {extra}")
    waiting: list[str] = []
    for number, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            refuse_unless(
                message["tool_call_id"] in waiting, f"messages.{number}: no such tool_call_id before"
            )
            waiting.remove(message["tool_call_id"])
            continue
        refuse_unless(
            not waiting, f"messages.{number}: tool_call_ids {waiting} did not have response messages"
        )
        calls = message.get("tool_calls")
        refuse_unless(calls is None or calls, f"messages.{number}: tool_calls is empty")
        refuse_unless(calls or message.get("content"), f"messages.{number}: content is missing")
        waiting = [call["id"] for call in calls or []]
        for call in calls or []:
            _check_arguments(call["function"]["arguments"])
            check_name(call["function"]["name"])
    refuse_unless(not waiting, f"tool_call_ids {waiting} did not have response messages")


def _check_arguments(arguments: object) -> None:
    """Refuse, as llama.cpp does with 500, what is no text of an object."""
    refuse_unless(
        isinstance(arguments, str) and as_object(arguments) is not None, "arguments: no object of JSON"
    )


def _check_responses(body: Json) -> None:
    known = {
        "model", "input", "instructions", "tools", "stream", "store", "include", "prompt_cache_key",
        "max_output_tokens", "reasoning",
    }  # fmt: skip
    refuse_unless(set(body) <= known, f"unknown parameter: {set(body) - known}")
    refuse_unless(body.get("store") is False, "the test wants nothing stored")
    for tool in body.get("tools", []):
        check_tool(tool["name"], tool.get("parameters", {}))
        extra = set(tool) - {"type", "name", "description", "parameters", "strict"}
        refuse_unless(not extra, f"tools: unknown {extra}")
    calls: dict[str, bool] = {}
    for number, item in enumerate(body["input"]):
        refuse_unless("id" not in item, f"input.{number}: items are not persisted when store is false")
        if item["type"] == "function_call":
            calls[item["call_id"]] = False
            check_name(item["name"])
            _check_arguments(item["arguments"])
        elif item["type"] == "function_call_output":
            refuse_unless(item["call_id"] in calls, f"no tool call found for output {item['call_id']}")
            calls[item["call_id"]] = True
        elif item["type"] == "reasoning":
            refuse_unless(item.get("encrypted_content"), f"input.{number}: reasoning without its content")
            follows = body["input"][number + 1 : number + 2]
            is_whole = follows and follows[0].get("role") != "user"
            refuse_unless(is_whole, "reasoning was provided without its required following item")
    open_calls = [call for call, answered in calls.items() if not answered]
    refuse_unless(not open_calls, f"no tool output found for function call {open_calls}")


def chunks(step: Step, model: str, count: Count) -> list[Json]:
    """Return the chunks of an answer, of which `[DONE]` is the end."""
    base = {"id": new_id("chatcmpl"), "object": "chat.completion.chunk", "model": model}

    def chunk(delta: Json, finish: str | None = None) -> Json:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    sent = [chunk({"role": "assistant", "content": ""})]
    if step.thinking:
        sent.append(chunk({"reasoning_content": step.thinking}))
    half = len(step.text) // 2
    sent += [chunk({"content": part}) for part in (step.text[:half], step.text[half:]) if part]
    for index, use in enumerate(step.uses):
        function = {"name": use.name, "arguments": ""}
        head = {"index": index, "id": _id(use), "type": "function", "function": function}
        sent.append(chunk({"tool_calls": [head]}))
        sent += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]}) for part in use.parts
        ]
    sent.append(chunk({}, step.stop or ("tool_calls" if step.uses else "stop")))
    cached = {"cached_tokens": count.read}
    usage = {"prompt_tokens": count.tokens, "completion_tokens": 5, "prompt_tokens_details": cached}
    return [*sent, {**base, "choices": [], "usage": usage}]


def responses(step: Step, model: str, count: Count) -> list[Json]:
    """Return the events of an answer."""
    items: list[Json] = []
    if step.thinking:
        summary = [{"type": "summary_text", "text": step.thinking}]
        items.append({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "c2VjcmV0"})
    if step.text:
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        head = {"type": "message", "role": "assistant", "status": "completed"}
        items.append({**head, "id": new_id("msg"), "content": content})
    for use in step.uses:
        call = {
            "type": "function_call",
            "id": new_id("fc"),
            "call_id": _id(use),
            "name": use.name,
            "status": "completed",
            **({"namespace": use.namespace} if use.namespace else {}),
        }
        items.append({**call, "arguments": use.arguments})
    cut = step.stop == "length"
    sums = {"input_tokens": count.tokens, "output_tokens": 5, "total_tokens": count.tokens + 5}
    usage = {**sums, "input_tokens_details": {"cached_tokens": count.read}}
    response = {
        "id": new_id("resp"),
        "object": "response",
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "model": model,
        "output": items,
        "usage": usage,
    }
    events: list[Json] = [{"type": "response.created", "response": {**response, "output": [], "usage": None}}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        if item["type"] == "message":
            events.append({"type": "response.output_text.delta", "output_index": index, "delta": step.text})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    return [*events, {"type": f"response.{response['status']}", "response": response}]


def _id(use: Use) -> str:
    return new_id("call") if use.id is None else use.id

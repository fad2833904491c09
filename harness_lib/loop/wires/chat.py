"""The adapter of chat completions, which OpenAI began and most other hosts speak."""

from __future__ import annotations

from collections.abc import Iterator

from harness_lib.loop.context import Assistant, Entry, User
from harness_lib.loop.piped import Json, ProviderError, as_object
from harness_lib.loop.session import Block, Call, Text, Thinking
from harness_lib.loop.wires.answer import (
    END,
    NO_FIELD,
    Answer,
    Endpoint,
    Shown,
    as_string,
    as_table,
    as_tables,
    broken_off,
    count,
    new_id,
    started,
    tools_of,
)

_STOPS = {"stop": "end", "tool_calls": "tool_calls", "function_call": "tool_calls", "length": "length"}
_VENDOR = "https://api.openai.com/"
_REASONING = ("reasoning_content", "reasoning")
_SAID = ("content", "refusal")
# The thoughts of OpenRouter, signed or encrypted.
_DETAILS = "reasoning_details"
# The texts that come in parts.
_PARTS = frozenset({"arguments", "text", "summary", "data"})
# Where Gemini (and LiteLLM before it) signs a call, which it refuses without.
_SIGNED = ("extra_content", "provider_specific_fields")


def messages(history: list[Entry]) -> list[Json]:
    """Return the history as messages of users, assistants and tools.

    After a turn that was interrupted, the user follows a tool or the user. Hosts such as Mistral, and the
    templates of many models, refuse both for the rest of the session.
    """
    messages: list[Json] = []
    for entry in history:
        before = messages[-1]["role"] if messages else ""
        if isinstance(entry, User) and before == "user":
            messages[-1]["content"] += f"\n\n{entry.text}"
        elif isinstance(entry, User):
            messages += [_assistant([])] if before == "tool" else []
            messages.append({"role": "user", "content": entry.text})
        elif isinstance(entry, Assistant):
            messages.append(entry.native[0] if entry.native else _assistant(entry.blocks))
        else:
            messages.append({"role": "tool", "tool_call_id": entry.call.id, "content": entry.text})
    return messages


def body(payload: Json, endpoint: Endpoint) -> Json:
    """Return the request."""
    messages = _with_thoughts(payload.get("messages") or [], endpoint.conf.get("reasoning_field", ""))
    if payload.get("system"):
        messages.insert(0, {"role": "system", "content": payload["system"]})
    newest = "max_completion_tokens" if endpoint.url.startswith(_VENDOR) else "max_tokens"
    limit = endpoint.conf.get("max_tokens_field") or newest
    request: Json = {
        "model": endpoint.model,
        **({} if limit == NO_FIELD else {limit: endpoint.max_tokens}),
        "messages": messages,
    }
    tools = tools_of(payload)
    if tools:
        request["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "description": tool["description"],
                    "parameters": tool["input_schema"],
                },
            }
            for tool in tools
        ]
    if endpoint.effort:
        request["reasoning_effort"] = endpoint.effort
    if endpoint.session and endpoint.url.startswith(_VENDOR):
        request["prompt_cache_key"] = endpoint.session
    if endpoint.conf.get("stream_options") != NO_FIELD:
        request["stream_options"] = {"include_usage": True}
    return request


def _with_thoughts(messages: list[Json], field: str) -> list[Json]:
    """Return `messages` with their thoughts in `field` only: a host takes them back there, or not at all.

    Where one has thoughts, each answer has the field: DeepSeek refuses the request otherwise.
    """
    left_out = {*_REASONING} - {field}
    told = [{key: value for key, value in message.items() if key not in left_out} for message in messages]
    if not any(message.get(field) for message in told):
        return told
    return [{**({field: ""} if message.get("role") == "assistant" else {}), **message} for message in told]


def answer(native: Json) -> Answer:
    """Return what a `chat.completion` says."""
    choices = as_tables(native.get("choices"))
    if not choices or not isinstance(choices[0].get("message"), dict):
        raise ProviderError("The provider's answer has no message.")
    message, usage = choices[0]["message"], as_table(native.get("usage"))
    stop = str(choices[0].get("finish_reason") or "stop")
    # The host wants it back as it came: it has thoughts or signatures.
    is_told_again = any(message.get(key) for key in (*_REASONING, _DETAILS)) or any(
        call.get(key) for call in as_tables(message.get("tool_calls")) for key in _SIGNED
    )
    details = as_table(usage.get("prompt_tokens_details"))
    return Answer(
        blocks=_blocks(message),
        stop=_STOPS.get(stop, stop),
        tokens_in=count(usage.get("prompt_tokens")),
        tokens_out=count(usage.get("completion_tokens")),
        tokens_cached=count(details.get("cached_tokens")),
        native=[message] if is_told_again else None,
    )


def _blocks(message: Json) -> list[Block]:
    thought = next((str(message[key]) for key in _REASONING if message.get(key)), "")
    said = as_string(message.get("content")) or as_string(message.get("refusal"))
    blocks: list[Block] = [Thinking(thought)] if thought else []
    blocks += [Text(said)] if said else []
    return [*blocks, *_calls(message)]


def _calls(message: Json) -> Iterator[Call]:
    for call in as_tables(message.get("tool_calls")):
        function = as_table(call.get("function"))
        arguments = as_string(function.get("arguments"))
        yield Call(str(call.get("id") or ""), str(function.get("name") or ""), arguments)


class Reader:
    """Puts chunks together into a `chat.completion`."""

    def __init__(self) -> None:
        self._head: Json = {}
        self._texts: dict[str, list[str]] = {}
        # By their numbers, thoughts also by their type.
        self._details: dict[tuple[str, object], Json] = {}
        self._calls: list[Json] = []
        # The newest call of each number.
        self._numbered: dict[int, Json] = {}
        self._newest = 0
        self._finish: str | None = None
        self._usage: Json = {}

    def feed(self, event: Json) -> Iterator[Shown]:
        error = event.get("error") or (event if event.get("object") == "error" else None)
        if error:
            raise broken_off(error, usually_passes=True)
        if event == END and self._finish is None and (self._calls or any(map(self._texts.get, _SAID))):
            # It ends an answer also where a host gives no reason.
            self._finish = "stop"
        for key in ("id", "model"):
            self._head.setdefault(key, event.get(key) or "")
        self._usage = as_table(event.get("usage")) or self._usage
        for choice in as_tables(event.get("choices")):
            # Some hosts that cannot stream send the whole message as one event.
            yield from self._delta(as_table(choice.get("delta") or choice.get("message")))
            if choice.get("finish_reason") == "error":
                raise broken_off(choice.get("error"), usually_passes=True)
            if choice.get("finish_reason"):
                self._finish = str(choice["finish_reason"])
                yield from map(started, _calls({"tool_calls": self._called()}))

    def native(self) -> Json | None:
        if self._finish is None:
            return None
        message: Json = {"role": "assistant", **{key: "".join(said) for key, said in self._texts.items()}}
        if self._details:
            message[_DETAILS] = list(self._details.values())
        if self._calls:
            message["tool_calls"] = self._called()
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": self._usage}

    def _delta(self, delta: Json) -> Iterator[Shown]:
        for key in (*_REASONING, *_SAID):
            if text := as_string(delta.get(key)):
                self._texts.setdefault(key, []).append(text)
                yield Shown("text" if key in _SAID else "thinking", {"text": text})
        for detail in as_tables(delta.get(_DETAILS)):
            # One without a number is a whole one.
            number = detail["index"] if isinstance(detail.get("index"), int) else f"{len(self._details)}"
            _add(self._details.setdefault((str(detail.get("type")), number), {}), detail)
        for call in as_tables(delta.get("tool_calls")):
            part = {key: call[key] for key in ("id", "function", *_SIGNED) if call.get(key)}
            _add(self._call(call), part)

    def _call(self, part: Json) -> Json:
        """Return the call that `part` belongs to; hosts may number all of them alike, or none."""
        self._newest = part["index"] if isinstance(part.get("index"), int) else self._newest
        known = self._numbered.get(self._newest)
        if known is None or _begins_another(part, known):
            known = self._numbered[self._newest] = {}
            self._calls.append(known)
        return known

    def _called(self) -> list[Json]:
        """Return the calls, complete."""
        for call in self._calls:
            function = as_table(call.get("function"))
            # One without an id gets it here: what is signed goes back as it is kept.
            call["id"], call["type"] = call.get("id") or new_id(), "function"
            name, arguments = function.get("name") or "", function.get("arguments") or "{}"
            call["function"] = {"name": name, "arguments": arguments}
        return self._calls


def _begins_another(part: Json, known: Json) -> bool:
    """Return whether `part` is of another call than `known`; some hosts give them no ids."""
    given, before = (as_table(call.get("function")) for call in (part, known))
    identity, is_whole = part.get("id") or None, as_object(as_string(before.get("arguments"))) is not None
    is_other = identity != known.get("id") if identity else "id" in known or is_whole
    return bool(given.get("name") and before.get("name") and is_other)


def _add(kept: Json, part: Json) -> None:
    """Add a part of an object: some texts grow, and of every other value the first that is one counts."""
    for key, value in part.items():
        if key in _PARTS:
            kept[key] = as_string(kept.get(key)) + as_string(value)
        elif isinstance(value, dict):
            kept[key] = as_table(kept.get(key))
            _add(kept[key], value)
        else:
            kept[key] = kept.get(key) or value


def _assistant(blocks: list[Block]) -> Json:
    text = "\n".join(block.text for block in blocks if isinstance(block, Text))
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.compact}}
        for call in blocks
        if isinstance(call, Call)
    ]
    message: Json = {"role": "assistant"}
    if text or not calls:
        message["content"] = text or "(no answer)"
    return {**message, "tool_calls": calls} if calls else message

"""What the vendors' own packages say of a request: their types, held to the letter.

The packages take long to import, so only the test that is about them does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from anthropic.types.message_create_params import MessageCreateParams
from openai.types.chat.completion_create_params import CompletionCreateParams
from openai.types.responses.response_create_params import ResponseCreateParams
from pydantic import TypeAdapter, ValidationError

Json = dict[str, Any]

_TYPES: dict[str, Any] = {
    "anthropic": MessageCreateParams,
    "chat": CompletionCreateParams,
    "responses": ResponseCreateParams,
}
# The types want these of what the model has said; the host takes it without, as Codex sends it, and where
# nothing is stored an `id` names nothing.
_OF_MESSAGES = {"id": "msg_1", "status": "completed"}
_OF_REASONING = {"id": "rs_1"}


def complaint(wire: str, body: Json) -> str:
    """Return what the types have against `body`; "" if they hold, and know every key that is in it."""
    sent = _whole(body) if wire == "responses" else body
    try:
        understood = _plain(_adapter(wire).validate_python(sent))
    except ValidationError as error:
        return str(error)
    return "" if understood == sent else f"keys that no type knows: {sent} became {understood}"


@cache
def _adapter(wire: str) -> TypeAdapter[Any]:
    """Return what checks; kept, because it goes on checking while the result is read."""
    return TypeAdapter(_TYPES[wire])


def _whole(body: Json) -> Json:
    return {**body, "input": [_item(item) for item in body["input"]]}


def _item(item: Json) -> Json:
    if item.get("role") == "assistant":
        content = [{"annotations": [], **part} for part in item["content"]]
        return {**_OF_MESSAGES, **item, "content": content}
    return {**_OF_REASONING, **item} if item.get("type") == "reasoning" else item


def _plain(value: Any) -> Any:
    """Return `value` as JSON has it; what the types call iterable is only checked when it is read."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [_plain(inner) for inner in value]

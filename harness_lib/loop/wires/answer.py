"""What every API adapter provides, the address of a request, and an answer in common form."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, cast
from urllib.parse import urlsplit, urlunsplit

from harness_lib.loop.context import Entry
from harness_lib.loop.piped import ContextError, Json, ProviderError, TransientError, dumps
from harness_lib.loop.session import Block, Call, Text
from harness_lib.text import sentence

WireName = Literal["anthropic", "responses", "chat"]
# What a `.conf` says of a field that its host refuses.
NO_FIELD = "none"
TOO_LARGE = 413
_WORDS = (
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "context limit",
    "context size",
    "prompt is too long",
    "input is too long",
    "reduce the length of the messages",
    "request_too_large",
)


# Codes and types of errors.
_PASSING = frozenset((
    *("api_error", "overloaded_error", "rate_limit_error", "timeout_error"),
    *("server_error", "rate_limit_exceeded"),
))  # fmt: skip
_LASTING = frozenset((
    *("authentication_error", "insufficient_quota", "invalid_request_error"),
    *("not_found_error", "permission_error"),
))  # fmt: skip
# Of the errors that are the client's, those that pass by themselves.
_PASSING_STATUS = frozenset({408, 409, 425, 429})
_FIRST_OF_SERVERS = 500


class Speaker(NamedTuple):
    """The author of the answers of a session: the API of a provider, and its model."""

    wire: WireName
    provider: str
    model: str


class Endpoint(NamedTuple):
    """A host of models. The key never leaves this object but as a header."""

    provider: str
    wire: WireName
    url: str
    model: str
    max_tokens: int
    headers: Mapping[str, str] = MappingProxyType({})
    # What a `.conf` says of the fields that its host takes.
    conf: Mapping[str, str] = MappingProxyType({})
    effort: str = ""
    cached: bool = False
    session: str = ""
    # With a login: makes the headers of a request from `headers`, with no token that the host has refused.
    login: Callable[[Mapping[str, str], str], dict[str, str]] | None = None

    def __repr__(self) -> str:
        """Leave out what holds a key."""
        return f"Endpoint({self.provider!r}, {self.wire!r}, {self.url!r}, {self.model!r})"


def shown(url: str) -> str:
    """Return `url` for the user, without a password or a key in it."""
    return re.sub(r"//[^/@]*@", "//", url.partition("?")[0])


def complete(url: str, path: str) -> str:
    """Return `url` with `path` (as `/v1/messages`) where it names only a host or a version.

    Raises ProviderError for an invalid one.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ProviderError(f"Invalid provider URL: {shown(url)} ({error}).") from error
    own_path = parts.path.rstrip("/")
    if own_path and not own_path.endswith("/v1"):
        return url
    return urlunsplit(parts._replace(path=own_path.removesuffix("/v1") + path))


def is_overflow(message: str, status: int = 0) -> bool:
    """Return whether `message`, the whole error as it came, is about the length of the request."""
    text = message.lower()
    return status == TOO_LARGE or any(words in text for words in _WORDS)


def may_pass(status: int) -> bool:
    """Return whether a request that was answered with this HTTP status may succeed later."""
    return status >= _FIRST_OF_SERVERS or status in _PASSING_STATUS


def broken_off(told: object, *, usually_passes: bool = False) -> ProviderError:
    """Return the exception for the error that a host has `told` in place of an answer, or of its end.

    `usually_passes`: where its code and type say nothing else.
    """
    error = told if isinstance(told, dict) else {"message": told}
    said = error.get("message") or error.get("code") or error.get("type") or "(nothing)"
    message = f"The provider broke off: {sentence(str(said))}"
    if is_overflow(dumps(error)):
        return ContextError(message)
    kinds = {str(error.get("code")), str(error.get("type"))}
    if status := next((int(kind) for kind in kinds if kind.isdecimal()), 0):
        passes = may_pass(status)
    else:
        passes = not kinds & _LASTING if usually_passes else bool(kinds & _PASSING)
    return TransientError(message) if passes else ProviderError(message)


class Answer(NamedTuple):
    """An answer. `tokens_in` counts all input; `native` is what its host wants to be told of it next time."""

    blocks: list[Block]
    stop: str
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_cache_write: int = 0
    native: list[Json] | None = None

    @property
    def calls(self) -> list[Call]:
        return [block for block in self.blocks if isinstance(block, Call)]

    @property
    def text(self) -> str:
        return "\n".join(block.text for block in self.blocks if isinstance(block, Text))


# The mark with which hosts of chat completions end a stream, as an event.
END: Json = {"type": "[DONE]"}


class Shown(NamedTuple):
    """An event for `.stream`."""

    kind: str
    values: Json


def started(call: Call) -> Shown:
    """Return the event for a call that an answer holds; its tool does not run yet."""
    return Shown("tool_start", {"id": call.id, "name": call.name, "input": call.input or {}})


class Reader(Protocol):
    """Puts a streamed answer together."""

    def feed(self, event: Json) -> Iterator[Shown]:
        """Take an event and yield the events to show. Raises ProviderError if the stream has failed."""
        ...

    def native(self) -> Json | None:
        """Return the whole answer in its host's own shape; None before its end event has come."""
        ...


class Wire(Protocol):
    """An API adapter."""

    def messages(self, history: list[Entry]) -> list[Json]:
        """Return the history as the host wants it."""
        ...

    def body(self, payload: Json, endpoint: Endpoint) -> Json:
        """Return the request, as far as it does not say that its answer is to be streamed."""
        ...

    def Reader(self) -> Reader:  # noqa: N802 (an API adapter is a module, and its reader a class)
        """Return a reader for one answer."""
        ...

    def answer(self, native: Json) -> Answer:
        """Return what a native answer says. Raises ProviderError when it is invalid."""
        ...


def adapter(name: WireName) -> Wire:
    """Return the API adapter, which is the module `name`; the others are not loaded."""
    return cast("Wire", import_module(f"{__package__}.{name}"))


def new_id() -> str:
    """Return an id for a call to which its host has given none."""
    return f"call_{os.urandom(16).hex()}"


def count(value: object) -> int:
    """Return a number of tokens; 0 for an invalid one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def as_table(value: object) -> Json:
    """Return an object that a host has sent; an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def as_tables(value: object) -> list[Json]:
    """Return the objects in a list that a host has sent; leave out other values."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def as_string(value: object) -> str:
    """Return a text that a host has sent, whole or in parts, as a string."""
    if isinstance(value, list):
        return "".join(part["text"] for part in as_tables(value) if isinstance(part.get("text"), str))
    return value if isinstance(value, str) else "" if value is None else dumps(value)


def tools_of(payload: Json) -> list[Json]:
    """Return the tools of `payload` with the keys that go to a host; annotations never do.

    Hosts refuse a request with a schema that has no properties, or a list in their place, as PHP writes none.
    """
    return [
        {
            "name": tool.get("name", ""),
            "description": tool.get("description", ""),
            "input_schema": {"type": "object", **schema, "properties": schema.get("properties") or {}},
        }
        for tool in payload.get("tools") or []
        for schema in [tool.get("input_schema") or {}]
    ]

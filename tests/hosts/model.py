"""The scripted model: a server on 127.0.0.1 that speaks the wires of all clients and plays scripts.

It answers what the scripts say, keeps every request for the assertions, and knows no other address.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from itertools import count
from typing import Any, cast

from tests.hosts.talk import Actor, Call, Message, Refusal, Request, Role, Say, Script
from tests.loop.servers.script import Quiet

Body = dict[str, Any]

# One number serves every id that a protocol wants to be unique.
_numbers = count(1)

COUNTED: Body = {"input_tokens": 100, "totalTokens": 100}


@dataclass(frozen=True)
class Wire:
    """`read` takes a request's body, `write` gives the chunks of the answer."""

    read: Callable[[Body], Request]
    write: Callable[[Say], Iterator[bytes]]


def for_path(path: str) -> Wire | None:
    """Return the protocol that is spoken at `path`; None: no model answers there."""
    return next((wire for end, wire in _WIRES.items() if path.endswith(end)), None)


def is_counting(path: str) -> bool:
    """Return whether `path` only asks how long a text is."""
    return path.endswith(("/count_tokens", ":countTokens"))


def models() -> Body:
    """Return the list of models, for the clients that ask."""
    return {"object": "list", "data": [{"id": "fake-model", "object": "model"}], "models": []}


def _id(kind: str) -> str:
    return f"{kind}_{next(_numbers):020d}"


def _event(data: Body, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def _flat(content: object) -> str:
    """Return the text in `content`: a string, or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(b if isinstance(b, str) else str(b.get("text") or "") for b in blocks)


# -- Anthropic Messages


def _read_anthropic(body: Body) -> Request:
    messages = [Message("system", _flat(body.get("system")))]
    for entry in body.get("messages", []):
        messages += _anthropic_blocks(entry["role"], entry.get("content"))
    return Request(tuple(messages), frozenset(t["name"] for t in body.get("tools") or []), body)


def _anthropic_blocks(role: Role, content: object) -> Iterator[Message]:
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for block in blocks:
        if block["type"] == "tool_result":
            yield Message("result", _flat(block.get("content")))
        else:
            yield Message(role, str(block.get("text") or block.get("input") or ""))


def _write_anthropic(say: Say) -> Iterator[bytes]:
    usage = {"input_tokens": say.tokens, "output_tokens": 5}
    empty = {"id": _id("msg"), "type": "message", "role": "assistant", "model": "fake-model", "content": []}
    start = {**empty, "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield _event({"type": "message_start", "message": start}, "message_start")
    for index, (block, delta) in enumerate(_anthropic_content(say)):
        at = {"index": index}
        yield _event({"type": "content_block_start", **at, "content_block": block}, "content_block_start")
        yield _event({"type": "content_block_delta", **at, "delta": delta}, "content_block_delta")
        yield _event({"type": "content_block_stop", **at}, "content_block_stop")
    end = {"stop_reason": "tool_use" if say.calls else "end_turn", "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": end, "usage": usage}, "message_delta")
    yield _event({"type": "message_stop"}, "message_stop")


def _anthropic_content(say: Say) -> Iterator[tuple[Body, Body]]:
    if say.text:
        yield {"type": "text", "text": ""}, {"type": "text_delta", "text": say.text}
    for call in say.calls:
        block = {"type": "tool_use", "id": _id("toolu"), "name": call.tool, "input": {}}
        yield block, {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}


# -- OpenAI Responses


def _read_responses(body: Body) -> Request:
    messages = [Message("system", body.get("instructions") or "")]
    messages += [_response_item(item) for item in body.get("input", [])]
    tools = body.get("tools") or []
    names = {name for tool in tools for name in _tool_names(tool)}
    return Request(tuple(messages), frozenset(names), body)


def _response_item(item: Body) -> Message:
    kind = item.get("type", "message")
    if kind.endswith("_output"):
        return Message("result", _flat(item.get("output")))
    role = {"developer": "system"}.get(str(item.get("role")), item.get("role"))
    return Message(cast("Role", role or "assistant"), _flat(item.get("content")))


def _tool_names(tool: Body) -> Iterator[str]:
    yield str(tool.get("name") or tool.get("function", {}).get("name") or tool.get("type"))
    for inner in tool.get("tools") or []:
        yield inner["name"]


def _write_responses(say: Say) -> Iterator[bytes]:
    items = list(_response_items(say))
    usage = {"input_tokens": say.tokens, "output_tokens": 5, "total_tokens": say.tokens + 5}
    whole = {"id": _id("resp"), "object": "response", "status": "completed", "model": "fake-model"}
    begun = {**whole, "status": "in_progress", "output": []}
    yield _event({"type": "response.created", "response": begun}, "response.created")
    for index, item in enumerate(items):
        for kind in ("response.output_item.added", "response.output_item.done"):
            yield _event({"type": kind, "output_index": index, "item": item}, kind)
    done = {"type": "response.completed", "response": {**whole, "output": items, "usage": usage}}
    yield _event(done, "response.completed")


def _response_items(say: Say) -> Iterator[Body]:
    if say.text:
        content = [{"type": "output_text", "text": say.text, "annotations": []}]
        yield {
            "type": "message",
            "id": _id("msg"),
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    for call in say.calls:
        space = {"namespace": call.namespace} if call.namespace else {}
        yield {
            "type": "function_call",
            "id": _id("fc"),
            "call_id": _id("call"),
            "name": call.tool,
            "arguments": json.dumps(call.arguments),
            "status": "completed",
            **space,
        }


# -- OpenAI chat completions


def _read_chat(body: Body) -> Request:
    roles: dict[str, Role] = {"tool": "result", "developer": "system"}
    messages = tuple(
        Message(roles.get(entry["role"], entry["role"]), _flat(entry.get("content")))
        for entry in body.get("messages", [])
    )
    names = {name for tool in body.get("tools") or [] for name in _tool_names(tool)}
    return Request(messages, frozenset(names), body)


def _write_chat(say: Say) -> Iterator[bytes]:
    calls = [_chat_call(index, call) for index, call in enumerate(say.calls)]
    yield _event(_chat_chunk({"role": "assistant", "content": say.text}))
    if calls:
        yield _event(_chat_chunk({"tool_calls": calls}))
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    yield _event({**_chat_chunk({}, "tool_calls" if calls else "stop"), "usage": usage})
    yield b"data: [DONE]\n\n"


def _chat_call(index: int, call: Call) -> Body:
    function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
    return {"index": index, "id": _id("call"), "type": "function", "function": function}


def _chat_chunk(delta: Body, finish: str | None = None) -> Body:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": _id("chat"), "object": "chat.completion.chunk", "model": "fake-model", "choices": [choice]}


# -- Gemini


def _read_gemini(body: Body) -> Request:
    messages = [Message("system", _flat((body.get("systemInstruction") or {}).get("parts")))]
    for entry in body.get("contents", []):
        role: Role = "assistant" if entry.get("role") == "model" else "user"
        messages += [_gemini_part(role, part) for part in entry.get("parts", [])]
    declared = [d for tool in body.get("tools") or [] for d in tool.get("functionDeclarations", [])]
    return Request(tuple(messages), frozenset(d["name"] for d in declared), body)


def _gemini_part(role: Role, part: Body) -> Message:
    if "functionResponse" in part:
        return Message("result", str(part["functionResponse"].get("response", {}).get("output", "")))
    return Message(role, str(part.get("text") or ""))


def _write_gemini(say: Say) -> Iterator[bytes]:
    parts: list[Body] = [{"text": say.text}] if say.text else []
    parts += [{"functionCall": {"name": call.tool, "args": call.arguments}} for call in say.calls]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    yield _event({"candidates": [candidate], "usageMetadata": usage, "responseId": _id("gem")})


_WIRES = {
    "/v1/messages": Wire(_read_anthropic, _write_anthropic),
    "/responses": Wire(_read_responses, _write_responses),
    "/chat/completions": Wire(_read_chat, _write_chat),
    ":streamGenerateContent": Wire(_read_gemini, _write_gemini),
}


# -- who plays which conversation, and the server


AT_A_LOSS = Say("I have nothing more to say.")

VERDICT = "that is what the goal's own judge has seen"

# What a client asks on the side: titles (no tools are on offer), and the summary of a compaction.
ASIDE = Say("<summary>The work goes on.</summary>")
_WANTS_SUMMARY = "followed by a <summary> block"
_WANTS_VERDICT = "has the following stopping condition been satisfied?"


@dataclass
class Part:
    """An actor, the words by which its conversation is known, and how far its script has come."""

    actor: Actor
    when: str
    script: Script | None = None
    turn: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> Say | Refusal:
        """Return what comes next in the script. Others may talk meanwhile: it may start them itself."""
        with self.turn:
            try:
                if self.script is None:
                    self.script = self.actor(request)
                    return next(self.script)
                return self.script.send(request)
            except StopIteration:
                return AT_A_LOSS


@dataclass
class Model:
    """Who plays which conversation, and everything that was asked."""

    address: str
    parts: list[Part] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    # What Claude Code is answered that asks at a stop whether its own goal is reached.
    judge: Callable[[], bool] | None = None

    def play(self, actor: Actor, when: str = "") -> None:
        """Give the conversations in which the user says `when` to `actor`; the latest such call decides."""
        self.parts.insert(0, Part(actor, when))

    def answer(self, request: Request) -> Say | Refusal:
        """Return what the model says next in this conversation."""
        if self.judge is not None and _WANTS_VERDICT in request.last:
            return Say(json.dumps({"ok": self.judge(), "reason": VERDICT}))
        if not request.tools or _WANTS_SUMMARY in request.last:
            return ASIDE
        self.requests.append(request)
        heard = request.said_by("user")
        part = next((part for part in self.parts if part.when in heard), None)
        return part.answer(request) if part else AT_A_LOSS

    def check(self) -> None:
        """Raise what a script has raised, and fail if a client asked for something that no model answers."""
        for failure in self.failures:
            raise failure
        assert not self.strays, self.strays

    def asked(self, words: str) -> list[Request]:
        """Return the requests in which the user said `words`."""
        return [request for request in self.requests if words in request.said_by("user")]


class _Handler(Quiet):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_HEAD(self) -> None:
        self.reply(200, {})

    def do_GET(self) -> None:
        self.reply(200, models())

    def do_POST(self) -> None:
        body = json.loads(self.body() or b"{}")
        path = self.path.partition("?")[0]
        wire = for_path(path)
        if wire is None:
            if not is_counting(path):
                self.server.model.strays.append(self.path)
            self.reply(200, COUNTED)
            return
        say = self.server.model.answer(wire.read(body))
        with suppress(BrokenPipeError, ConnectionResetError):
            # A client that was killed does not hear the end.
            if isinstance(say, Refusal):
                self.reply(say.status, say.body, tuple(say.headers.items()))
            else:
                self.send(200, "text/event-stream", b"".join(wire.write(say)))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: Model

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = Model(f"http://127.0.0.1:{self.server_address[1]}")

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
        """Keep what a script raised for `Model.check`; its client has lost the connection and asks again."""
        error = sys.exc_info()[1]
        # A client that was killed has hung up: nobody's fault.
        if error is not None and not isinstance(error, ConnectionError):
            self.model.failures.append(error)


@contextmanager
def serve() -> Iterator[Model]:
    """Serve a model on a free port of 127.0.0.1 for the length of the block."""
    server = _Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

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

from tests.hosts.talk import Actor, Message, Refusal, Request, Role, Say, Script
from tests.loop.servers import anthropic, openai
from tests.loop.servers.cache import Count
from tests.loop.servers.script import Quiet, Step, Use

Body = dict[str, Any]

MODEL = "fake-model"
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
    return {"object": "list", "data": [{"id": MODEL, "object": "model"}], "models": []}


def _step(say: Say) -> Step:
    return Step(
        say.text, tuple([Use(each.tool, each.arguments, namespace=each.namespace) for each in say.calls])
    )


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
    for event in anthropic.answered(_step(say), MODEL, Count(say.tokens)):
        yield _event(event, event["type"])


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
    for event in openai.responses(_step(say), MODEL, Count(say.tokens)):
        yield _event(event, event["type"])


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
    yield from map(_event, openai.chunks(_step(say), MODEL, Count(say.tokens)))
    yield b"data: [DONE]\n\n"


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
    yield _event({"candidates": [candidate], "usageMetadata": usage, "responseId": f"gem_{next(_numbers)}"})


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

"""The scripted model: an HTTP server on 127.0.0.1 that speaks the wires of all clients and plays scripts.

It answers what the scripts say, keeps every request for the assertions, and knows no other address.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.hosts import wires
from tests.hosts.talk import Actor, Refusal, Request, Say, Script

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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Keep the terminal for pytest."""

    def do_HEAD(self) -> None:
        self._send("application/json", [b"{}"])

    def do_GET(self) -> None:
        self._send("application/json", [json.dumps(wires.models()).encode()])

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        wire = wires.for_path(path)
        if wire is None:
            if not wires.is_counting(path):
                self.server.model.strays.append(self.path)
            self._send("application/json", [json.dumps(wires.COUNTED).encode()])
            return
        say = self.server.model.answer(wire.read(body))
        with suppress(BrokenPipeError, ConnectionResetError):
            # A client that was killed does not hear the end.
            if isinstance(say, Refusal):
                self._send("application/json", [json.dumps(say.body).encode()], say.status, say.headers)
            else:
                self._send("text/event-stream", wire.write(say))

    def _send(
        self,
        kind: str,
        chunks: Iterator[bytes] | list[bytes],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        whole = b"".join(chunks)
        self.send_response(status)
        for name, value in {"content-type": kind, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(whole)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(whole)


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

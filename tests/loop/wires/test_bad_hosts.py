"""Hosts as they are when something is wrong: errors in a stream, pages for errors, silence."""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness_lib.hs.setup import session_store
from harness_lib.loop import follower, runtime
from harness_lib.loop.failures import TransientError
from harness_lib.loop.follower import Ending
from harness_lib.loop.wires import http
from tests.loop.conftest import ANTHROPIC, CHAT, RESPONSES, Serve, Wire
from tests.loop.environment import environment
from tests.loop.in_process import started
from tests.loop.servers.script import Json, Step, Use, say

pytestmark = pytest.mark.usefixtures("in_process")
PASSING: dict[str, Json] = {
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "Too much."}},
    "chat": {"error": {"message": "Too much."}},
    "responses": {"type": "error", "code": "server_error", "message": "Too much."},
}
LASTING: dict[str, Json] = {
    "anthropic": {"type": "error", "error": {"type": "invalid_request_error", "message": "Not this."}},
    "responses": {"type": "response.failed", "response": {"error": {"code": "bad", "message": "Not this."}}},
}
CALL = (Use("bash", {"command": "echo x >> ran"}),)


def test_an_answer_with_an_error_in_it_is_asked_again_and_runs_nothing(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    server = serve(wire, Step(uses=CALL, inserted=(PASSING[wire.name],)), say("Done."))

    assert follower.follow(started(home, project, wire, server)) == Ending("Done.", failed=False)

    assert not (project / "ran").exists()


@pytest.mark.parametrize("wire", [ANTHROPIC, RESPONSES], ids=lambda wire: wire.name)
def test_an_error_in_a_stream_that_will_not_pass_is_said(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    server = serve(wire, Step(uses=CALL, inserted=(LASTING[wire.name],)))

    ending = follower.follow(started(home, project, wire, server))

    assert ending.failed
    assert "Not this." in ending.output
    assert len(server.requests) == 1


def test_unknown_events_and_data_without_a_space_change_nothing(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    news: tuple[Json, ...] = ({"type": "news.of.tomorrow", "index": 7, "delta": {"x": 1}}, {"type": "ping"})
    server = serve(wire, Step(uses=CALL, inserted=news, glued=True), Step("Done.", inserted=news, glued=True))

    assert follower.follow(started(home, project, wire, server)) == Ending("Done.", failed=False)

    assert (project / "ran").read_text(encoding="utf-8") == "x\n"


def test_a_page_in_place_of_an_error_is_asked_again_and_shown_in_short(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    page = f"<html><h1>502 Bad Gateway</h1>{'<br>' * 5000}</html>"
    server = serve(wire, Step(status=502, html=page))

    ending = follower.follow(started(home, project, wire, server))

    assert ending.failed
    assert "502 Bad Gateway" in ending.output
    assert len(ending.output) < 1000
    assert len(server.requests) == 3


def test_a_host_that_says_nothing_is_asked_again(
    serve: Serve, wire: Wire, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "SILENCE_SECONDS", 2.0)
    server = serve(wire, Step(silent=True), say("Done."))

    assert follower.follow(started(home, project, wire, server)) == Ending("Done.", failed=False)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep more connections waiting")
def test_a_host_that_takes_no_connection_is_waited_for_shorter_than_one_that_thinks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (http.CONNECT_SECONDS, http.SILENCE_SECONDS) == (10.0, 300.0)
    monkeypatch.setattr(http, "CONNECT_SECONDS", 0.5)
    kept: dict[str, Any] = {}
    with ExitStack() as sockets:
        deaf = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        # Whoever stands before us leaves no room: the system does not even answer.
        for _ in range(4):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        port = deaf.getsockname()[1]

        with pytest.raises(TransientError, match=r"cannot be reached: (?!it said nothing)"):
            list(http.events(kept, f"http://127.0.0.1:{port}/v1/messages", {}, {}))
    http.forget(kept)


class _Endless(BaseHTTPRequestHandler):
    """Sends the class's `chunk` until the client hangs up."""

    status, kind, chunk = 200, "text/event-stream", b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.status)
        self.send_header("content-type", self.kind)
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(self.chunk)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("status", "kind", "chunk"),
    [
        (200, "text/event-stream", b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'),
        (200, "text/event-stream", b": says nothing that is read\n\n"),
        (200, "application/json", b" " * 1000),
        (400, "text/html", b"<br>" * 1000),
    ],
)
def test_an_answer_without_an_end_is_given_up(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, status: int, kind: str, chunk: bytes
) -> None:
    monkeypatch.setattr(http, "ANSWER_LIMIT", 1_000_000)
    handler = type("Handler", (_Endless,), {"status": status, "kind": kind, "chunk": chunk})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}{CHAT.path}"
        env = environment({"HOME": str(home), "OPENAI_API_URL": url, "HARNESS_LOG": os.devnull})
        run = runtime.start({**env, "HARNESS_PROVIDER": "openai", "HARNESS_MODEL": "m"}, project)
        run.session = session_store.create(run)

        ending = follower.follow(run)
        run.close()
        server.shutdown()

    assert ending.failed
    assert "sent more than 1000000 bytes without an end" in ending.output

"""Hosts as they are when something is wrong: errors in a stream, pages for errors, silence."""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness_lib.loop import follower
from harness_lib.loop.failures import TransientError
from harness_lib.loop.follower import Ending
from harness_lib.loop.wires import http
from tests.loop.conftest import ANTHROPIC, RESPONSES, Serve, Wire
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

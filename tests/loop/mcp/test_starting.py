"""MCP servers start together and after trust only; one that does not answer is named and left out."""

from __future__ import annotations

import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness_lib.loop import follower
from harness_lib.loop.follower import Ending
from tests.loop.conftest import CHAT, Hs, Serve
from tests.loop.in_process import started
from tests.loop.mcp_servers import OLD_SERVER, entry, have_ended, offered
from tests.loop.servers.script import say, use
from tests.loop.source_files import write_servers


def test_servers_that_do_not_answer_are_named_and_the_others_work(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    write_servers(
        home / ".harness",
        silent=entry("silent"),
        absent={"command": "/no/such/program"},
        good=entry(),
        none={},
    )
    server = serve(CHAT, use("mcp__good__z_echo", text="x"), say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    assert "the MCP server silent is left out: no answer within 10 s" in answer.err
    assert "the MCP server absent is left out" in answer.err
    assert "the MCP server none in" in answer.err
    assert have_ended(project)


def test_all_servers_that_are_not_known_are_started_together(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    # Each begins when the other is there: one after the other, the first would be waited for in vain.
    os.mkfifo(project / "met")
    meetings = {"a": "cat met", "b": "echo > met"}
    shells = {name: f"{meets}; exec {OLD_SERVER}" for name, meets in meetings.items()}
    entries = {name: {"command": "sh", "args": ["-c", script]} for name, script in shells.items()}
    write_servers(home / ".harness", **entries)
    server = serve(CHAT, say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert "is left out" not in answer.err
    assert offered(server.requests[0]) == ["mcp__a__spoken", "mcp__b__spoken"]


@pytest.mark.usefixtures("in_process")
def test_a_server_has_ten_seconds_to_start_and_is_ended_behind_them(
    serve: Serve, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness_lib.loop.mcp import client  # noqa: PLC0415 (it loads the package)

    assert client.START_SECONDS == 10
    monkeypatch.setattr(client, "START_SECONDS", 1.0)
    hangs = {"command": "sh", "args": ["-c", "echo $$ >> started; exec sleep 600"]}
    write_servers(home / ".harness", one=hangs, two=hangs)
    server = serve(CHAT, say("Done."))
    run = started(home, project, CHAT, server)
    noticed: list[str] = []
    run.notices.append(noticed.append)

    ending = follower.follow(run)
    run.close()

    assert ending == Ending("Done.", failed=False)
    late = "is left out: no answer within 1 s."
    assert noticed == [f"the MCP server {name} {late}" for name in ("one", "two")]
    assert have_ended(project)


def test_a_projects_servers_start_after_trust_only(hs: Hs, serve: Serve, project: Path) -> None:
    write_servers(project / ".harness", one=entry())
    server = serve(CHAT, say("Done."))
    env = CHAT.environment(server)

    before = hs("go", env=env)
    assert offered(server.requests[0]) == []
    assert not (project / "started").exists()
    hs("trust")
    hs("go", env=env)

    assert "run: hs trust" in before.err
    assert "mcp__one__z_echo" in offered(server.requests[1])


@pytest.mark.parametrize(
    "text", ["", "[]", '{"mcpServers": 1}', '{"mcpServers": {"a": {"type": "sse", "url": "x"}}}']
)
def test_a_file_that_names_no_servers_is_named_and_left_out(
    hs: Hs, serve: Serve, home: Path, text: str
) -> None:
    (home / ".harness").mkdir()
    (home / ".harness" / "mcp.json").write_text(text, encoding="utf-8")
    server = serve(CHAT, say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n"
    assert "left out" in answer.err


def test_a_server_over_http_that_is_not_there_is_named(hs: Hs, serve: Serve, home: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    other = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    server = serve(CHAT, say("Done."))
    urls = {"none": f"http://127.0.0.1:{port}/mcp", "bad": "nowhere"}
    urls["other"] = f"http://127.0.0.1:{other.server_address[1]}/mcp"
    write_servers(home / ".harness", **{name: {"url": url} for name, url in urls.items()})

    answer = hs("go", env=CHAT.environment(server))
    other.shutdown()
    other.server_close()

    assert answer.out == "Done.\n", answer.err
    for name in urls:
        assert f"the MCP server {name} is left out" in answer.err

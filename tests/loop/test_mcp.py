"""MCP servers: started together and after trust only, remembered, called like our tools."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from http.server import HTTPServer
from pathlib import Path

import pytest

from harness_lib.loop import mcp_servers, turn
from harness_lib.loop.tools import builtin
from tests.loop.conftest import CHAT, DONE, Done, Go, Hs, Serve, results_in, session_of
from tests.loop.in_process import started
from tests.loop.mcp_servers import OLD_SERVER, SERVERS, entry, have_ended, listening, offered
from tests.loop.servers.script import Quiet, bash, say, use
from tests.loop.source_files import at_home, write, write_servers


def test_servers_that_do_not_answer_are_named_and_the_others_work(done: Done, project: Path) -> None:
    write_servers(
        absent={"command": "/no/such/program"},
        ended={"command": sys.executable, "args": ["-c", "import sys; sys.exit('no key')"]},
        good=entry(),
        none={},
        odd={"command": "x", "env": None},
    )
    _, answer = done(use("mcp__good__z_echo", text="x"), say("Done."))
    said = "the MCP server absent is left out: /no/such/program: No such file or directory.\n"
    assert said in answer.err
    said = "the MCP server ended is left out: it has ended; what it said is in the session's mcp.log.\n"
    assert said in answer.err
    assert "no key\n" in (session_of() / "mcp.log").read_text()
    assert "the MCP server none in" in answer.err
    assert "left out: args must be a list, env and headers objects.\n" in answer.err
    assert have_ended(project)


@pytest.mark.parametrize(
    ("written", "replaced", "result"),
    [
        # Python's json writes it, and no host reads the request that offers the tool.
        ('{"type": "object"}', '{"type": "object", "default": float("nan")}', "2025-06-18 None\n"),
        ('{"content": [{"type": "text", "text": f"{PROTOCOL} {authorization}"}]}',
         '{"content": [], "structuredContent": {"a": 1}}', '{"a":1}\n'),
        # Told in a line.
        ('{"type": "text", "text"', '{"type": "odd", "text"',
         "error: the MCP server own failed: its answer does not follow the protocol (content.0.*: "),
    ],
    ids=["NaN in a schema", "nothing but structured content", "none of the protocol"],
)  # fmt: skip
def test_what_a_server_says_in_its_own_way_is_understood(
    done: Done, project: Path, written: str, replaced: str, result: str
) -> None:
    text = (SERVERS / "old_mcp_server.py").read_text()
    assert written in text
    server = write(project / "server.py", text.replace(written, replaced))
    write_servers(own={"command": sys.executable, "args": [str(server)]})
    done(use("mcp__own__spoken"), say("Done."))
    (told,) = results_in()
    beginning, _, rest = result.partition("*")
    assert told.startswith(beginning) if rest else told == result
    assert len(told.splitlines()) == 1
    assert "http" not in told


def test_all_servers_that_are_not_known_are_started_together(go: Go, project: Path) -> None:
    # Each begins when the other is there: one after the other, the first would be waited for in vain.
    os.mkfifo(project / "met")
    meetings = {"a": "cat met", "b": "echo > met"}
    shells = {name: f"{meets}; exec {OLD_SERVER}" for name, meets in meetings.items()}
    entries = {name: {"command": "sh", "args": ["-c", script]} for name, script in shells.items()}
    write_servers(**entries)
    server, answer = go(say("Done."))
    assert "is left out" not in answer.err
    assert offered(server.requests[0]) == ["mcp__a__spoken", "mcp__b__spoken"]


@pytest.mark.usefixtures("in_process")
def test_a_server_has_ten_seconds_to_start_and_is_ended_behind_them(
    serve: Serve, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness_lib.loop import mcp_client  # noqa: PLC0415 (it loads the package)

    assert mcp_client.START_SECONDS == 10
    monkeypatch.setattr(mcp_client, "START_SECONDS", 1.0)
    hangs = {"command": "sh", "args": ["-c", "echo $$ >> started; exec sleep 600"]}
    write_servers(one=hangs, two=hangs)
    server = serve(CHAT, say("Done."))
    run = started(project, CHAT, server)
    noticed: list[str] = []
    run.notices.append(noticed.append)

    ending = turn.follow(run)
    run.close()

    assert ending == DONE
    late = "is left out: no answer within 1 s."
    assert noticed == [f"the MCP server {name} {late}" for name in ("one", "two")]
    assert have_ended(project)


def test_a_projects_servers_start_after_trust_only(hs: Hs, go: Go, project: Path) -> None:
    write_servers(project / ".harness", one=entry())
    server, before = go(say("Done."))
    assert offered(server.requests[0]) == []
    assert not (project / "started").exists()
    hs("trust")
    hs("go")

    assert "run: hs trust" in before.err
    assert "mcp__one__z_echo" in offered(server.requests[1])


@pytest.mark.parametrize(
    "text", ["", "[]", '{"mcpServers": 1}', '{"mcpServers": {"a": {"type": "sse", "url": "x"}}}']
)
def test_a_file_that_names_no_servers_is_named_and_left_out(done: Done, text: str) -> None:
    write("mcp.json", text)
    _, answer = done(say("Done."))
    assert "left out" in answer.err


class _Silent(Quiet):
    """Answers with a stream of no events."""

    def do_POST(self) -> None:
        self.body()
        self.send(200, "text/event-stream", b"")


def test_why_a_server_over_http_cannot_be_used_is_named(go: Go, serve: Serve) -> None:
    """Its status tells a wrong key from a wrong address; the package says only that there was an error."""
    refusing = serve(CHAT, say("never"))
    with socket.socket() as free, HTTPServer(("127.0.0.1", 0), _Silent) as other:
        free.bind(("127.0.0.1", 0))
        threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        write_servers(
            refused={"url": f"{refusing.address}/v1/chat/completions"},
            old={"type": "sse", "url": "http://127.0.0.1:9/sse"},
            nowhere={"url": "${NOT_SET:-nonsense}://x"},
            keyless={"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer ${NOT_SET}"}},
            nobody={"url": f"http://127.0.0.1:{free.getsockname()[1]}/mcp"},
            other={"url": f"http://127.0.0.1:{other.server_address[1]}/mcp"},
        )
        _, answer = go(say("Done."))
        other.shutdown()

    assert answer.out == "Done.\n", answer.err
    assert "the MCP server refused is left out: Server returned an error response (HTTP 400).\n" in answer.err
    assert "the MCP server old in " in answer.err
    assert "is left out: the transport sse is not supported" in answer.err
    assert "protocol 'nonsense://'.\n" in answer.err
    assert answer.err.count("the MCP server keyless wants NOT_SET, which is not set.\n") == 1
    assert "the MCP server other is left out: SSE stream ended without a response.\n" in answer.err
    for name in ("nowhere", "nobody"):
        assert f"the MCP server {name} is left out" in answer.err
    refusing.refusals.clear()


def test_what_a_server_has_is_known_without_starting_it_again(hs: Hs, go: Go, project: Path) -> None:
    write_servers(one=entry())
    server, _ = go(say("Done."))
    started = (project / "started").read_text()

    hs("go")
    listed = hs("tools")

    assert (project / "started").read_text() == started
    assert offered(server.requests[0]) == offered(server.requests[1])
    assert "mcp__one__z_echo" in listed.out


def test_names_are_what_hosts_take() -> None:
    long = mcp_servers.name_of("server", "x" * 100)
    assert mcp_servers.name_of("a.b c", "d/e") == "mcp__a_b_c__d_e"
    assert len(long) == 64
    assert long != mcp_servers.name_of("server", "x" * 101)
    assert os.sep not in mcp_servers.name_of("../..", "..")


@pytest.mark.release
def test_a_list_that_is_old_is_asked_for_beside_the_work_for_the_next_session(hs: Hs, go: Go) -> None:
    write_servers(one=entry())
    kept = at_home("mcp")
    renewed = f"while ! grep -q z_echo '{kept}'/*.json; do sleep 0.05; done"
    server, _ = go(say("Done."), bash(renewed), say("Done."))
    (path,) = kept.iterdir()
    value = json.loads(path.read_text())
    # As it was told by an older version of the server, long ago.
    value["tools"] = [tool for tool in value["tools"] if tool["name"] != "z_echo"]
    path.write_text(json.dumps(value))
    os.utime(path, (0, 0))

    hs("go")
    hs("go")

    # In the session it stays as it was, or the host's cache would be worth nothing.
    shown = [["mcp__one__z_echo" in offered(request)] for request in server.requests]
    assert shown == [[True], [False], [False], [True]]


def test_a_tool_of_a_server_is_called_like_ours(done: Done, project: Path) -> None:
    write_servers(**{"a.server": entry(env={"OURS": "${A_VARIABLE}"})})
    calls = (use("mcp__a_server__z_echo", text="x"), use("mcp__a_server__a_environment"))
    env = {"A_VARIABLE": "known", "OPENAI_API_KEY": "secret"}
    server, _ = done(*calls, use("mcp__a_server__fail"), say("Done."), env=env)

    names = ("a_environment", "die", "fail", "hang", "spoken", "z_echo")
    assert offered(server.requests[0]) == [f"mcp__a_server__{name}" for name in names]
    results = results_in()
    assert results[0] == "echo: x\n"
    # Of the environment it gets what its entry names, and it works in the session's directory.
    assert results[1] == f"known False {project.name}\n"
    assert "Error executing tool fail" in results[2]
    assert have_ended(project)


def test_a_server_that_chatters_is_understood_and_not_heard(done: Done) -> None:
    # What a program prints in Latin-1, or as bytes, is no UTF-8.
    chatters = f"echo Listening now; echo; printf 'gr\\374n \\377\\000\\n'; exec {OLD_SERVER}"
    write_servers(a={"command": "sh", "args": ["-c", chatters]})
    server, answer = done(use("mcp__a__spoken"), say("Done."))
    assert "Traceback" not in answer.err
    assert offered(server.requests[0]) == ["mcp__a__spoken"]
    assert "Listening now" in (session_of() / "mcp.log").read_text()


def test_an_approval_of_reading_knows_what_a_server_says_of_its_tools(go: Go) -> None:
    write_servers(one=entry())
    words = ("--approve", "read-only", "go")
    go(use("mcp__one__z_echo", text="x"), use("mcp__one__a_environment"), say("Done."), words=words)
    results = results_in()
    assert results[0] == "echo: x\n"
    assert "denied" in results[1]


@pytest.mark.parametrize(
    ("name", "protocol"), [("mcp_server.py", "2026-07-28"), ("old_mcp_server.py", "2025-06-18")]
)
def test_the_newest_protocol_that_a_server_knows_is_spoken_over_http_and_over_pipes(
    go: Go, project: Path, name: str, protocol: str
) -> None:
    with listening(name, project) as address:
        far = {"url": address, "headers": {"Authorization": "Bearer ${A_KEY}"}}
        write_servers(far=far, near=entry(program=name))
        calls = [use(f"mcp__{server}__spoken") for server in ("far", "far", "near")]
        _, answer = go(*calls, say("Done."), env={"A_KEY": "of mine"})

    assert answer.out == "Done.\n", answer.err
    assert results_in() == [f"{protocol} Bearer of mine\n"] * 2 + [f"{protocol} None\n"]


def test_a_status_from_before_a_call_is_no_part_of_its_failure_and_a_lost_session_begins_anew(
    go: Go, project: Path
) -> None:
    """A server of the older protocol refuses the first request of the newer one, and has no GET."""
    calls = [use("mcp__far__spoken", **how) for how in ({"fail": True}, {"forget": ["x"]}, {}, {})]
    calls.append(use("mcp__near__spoken", fail=True))
    with listening("old_mcp_server.py", project) as address:
        write_servers(far={"url": address}, near=entry(program="old_mcp_server.py"))
        go(*calls, say("Done."))

    failed, spoken = "error: the MCP server far failed:", "2025-06-18 None\n"
    lost = f"{failed} Session not found (HTTP 404)\n"
    wrong = f"{failed} There is no such page\n"
    # Any code that a server has is no end of it.
    assert results_in() == [wrong, spoken, lost, spoken, wrong.replace("far", "near")]


def test_a_call_that_is_not_answered_ends_with_its_limit(done: Done, project: Path) -> None:
    write_servers(slow=entry(), one=entry())
    limit = {"HARNESS_TOOL_TIMEOUT": "1"}
    done(use("mcp__slow__hang"), use("mcp__one__z_echo", text="x"), say("Done."), env=limit)
    assert results_in() == ["error: the MCP server slow failed: no answer within 1 s\n", "echo: x\n"]
    assert (project / "hanging").exists()


def test_the_limit_of_a_call_is_two_minutes_where_nothing_else_is_said() -> None:
    assert builtin.usual_seconds({}) == 120
    assert builtin.usual_seconds({"HARNESS_TOOL_TIMEOUT": "7"}) == 7
    assert builtin.usual_seconds({"HARNESS_TOOL_TIMEOUT": "soon"}) == 120


def test_a_server_that_dies_in_a_call_is_started_again_for_the_next(done: Done, project: Path) -> None:
    write_servers(one=entry())
    done(use("mcp__one__die"), use("mcp__one__z_echo", text="x"), say("Done."))
    results = results_in()
    assert "the MCP server one failed" in results[0]
    assert results[1] == "echo: x\n"
    assert have_ended(project)

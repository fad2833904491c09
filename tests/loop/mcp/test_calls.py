"""Tools of MCP servers are called like ours, over pipes and HTTP; a call that goes wrong holds nobody up."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.loop.tools import time_limit
from tests.loop.conftest import CHAT, Hs, Serve, bodies, session_of
from tests.loop.mcp_servers import OLD_SERVER, entry, have_ended, listening, offered
from tests.loop.servers.script import say, use
from tests.loop.source_files import write_servers


def test_a_tool_of_a_server_is_called_like_ours(hs: Hs, serve: Serve, home: Path, project: Path) -> None:
    write_servers(home / ".harness", **{"a.server": entry(env={"OURS": "${A_VARIABLE}"})})
    calls = (use("mcp__a_server__z_echo", text="x"), use("mcp__a_server__a_environment"))
    server = serve(CHAT, *calls, use("mcp__a_server__fail"), say("Done."))
    env = {**CHAT.environment(server), "A_VARIABLE": "known", "OPENAI_API_KEY": "secret"}

    answer = hs("go", env=env)

    assert answer.out == "Done.\n", answer.err
    assert offered(server.requests[0]) == [
        "mcp__a_server__a_environment",
        "mcp__a_server__die",
        "mcp__a_server__fail",
        "mcp__a_server__spoken",
        "mcp__a_server__z_echo",
    ]
    results = [body for name, body in bodies(session_of(home)) if "tool_result" in name]
    assert results[0] == "echo: x\n"
    # Of the environment it gets what its entry names, and it works in the session's directory.
    assert results[1] == f"known False {project.name}\n"
    assert "Error executing tool fail" in results[2]
    assert have_ended(project)


def test_a_server_that_chatters_is_understood_and_not_heard(hs: Hs, serve: Serve, home: Path) -> None:
    chatters = f"echo Listening now; echo; exec {OLD_SERVER}"
    write_servers(home / ".harness", a={"command": "sh", "args": ["-c", chatters]})
    server = serve(CHAT, use("mcp__a__spoken"), say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n"
    assert "Traceback" not in answer.err
    assert offered(server.requests[0]) == ["mcp__a__spoken"]
    assert "Listening now" in (session_of(home) / "mcp.log").read_text(encoding="utf-8")


def test_an_approval_of_reading_knows_what_a_server_says_of_its_tools(
    hs: Hs, serve: Serve, home: Path
) -> None:
    write_servers(home / ".harness", one=entry())
    server = serve(CHAT, use("mcp__one__z_echo", text="x"), use("mcp__one__a_environment"), say("Done."))

    hs("--approve", "read-only", "go", env=CHAT.environment(server))

    results = [body for name, body in bodies(session_of(home)) if "tool_result" in name]
    assert results[0] == "echo: x\n"
    assert "denied" in results[1]


@pytest.mark.parametrize(
    ("name", "protocol"), [("mcp_server.py", "2026-07-28"), ("old_mcp_server.py", "2025-06-18")]
)
def test_a_server_is_spoken_with_over_http_with_sessions_and_without(
    hs: Hs, serve: Serve, home: Path, project: Path, name: str, protocol: str
) -> None:
    server = serve(CHAT, use("mcp__far__spoken"), use("mcp__far__spoken"), say("Done."))
    env = CHAT.environment(server) | {"A_KEY": "of mine"}

    with listening(name, project) as address:
        headers = {"Authorization": "Bearer ${A_KEY}"}
        write_servers(home / ".harness", far={"url": address, "headers": headers})
        answer = hs("go", env=env)

    assert answer.out == "Done.\n", answer.err
    results = [body for name, body in bodies(session_of(home)) if "tool_result" in name]
    assert results == [f"{protocol} Bearer of mine\n"] * 2


@pytest.mark.parametrize(
    ("name", "protocol"), [("mcp_server.py", "2026-07-28"), ("old_mcp_server.py", "2025-06-18")]
)
def test_the_newest_protocol_that_a_server_knows_is_spoken_over_pipes_too(
    hs: Hs, serve: Serve, home: Path, name: str, protocol: str
) -> None:
    write_servers(home / ".harness", near=entry(program=name))
    server = serve(CHAT, use("mcp__near__spoken"), say("Done."))

    hs("go", env=CHAT.environment(server))

    results = [body for name, body in bodies(session_of(home)) if "tool_result" in name]
    assert results == [f"{protocol} None\n"]


def test_a_call_that_is_not_answered_ends_with_its_limit(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    write_servers(
        home / ".harness",
        slow=entry(program="hanging_mcp_server.py"),
        one=entry(),
    )
    server = serve(CHAT, use("mcp__slow__hang"), use("mcp__one__z_echo", text="x"), say("Done."))

    answer = hs("go", env=CHAT.environment(server) | {"HARNESS_TOOL_TIMEOUT": "1"})

    assert answer.out == "Done.\n", answer.err
    results = [body for name, body in bodies(session_of(home)) if "tool_result" in name]
    assert results == ["error: the MCP server slow failed: no answer within 1 s\n", "echo: x\n"]
    assert (project / "hanging").exists()


def test_the_limit_of_a_call_is_two_minutes_where_nothing_else_is_said() -> None:
    assert time_limit.seconds({}) == 120
    assert time_limit.seconds({"HARNESS_TOOL_TIMEOUT": "7"}) == 7
    assert time_limit.seconds({"HARNESS_TOOL_TIMEOUT": "soon"}) == 120


def test_a_server_that_dies_in_a_call_is_started_again_for_the_next(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    write_servers(home / ".harness", one=entry())
    server = serve(CHAT, use("mcp__one__die"), use("mcp__one__z_echo", text="x"), say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    results = [body for name, body in bodies(session_of(home)) if "tool_result" in name]
    assert "the MCP server one failed" in results[0]
    assert results[1] == "echo: x\n"
    assert have_ended(project)

"""Tools of MCP servers: found, remembered, called, and never in the way."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness_lib.loop.mcp import tools
from tests.loop.conftest import WIRES, Hs, Serve, bodies, session_of
from tests.loop.servers.script import say, use

CHAT = WIRES[1]
SERVER = Path(__file__).parent / "servers" / "mcp_server.py"


def configure(source: Path, **servers: Any) -> None:
    source.mkdir(exist_ok=True)
    (source / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


def entry(*args: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(SERVER), *args], "env": {"OURS": "${A_VARIABLE}"}}


def offered(request: dict[str, Any]) -> list[str]:
    return [name for tool in request["tools"] if (name := tool["function"]["name"]).startswith("mcp__")]


def gone(project: Path) -> bool:
    """Return whether every server that was started here has ended."""
    pids = [int(line) for line in (project / "started").read_text(encoding="utf-8").split()]
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(pids) and not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_tool_of_a_server_is_called_like_ours(hs: Hs, serve: Serve, home: Path, project: Path) -> None:
    configure(home / ".harness", **{"a.server": entry()})
    calls = (use("mcp__a_server__z_echo", text="x"), use("mcp__a_server__a_environment"))
    server = serve(CHAT, *calls, use("mcp__a_server__fail"), say("Done."))
    env = {**CHAT.environment(server), "A_VARIABLE": "known", "OPENAI_API_KEY": "secret"}

    answer = hs("go", env=env)

    assert answer.out == "Done.\n", answer.err
    assert offered(server.requests[0]) == [
        "mcp__a_server__a_environment",
        "mcp__a_server__fail",
        "mcp__a_server__z_echo",
    ]
    results = [body for name, body in bodies(session_of(home)) if "tool_result" in name]
    assert results[0] == "echo: x\n"
    # Of the environment it gets what its entry names, and it works in the session's directory.
    assert results[1] == f"known False {project.name}\n"
    assert "Error executing tool fail" in results[2]
    assert gone(project)


def test_what_a_server_has_is_known_without_starting_it_again(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    configure(home / ".harness", one=entry())
    server = serve(CHAT, say("Done."))
    env = CHAT.environment(server)
    hs("go", env=env)
    started = (project / "started").read_text(encoding="utf-8")

    hs("go", env=env)
    listed = hs("tools", env=env)

    assert (project / "started").read_text(encoding="utf-8") == started
    assert offered(server.requests[0]) == offered(server.requests[1])
    assert "mcp__one__z_echo" in listed.out


def test_the_order_in_which_a_server_tells_its_tools_changes_no_request(
    hs: Hs, serve: Serve, home: Path
) -> None:
    configure(home / ".harness", one=entry())
    server = serve(CHAT, say("Done."))
    hs("go", env=CHAT.environment(server))
    (kept,) = (home / ".harness" / "mcp").iterdir()
    value = json.loads(kept.read_text(encoding="utf-8"))
    kept.write_text(json.dumps({**value, "tools": value["tools"][::-1]}), encoding="utf-8")

    hs("go", env=CHAT.environment(server))

    assert server.requests[0]["tools"] == server.requests[1]["tools"]


def test_servers_that_do_not_answer_are_named_and_the_others_work(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    configure(
        home / ".harness",
        silent=entry("silent"),
        absent={"command": "/no/such/program"},
        good=entry(),
        none={},
    )
    server = serve(CHAT, use("mcp__good__z_echo", text="x"), say("Done."))
    began = time.monotonic()

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    assert "the MCP server silent is left out: no answer within 10 s" in answer.err
    assert "the MCP server absent is left out" in answer.err
    assert "the MCP server none in" in answer.err
    assert time.monotonic() - began < 40
    assert gone(project)


def test_a_projects_servers_start_after_trust_only(hs: Hs, serve: Serve, project: Path) -> None:
    configure(project / ".harness", one=entry())
    server = serve(CHAT, say("Done."))
    env = CHAT.environment(server)

    before = hs("go", env=env)
    assert offered(server.requests[0]) == []
    assert not (project / "started").exists()
    hs("trust")
    hs("go", env=env)

    assert "run: hs trust" in before.err
    assert "mcp__one__z_echo" in offered(server.requests[1])


def test_an_approval_of_reading_knows_what_a_server_says_of_its_tools(
    hs: Hs, serve: Serve, home: Path
) -> None:
    configure(home / ".harness", one=entry())
    server = serve(CHAT, use("mcp__one__z_echo", text="x"), use("mcp__one__a_environment"), say("Done."))

    hs("--approve", "read-only", "go", env=CHAT.environment(server))

    results = [body for name, body in bodies(session_of(home)) if "tool_result" in name]
    assert results[0] == "echo: x\n"
    assert "denied" in results[1]


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


def test_names_are_what_hosts_take() -> None:
    long = tools.name_of("server", "x" * 100)
    assert tools.name_of("a.b c", "d/e") == "mcp__a_b_c__d_e"
    assert len(long) == 64
    assert long != tools.name_of("server", "x" * 101)
    assert os.sep not in tools.name_of("../..", "..")

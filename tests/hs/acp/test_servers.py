"""MCP servers in a session of a client: those that it names, and those that do not answer."""

from __future__ import annotations

import sys
from pathlib import Path

from acp import schema

from tests.hs.acp.client import Editor, prompt
from tests.loop.conftest import CHAT, Serve
from tests.loop.mcp_servers import SERVERS, listening
from tests.loop.servers.script import say, use
from tests.loop.source_files import write_servers


def test_servers_that_the_client_names_are_used(serve: Serve, project: Path) -> None:
    server = serve(CHAT, use("mcp__zed__z_echo", text="x"), say("Done."))
    editor = Editor()
    program = str(SERVERS / "mcp_server.py")
    named = schema.McpServerStdio(name="zed", command=sys.executable, args=[program], env=[])

    prompt(editor, CHAT.environment(server), project, mcp_servers=[named])

    assert editor.updates_of("tool_call_update")[-1].content[0].content.text == "echo: x"
    # It says of itself that it only reads.
    assert editor.questions == []


def test_servers_over_http_that_the_client_names_are_used(serve: Serve, project: Path) -> None:
    server = serve(CHAT, use("mcp__far__spoken"), say("Done."))
    editor = Editor()

    header = schema.HttpHeader(name="Authorization", value="Bearer of mine")

    with listening("old_mcp_server.py", project) as address:
        named = schema.HttpMcpServer(type="http", name="far", url=address, headers=[header])
        prompt(editor, CHAT.environment(server), project, mcp_servers=[named])
    assert editor.updates_of("tool_call_update")[-1].content[0].content.text == "2025-06-18 Bearer of mine"


def test_a_client_is_told_what_is_left_out(serve: Serve, home: Path, project: Path) -> None:
    write_servers(home / ".harness", absent={"command": "/no/such/program"})
    server = serve(CHAT, say("Done."))
    editor = Editor()

    prompt(editor, CHAT.environment(server), project)

    (thought,) = editor.updates_of("agent_thought_chunk")
    assert "the MCP server absent is left out" in thought.content.text

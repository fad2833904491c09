"""An MCP server on standard input and output, for tests: `python mcp_server.py [silent|dies]`."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import mcp_types as types
from mcp.server.mcpserver import MCPServer

server = MCPServer("for tests")


@server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
def z_echo(text: str) -> str:
    """Say it again."""
    return f"echo: {text}"


@server.tool(name="a.environment")
def environment() -> str:
    """Say what is known here."""
    return f"{os.environ.get('OURS')} {'OPENAI_API_KEY' in os.environ} {Path.cwd().name}"


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("as it should")


if __name__ == "__main__":
    with Path("started").open("a", encoding="utf-8") as started:
        started.write(f"{os.getpid()}\n")
    if "silent" in sys.argv:
        time.sleep(600)
    asyncio.run(server.run_stdio_async())

"""An MCP server whose one tool never answers: `python hanging_mcp_server.py`."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("for tests")


@server.tool()
def hang() -> str:
    """Say nothing, ever."""
    Path("hanging").touch()
    signal.pause()
    return ""


if __name__ == "__main__":
    asyncio.run(server.run_stdio_async())

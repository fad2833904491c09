"""An MCP server of the official package, for tests: `python mcp_server.py [http]`.

With `http` it listens on 127.0.0.1, and says where on standard output.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer

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


@server.tool()
def die() -> str:
    """End at once, without an answer."""
    os._exit(1)


@server.tool()
def hang() -> str:
    """Say nothing, ever."""
    Path("hanging").touch()
    signal.pause()
    return ""


@server.tool()
def spoken(context: Context) -> str:
    """Say which protocol is spoken, and what has come with the request."""
    return f"{context.protocol_version} {(context.headers or {}).get('authorization')}"


def listen() -> None:
    """Serve whoever comes, until the process is ended."""
    import uvicorn  # noqa: PLC0415 (it takes long, and hs waits ten seconds for a server over pipes)

    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        sys.stdout.write(f"http://127.0.0.1:{bound.getsockname()[1]}/mcp\n")
        sys.stdout.flush()
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        asyncio.run(uvicorn.Server(config).serve(sockets=[bound]))


if __name__ == "__main__":
    with Path("started").open("a") as started:
        started.write(f"{os.getpid()}\n")
    if "http" in sys.argv:
        listen()
    else:
        asyncio.run(server.run_stdio_async())

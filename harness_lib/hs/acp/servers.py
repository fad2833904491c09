"""The MCP servers that a client names, as they would stand in an `mcp.json`."""

from __future__ import annotations

from collections.abc import Sequence

from acp import RequestError, schema

from harness_lib.loop.piped import Json

Server = schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio


def configured(servers: Sequence[Server]) -> dict[str, Json]:
    """Return them by name. Raises RequestError for a kind that was not offered."""
    return {server.name: _entry(server) for server in servers}


def _entry(server: Server) -> Json:
    if isinstance(server, schema.McpServerStdio):
        env = {each.name: each.value for each in server.env}
        return {"command": server.command, "args": list(server.args), "env": env}
    if isinstance(server, schema.HttpMcpServer):
        return {"url": server.url, "headers": {each.name: each.value for each in server.headers}}
    raise RequestError(-32602, f"The MCP server {server.name} is neither stdio nor http.")

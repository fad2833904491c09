"""The tools of servers as they were last told: known without starting one, the same all session long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from harness_lib.loop.piped import Json, as_object, dumps

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lib.loop.mcp.servers import Server
    from harness_lib.loop.runtime import Runtime

_OLD_SECONDS = 3600.0


def load(runtime: Runtime, server: Server) -> list[Json] | None:
    """Return the tools of `server`; None where they are not known yet.

    What a session has begun with stays: another list would cost it all that its host has in the cache.
    """
    known: dict[str, list[Json]] = runtime.kept.setdefault("mcp tools", {})
    if server.fingerprint not in known:
        try:
            stored = as_object(_path(runtime, server).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            stored = None
        tools = (stored or {}).get("tools")
        if not isinstance(tools, list):
            return None
        known[server.fingerprint] = [tool for tool in tools if is_tool(tool)]
    return known[server.fingerprint]


def save(runtime: Runtime, server: Server, tools: list[Json]) -> None:
    """Keep `tools` for this session, where it has none yet, and for those to come."""
    known: dict[str, list[Json]] = runtime.kept.setdefault("mcp tools", {})
    known.setdefault(server.fingerprint, tools)
    value = {"server": server.name, "tools": sorted(tools, key=lambda tool: str(tool["name"]))}
    runtime.keep(_path(runtime, server), dumps(value).encode())


def is_old(runtime: Runtime, server: Server) -> bool:
    """Return whether it is time to ask `server` again."""
    try:
        return time.time() - _path(runtime, server).stat().st_mtime > _OLD_SECONDS
    except OSError:
        return True


def is_tool(tool: object) -> bool:
    """Return whether `tool` is what a server tells of a tool."""
    return (
        isinstance(tool, dict)
        and isinstance(tool.get("name"), str)
        and isinstance(tool.get("input_schema"), dict)
    )


def _path(runtime: Runtime, server: Server) -> Path:
    return runtime.home / "mcp" / f"{server.fingerprint}.json"

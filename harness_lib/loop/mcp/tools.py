"""The tools of MCP servers as plugins: their names and calls."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from harness_lib.loop import disk
from harness_lib.loop.mcp import servers
from harness_lib.loop.mcp.servers import Server
from harness_lib.loop.piped import Json
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import Plugin

if TYPE_CHECKING:
    from harness_lib.loop.mcp.client import Connections
    from harness_lib.loop.runtime import Runtime

PREFIX = "mcp__"
_HASH = 8
_opening = threading.Lock()


class McpTool(NamedTuple):
    """A tool of a server, under the name by which the model knows it."""

    name: str
    server: Server
    spec: Json

    def schema(self, runtime: Runtime) -> Json | None:  # noqa: ARG002 (as the protocol says)
        schema = {
            "name": self.name,
            "description": self.spec.get("description") or "",
            "input_schema": self.spec["input_schema"],
        }
        return {**schema, "annotations": {"readOnlyHint": True}} if self.spec.get("reads") is True else schema

    def describe(self, runtime: Runtime) -> str:  # noqa: ARG002 (as the protocol says)
        return str(self.spec.get("description") or "").partition("\n")[0]

    def execute(self, runtime: Runtime, tool_input: Json) -> Result:
        from harness_lib.loop.tools import builtin  # noqa: PLC0415 (only where a tool is called)

        text, error = connections(runtime).call(self.server, str(self.spec["name"]), tool_input)
        return Result(builtin.clipped(runtime, text), error=error)


def known(runtime: Runtime) -> list[Plugin]:
    """Return the tools that are known without starting a server."""
    by_name: dict[str, Plugin] = {}
    for server in runtime.servers:
        for spec in servers.remembered_tools(runtime, server) or ():
            name = name_of(server.name, str(spec["name"]))
            if name in by_name:
                name = name_of(server.name, str(spec["name"]), told_apart=True)
            tool = McpTool(name, server, spec)
            by_name[name] = Plugin("tools", "", name, f"mcp: {server.name}", tool)
    return list(by_name.values())


def prepare(runtime: Runtime) -> bool:
    """Ask the servers whose tools are not known, all at once; return whether there are more tools now.

    Those that were asked long ago are asked again beside the work, for the sessions to come.
    """
    if runtime.kept.get("mcp asked"):
        return False
    runtime.kept["mcp asked"] = True
    unknown = [server for server in runtime.servers if servers.remembered_tools(runtime, server) is None]
    old = [server for server in runtime.servers if server not in unknown and servers.is_old(runtime, server)]
    if old:
        connections(runtime).refresh(old)
    return bool(unknown) and connections(runtime).learn(unknown)


def connections(runtime: Runtime) -> Connections:
    """Return the servers that this process has started."""
    # Imported here: the package `mcp` takes a second, and most calls of hs need no server.
    from harness_lib.loop.mcp.client import Connections  # noqa: PLC0415

    # Calls that only read run side by side.
    with _opening:
        clients = runtime.kept.setdefault("clients", {})
        if "mcp" not in clients:
            clients["mcp"] = Connections(runtime)
        opened: Connections = clients["mcp"]
    return opened


def cancel(runtime: Runtime) -> None:
    """Cancel the calls of servers that are under way."""
    opened = runtime.kept.get("clients", {}).get("mcp")
    if opened is not None:
        opened.cancel()


def name_of(server: str, tool: str, *, told_apart: bool = False) -> str:
    """Return the name of a tool for the model, of the characters and the length that hosts take."""
    whole = f"{PREFIX}{server}__{tool}"
    plain = disk.for_hosts(whole)
    if len(whole) == len(plain) and not told_apart:
        return plain
    import hashlib  # noqa: PLC0415 (only where there is such a name)

    mark = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_HASH]
    return f"{plain[: disk.LONGEST - _HASH - 1]}_{mark}"

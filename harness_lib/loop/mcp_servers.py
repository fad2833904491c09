"""The MCP servers that `mcp.json` of usable sources and the client name, and their tools as plugins.

Tools are remembered as they were last told: known without starting a server, the same all session long.
"""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness_lib.loop import disk, trust
from harness_lib.loop.piped import Json, dumps
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import Plugin
from harness_lib.sha256 import digest

if TYPE_CHECKING:
    from harness_lib.loop.mcp_client import Connections
    from harness_lib.loop.runtime import Runtime

FILE = "mcp.json"
# Where `hs acp` puts the servers that its client names: name -> configuration.
OF_THE_CLIENT = "mcp servers of the client"
PREFIX = "mcp__"
_HASH = 8
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_OLD_SECONDS = 3600.0
_opening = threading.Lock()


class Server(NamedTuple):
    """A server by its name; `config` is its entry, with a `command` or a `url`."""

    runtime: Runtime
    name: str
    config: Json

    @property
    def filled(self) -> Json:
        """The entry with variables in place of ${NAME} or ${NAME:-DEFAULT}: keys need not stand in a file."""
        known = self.runtime.variables()

        def variable(match: re.Match[str]) -> str:
            name, default = match.groups()
            if not (known.get(name) or default is not None):
                self.runtime.notice_once(f"the MCP server {self.name} wants {name}, which is not set.")
            return known.get(name) or default or ""

        def fill(value: object) -> Any:
            if isinstance(value, dict):
                return {key: fill(each) for key, each in value.items()}
            if isinstance(value, list):
                return [fill(each) for each in value]
            return _VARIABLE.sub(variable, str(value))

        entry: Json = fill(self.config)
        return entry

    @property
    def tools(self) -> list[Json] | None:
        """Its tools; None where they are not known yet.

        What a session has begun with stays: another list would cost it all that its host has in the cache.
        """
        of_session: dict[str, list[Json]] = self.runtime.kept.setdefault("mcp tools", {})
        if self._key not in of_session:
            tools = disk.read_object(self._path).get("tools")
            if not isinstance(tools, list):
                return None
            objects = [tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
            of_session[self._key] = [tool for tool in objects if isinstance(tool.get("input_schema"), dict)]
        return of_session[self._key]

    def remember(self, tools: list[Json]) -> None:
        """Cache `tools` for this session, unless it has some, and for later ones."""
        self.runtime.kept.setdefault("mcp tools", {}).setdefault(self._key, tools)
        value = {"server": self.name, "tools": sorted(tools, key=lambda tool: str(tool["name"]))}
        self.runtime.keep(self._path, dumps(value).encode())

    @property
    def is_old(self) -> bool:
        """Whether it is time to ask for its tools again."""
        try:
            return time.time() - self._path.stat().st_mtime > _OLD_SECONDS
        except OSError:
            return True

    @property
    def _key(self) -> str:
        return digest(dumps([self.name, self.config]).encode())

    @property
    def _path(self) -> Path:
        return self.runtime.home / "mcp" / f"{self._key}.json"


def configured(runtime: Runtime) -> list[Server]:
    """Return the servers by name; the most local of a name counts."""
    settings: dict[str, Json] = {}
    for source in trust.usable(runtime):
        if (path := Path(source, FILE)).is_file():
            entries, problems = read(path)
            settings |= entries
            for problem in problems:
                runtime.notice_once(problem)
    settings |= runtime.kept.get(OF_THE_CLIENT, {})
    return [Server(runtime, name, settings[name]) for name in sorted(settings)]


def read(path: Path) -> tuple[dict[str, Json], list[str]]:
    """Return the servers in the file `path` by name, and a sentence about each thing that is left out."""
    entries = disk.read_object(path).get("mcpServers")
    if not isinstance(entries, dict):
        return {}, [f'{path} is left out: it is no {{"mcpServers": {{...}}}}.']
    problems = {name: _problem(entry) for name, entry in sorted(entries.items())}
    said = [f"the MCP server {name} in {path} is left out: {why}." for name, why in problems.items() if why]
    usable = {name: entry for name, entry in entries.items() if not problems[name]}
    return {name: each for name, each in usable.items() if each.get("disabled") is not True}, said


def _problem(entry: object) -> str:
    """Return what is wrong with the entry of a server; "" for nothing."""
    of = entry if isinstance(entry, dict) else {}
    if of.get("type") == "sse":
        return "the transport sse is not supported"
    args, env, headers = of.get("args", []), of.get("env", {}), of.get("headers", {})
    if not (isinstance(args, list) and isinstance(env, dict) and isinstance(headers, dict)):
        return "args must be a list, env and headers objects"
    named = isinstance(of.get("command"), str) or isinstance(of.get("url"), str)
    return "" if named else "it has neither command nor url"


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

        text, error = _connections(runtime).call(self.server, str(self.spec["name"]), tool_input)
        return Result(builtin.clipped(runtime, text), error=error)


def known(runtime: Runtime) -> list[Plugin]:
    """Return the tools that are known without starting a server."""
    tools = (
        McpTool(name_of(server.name, str(spec["name"])), server, spec)
        for server in runtime.servers
        for spec in server.tools or ()
    )
    return [Plugin("tools", "", tool.name, f"mcp: {tool.server.name}", tool) for tool in tools]


def name_of(server: str, tool: str) -> str:
    """Return the name of a tool for the model, of the characters and the length that hosts take."""
    whole = f"{PREFIX}{server}__{tool}"
    plain = disk.for_hosts(whole)
    if len(whole) == len(plain):
        return plain
    mark = digest(f"{server}\0{tool}".encode())[:_HASH]
    return f"{plain[: disk.LONGEST - _HASH - 1]}_{mark}"


def prepare(runtime: Runtime) -> bool:
    """Ask the servers whose tools are not known, all at once; return whether there are more tools now.

    Those that were asked long ago are asked again beside the work, for the sessions to come.
    """
    if runtime.kept.get("mcp asked"):
        return False
    runtime.kept["mcp asked"] = True
    unknown = [server for server in runtime.servers if server.tools is None]
    old = [server for server in runtime.servers if server.tools is not None and server.is_old]
    if old:
        _connections(runtime).refresh(old)
    return bool(unknown) and _connections(runtime).learn(unknown)


def _connections(runtime: Runtime) -> Connections:
    """Return the servers that this process has started."""
    # Imported here: the package `mcp` takes a second, and most calls of hs need no server.
    from harness_lib.loop.mcp_client import Connections  # noqa: PLC0415

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
    if opened:
        opened.cancel()

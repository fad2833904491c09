"""Find MCP servers: in `mcp.json` of the sources that may be used, and those that a client has named.

Their tools are remembered as they were last told: known without starting a server, the same all session
long.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness_lib.loop import disk, trust
from harness_lib.loop.piped import Json, dumps

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime


FILE = "mcp.json"
# Where `hs acp` puts the servers that its client names: name -> configuration.
OF_THE_CLIENT = "mcp servers of the client"
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_OLD_SECONDS = 3600.0


class Server(NamedTuple):
    """A server by its name; `config` is its entry, with a `command` or a `url`."""

    name: str
    config: Json

    @property
    def fingerprint(self) -> str:
        """The key of its cached tools: a hash of name and configuration."""
        import hashlib  # noqa: PLC0415 (only where there is a server)

        return hashlib.sha256(dumps([self.name, self.config]).encode()).hexdigest()


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
    return [Server(name, settings[name]) for name in sorted(settings)]


def expanded(runtime: Runtime, value: object) -> str:
    """Return `value` with each ${NAME} replaced by that variable: keys need not stand in a file."""
    known = runtime.variables()
    return _VARIABLE.sub(lambda match: known.get(match[1], ""), str(value))


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
    shaped = isinstance(args, list) and isinstance(env, dict) and isinstance(headers, dict)
    named = isinstance(of.get("command"), str) or isinstance(of.get("url"), str)
    return "" if shaped and named else "it has neither command nor url"


def remembered_tools(runtime: Runtime, server: Server) -> list[Json] | None:
    """Return the tools of `server`; None where they are not known yet.

    What a session has begun with stays: another list would cost it all that its host has in the cache.
    """
    known: dict[str, list[Json]] = runtime.kept.setdefault("mcp tools", {})
    if server.fingerprint not in known:
        tools = disk.read_object(_path(runtime, server)).get("tools")
        if not isinstance(tools, list):
            return None
        known[server.fingerprint] = [tool for tool in tools if is_tool(tool)]
    return known[server.fingerprint]


def remember_tools(runtime: Runtime, server: Server, tools: list[Json]) -> None:
    """Cache `tools` for this session, unless it has some, and for later ones."""
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
    """Return whether `tool` is a valid cached tool."""
    return (
        isinstance(tool, dict)
        and isinstance(tool.get("name"), str)
        and isinstance(tool.get("input_schema"), dict)
    )


def _path(runtime: Runtime, server: Server) -> Path:
    return runtime.home / "mcp" / f"{server.fingerprint}.json"

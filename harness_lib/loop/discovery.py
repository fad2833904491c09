"""Where plugins come from: the sources of the moment, and the table made of them.

Asked before every state, so that a plugin which is added during a run takes part in the next state.
"""

from __future__ import annotations

import os
from pathlib import Path

from harness_lib.errors import ConfigError
from harness_lib.loop import builtin, pipeline, trust
from harness_lib.loop.failures import HookError
from harness_lib.loop.mcp import tools
from harness_lib.loop.piped import as_object
from harness_lib.loop.plugins import Kind, Plugin, Table
from harness_lib.loop.runtime import Runtime

_FOREIGN = {
    "commands": "ForeignCommand",
    "tools": "ForeignTool",
    "providers": "ForeignProvider",
    "hooks.d": "ForeignHook",
}


def refresh(runtime: Runtime) -> None:
    """Find the sources and their plugins anew. Raises ConfigError when a `sources` hook fails."""
    # Only bundled packs and home say where sources are: a project could name any directory.
    runtime.sources = bootstrap(runtime)
    runtime.table = table(runtime)
    stage = runtime.stage
    try:
        found = as_object(pipeline.call(runtime, "sources", {}))
    except HookError as failure:
        raise ConfigError(
            f"A hook of the stage `sources` failed: {failure}.", "See hs hooks sources."
        ) from failure
    sources = found.get("sources") if found else None
    if not isinstance(sources, list):
        raise ConfigError('The stage `sources` ended without {"sources": [...]}.', "See hs hooks sources.")
    runtime.sources = [str(source) for source in sources]
    runtime.table = table(runtime)
    runtime.stage = stage


def bootstrap(runtime: Runtime) -> list[str]:
    """Return the bundled packs, and home if it is there."""
    packs = runtime.listing.directories(str(runtime.root / "plugins"))
    return [*packs, str(runtime.home)] if runtime.home.is_dir() else packs


def table(runtime: Runtime) -> Table:
    """Return the plugins of the run's sources; ours are below all of them."""
    made = Table()
    for plugin in builtin.PLUGINS:
        made.add(plugin)
    usable = trust.usable(runtime)
    for plugin in tools.known(runtime):
        made.add(plugin)
    for source in usable:
        for plugin in _of_source(runtime, source):
            made.add(plugin)
    allowed = allowed_tools(runtime)
    if allowed is not None:
        made.keep_tools(allowed)
    return made


def allowed_tools(runtime: Runtime) -> list[str] | None:
    """Return the only tools that this run may use (HARNESS_TOOLS, by commas); None: all of them."""
    text = runtime.env.get("HARNESS_TOOLS")
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _of_source(runtime: Runtime, source: str) -> list[Plugin]:
    kinds: list[Kind] = ["commands", "tools", "providers"]
    found = [
        Plugin(kind, "", name, path, _foreign(kind, path))
        for kind in kinds
        for name, path in _programs(runtime, source, kind)
        if not (kind == "providers" and name.endswith(".conf"))
    ]
    hooks = str(Path(source, "hooks.d"))
    for stage in runtime.listing.names(hooks):
        programs = _programs(runtime, hooks, stage)
        found += [Plugin("hooks.d", stage, name, path, _foreign("hooks.d", path)) for name, path in programs]
    return found


def _foreign(kind: Kind, path: str) -> object:
    # Imported here: many a call of hs meets no foreign plugin, and starts faster without.
    from harness_lib.loop import foreign  # noqa: PLC0415

    return getattr(foreign, _FOREIGN[kind])(path)


def _programs(runtime: Runtime, parent: str, kind: str) -> list[tuple[str, str]]:
    directory = f"{parent}{os.sep}{kind}"
    return [(name, f"{directory}{os.sep}{name}") for name in runtime.listing.executables(directory)]

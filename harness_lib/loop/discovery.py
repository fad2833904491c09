"""Find plugins: the sources of the moment, and the table made of them.

Asked before every state, so that a plugin which is added during a run takes part in the next state.
"""

from __future__ import annotations

import os

from harness_lib.errors import ConfigError
from harness_lib.loop import builtin, listing, pipeline, trust
from harness_lib.loop.failures import GarbageError, HookError, HookFailedError
from harness_lib.loop.mcp import tools
from harness_lib.loop.piped import as_object
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.table import Kind, Plugin, Table

# Kind, stage, name and path of an executable file.
Program = tuple[Kind, str, str, str]

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
        result = as_object(pipeline.call(runtime, "sources", {}))
    except GarbageError as failure:
        raise HookFailedError(f"{failure}.", "See hs hooks sources.") from failure
    except HookError as failure:
        raise ConfigError(
            f"A hook of the stage `sources` failed: {failure}.", "See hs hooks sources."
        ) from failure
    sources = result.get("sources") if result else None
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
    """Return the plugins of the run's sources, ours below them: the same table while nothing changes."""
    programs = [program for source in trust.usable(runtime) for program in _of_source(runtime, source)]
    parts = ([*_pack(runtime, programs), *tools.known(runtime)], programs, allowed_tools(runtime))
    # Two are asked for in turns: that of the bootstrap, and that of the run.
    known: list[tuple[object, Table]] = runtime.kept.setdefault("tables", [])
    for seen, assembled in known:
        if seen == parts:
            return assembled
    assembled = _table(*parts)
    runtime.kept["tables"] = [*known[-1:], (parts, assembled)]
    return assembled


def _pack(runtime: Runtime, programs: list[Program]) -> list[Plugin]:
    """Return the hooks that the run's provider brings; somebody else's of its name brings its own."""
    theirs = any(kind == "providers" and name == runtime.provider for kind, _, name, _ in programs)
    return [] if theirs else builtin.PACKS.get(runtime.provider, [])


def _table(ours: list[Plugin], programs: list[Program], allowed: list[str] | None) -> Table:
    assembled = Table()
    for plugin in (*builtin.PLUGINS, *ours):
        assembled.add(plugin)
    for kind, stage, name, path in programs:
        assembled.add(Plugin(kind, stage, name, path, _foreign(kind, path)))
    if allowed is not None:
        assembled.keep_tools(allowed)
    return assembled


def allowed_tools(runtime: Runtime) -> list[str] | None:
    """Return the only tools that this run may use (HARNESS_TOOLS, by commas); None: all of them."""
    text = runtime.env.get("HARNESS_TOOLS")
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _of_source(runtime: Runtime, source: str) -> list[Program]:
    kinds: list[Kind] = ["commands", "tools", "providers"]
    # Most sources have one of the four: what the directory does not name need not be asked for.
    present = runtime.listing.names(source)
    programs: list[Program] = [
        (kind, "", name, path)
        for kind in kinds
        if kind in present
        for name, path in _programs(runtime, source, kind)
    ]
    hooks = f"{source}{os.sep}hooks.d"
    for stage in runtime.listing.names(hooks) if "hooks.d" in present else ():
        programs += [("hooks.d", stage, name, path) for name, path in _programs(runtime, hooks, stage)]
    return programs


def _foreign(kind: Kind, path: str) -> object:
    # Imported here: many a call of hs meets no foreign plugin, and starts faster without.
    from harness_lib.loop import foreign  # noqa: PLC0415

    return getattr(foreign, _FOREIGN[kind])(path)


def _programs(runtime: Runtime, parent: str, kind: str) -> list[tuple[str, str]]:
    directory = f"{parent}{os.sep}{kind}"
    # A variant is no program; there are more of them than of all the others.
    names = [
        name
        for name in runtime.listing.names(directory)
        if not (kind == "providers" and name.endswith(".conf"))
    ]
    paths = [f"{directory}{os.sep}{name}" for name in names]
    return [(name, path) for name, path in zip(names, paths, strict=True) if listing.is_program(path)]

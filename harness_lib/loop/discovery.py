"""Find plugins: the sources of the moment, and the table made of them.

This is done before every request and behind every tool, so that a plugin which is added during a run takes
part in it.
"""

from __future__ import annotations

from harness_lib.errors import ConfigError
from harness_lib.loop import builtin, disk, plugins, trust
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
    runtime.kept.pop("usable", None)
    # Only bundled packs and home say where sources are: a project could name any directory.
    runtime.sources = bootstrap(runtime)
    runtime.table = table(runtime)
    stage = runtime.stage
    try:
        result = as_object(plugins.call(runtime, "sources", {}))
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
    packs = disk.directories(str(runtime.root / "plugins"))
    return [*packs, str(runtime.home)] if runtime.home.is_dir() else packs


def table(runtime: Runtime) -> Table:
    """Return the plugins of the run's sources, ours below them."""
    programs = [program for source in trust.usable(runtime) for program in _of_source(source)]
    # Somebody else's provider of a name brings its own hooks.
    theirs = any(kind == "providers" and name == runtime.provider for kind, _, name, _ in programs)
    pack = [] if theirs else builtin.PACKS.get(runtime.provider, [])
    assembled = Table(runtime.allowed_tools)
    for plugin in (*builtin.PLUGINS, *pack, *tools.known(runtime)):
        assembled.add(plugin)
    for kind, stage, name, path in programs:
        assembled.add(Plugin(kind, stage, name, path, _foreign(kind, path)))
    return assembled


def _of_source(source: str) -> list[Program]:
    kinds: list[Kind] = ["commands", "tools", "providers"]
    places: list[tuple[Kind, str, str]] = [(kind, "", f"{source}/{kind}") for kind in kinds]
    hooks = f"{source}/hooks.d"
    places += [("hooks.d", stage, f"{hooks}/{stage}") for stage in disk.visible_names(hooks)]
    return [
        (kind, stage, name, f"{directory}/{name}")
        for kind, stage, directory in places
        for name in disk.programs(directory)
        # A variant is no program.
        if not (kind == "providers" and name.endswith(".conf"))
    ]


def _foreign(kind: Kind, path: str) -> object:
    # Imported here: many a call of hs meets no foreign plugin, and starts faster without.
    from harness_lib.loop import foreign  # noqa: PLC0415

    return getattr(foreign, _FOREIGN[kind])(path)

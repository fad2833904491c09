"""Find plugins: the sources, the table made of them, and the built-in plugins by name.

This is done before every request and behind every tool, unless nothing has run since, so that a plugin which
is added during a run takes part in it. The commands of `hs` are not among ours: they stand above the loop.
"""

from __future__ import annotations

import os

from harness_lib.errors import ConfigError
from harness_lib.loop import disk, plugins, trust
from harness_lib.loop.mcp import servers
from harness_lib.loop.piped import GarbageError, HookError, HookFailedError
from harness_lib.loop.providers import hosted
from harness_lib.loop.runtime import BUILT_IN, BUNDLED, Kind, Plugin, Runtime, Table
from harness_lib.loop.stages import assemble, send, setup, tasks, tool_calls
from harness_lib.loop.tools import agent, asking, builtin, files, search
from harness_lib.loop.tools import skills as skill

_HOOKS: dict[str, dict[str, plugins.Hook]] = {
    "sources": {
        "30-walk-dirs": setup.walk,
        "35-auth-env": setup.merge_credentials,
        "40-scope-providers": setup.scope,
    },
    "resolve": {
        "10-settings": setup.settings,
        "20-detect": setup.detect,
        "30-defaults": setup.defaults,
    },
    "start": {"10-init": assemble.start, "90-harness": tasks.begin},
    "assemble": {
        "05-typed": assemble.tell_typed,
        "10-messages": assemble.messages,
        "20-tools": assemble.tools,
        "30-prompts": assemble.prompts,
        "35-skills": assemble.catalogue,
    },
    "send": {"10-send": send.send},
    "receive": {"10-save": send.save},
    "tool_exec": {"10-exec": tool_calls.execute},
    "tool_gate": {"50-approve": asking.approve, "90-harness": tasks.guard},
    "tool_done": {"10-save": tool_calls.save, "90-harness": tasks.beat},
    "done": {"90-harness": tasks.hold},
    "error": {"10-display": assemble.display},
    "auth-set": {"10-oauth": setup.log_in, "50-default": setup.ask_key},
}
_TOOLS = (
    agent.TOOL,
    builtin.TOOL,
    files.EDIT_FILE,
    files.READ_FILE,
    search.GLOB,
    search.GREP,
    files.REPLACE,
    skill.TOOL,
    files.WRITE_FILE,
)


def refresh(runtime: Runtime) -> None:
    """Find the sources and their plugins anew. Raises ConfigError when a `sources` hook fails."""
    # Only bundled packs and home say where sources are: a project could name any directory.
    home = [str(runtime.home)] if runtime.home.is_dir() else []
    use(runtime, [*disk.directories(str(runtime.root / "plugins")), *home])
    stage = runtime.stage
    try:
        sources = plugins.call(runtime, "sources", {}).get("sources")
    except GarbageError as failure:
        raise HookFailedError(f"{failure}.", "See hs hooks sources.") from failure
    except HookError as failure:
        raise ConfigError(
            f"A hook of the stage `sources` failed: {failure}.", "See hs hooks sources."
        ) from failure
    if not isinstance(sources, list) or not all(
        isinstance(each, str) and "\0" not in each for each in sources
    ):
        raise ConfigError('The stage `sources` ended without {"sources": [...]}.', "See hs hooks sources.")
    use(runtime, sources)
    runtime.stage, runtime.is_fresh = stage, True


def use(runtime: Runtime, sources: list[str]) -> None:
    """Make the table from `sources`; built-in tools are left out if the pack `core` is not among them."""
    core = str(runtime.root / "plugins" / "core")
    # What was looked up for the stage `sources` did not know all plugins.
    runtime.sources, runtime.found = sources, {}
    runtime.without_core = core not in sources and disk.is_directory(core)
    text = runtime.env.get("HARNESS_TOOLS")
    allowed = None if text is None else [name.strip() for name in text.split(",") if name.strip()]
    runtime.table = Table(allowed)
    runtime.servers = servers.configured(runtime)
    claudes = _of_claude(runtime) if runtime.provider == "claude" else []
    for plugin in [*PLUGINS, *claudes, *(servers.known(runtime) if runtime.servers else [])]:
        if not (runtime.without_core and plugin.kind == "tools" and plugin.is_ours):
            runtime.table.add(plugin)
    for source in trust.usable(runtime):
        # What is bundled holds texts and configs: its plugins are the functions above.
        if not source.startswith(f"{BUNDLED}{os.sep}"):
            _add_programs(runtime.table, source)


def _add_programs(table: Table, source: str) -> None:
    """Add the programs of `source`; the hooks of one stage, as those of one kind, are in one directory."""
    places: list[tuple[Kind, str, str]] = [(kind, "", kind) for kind in ("commands", "tools", "providers")]
    places += [("hooks.d", stage, f"hooks.d/{stage}") for stage in disk.visible_names(f"{source}/hooks.d")]
    for kind, stage, directory in places:
        for name in disk.programs(f"{source}/{directory}"):
            # A provider config is no program.
            if not (kind == "providers" and name.endswith(".conf")):
                # Imported here: many a run has no foreign plugin, and starts faster without.
                from harness_lib.loop import foreign  # noqa: PLC0415

                path = f"{source}/{directory}/{name}"
                table.add(Plugin(kind, stage, name, path, foreign.KINDS[kind](path)))


def stages() -> list[str]:
    """Return the stages that have built-in hooks."""
    return list(_HOOKS)


class _Claude:
    """The provider `claude`, imported at its first use."""

    def __getattr__(self, name: str) -> object:
        from harness_lib.loop import claude  # noqa: PLC0415 (most turns have another provider)

        return getattr(claude.PROVIDER, name)


def _of_claude(runtime: Runtime) -> list[Plugin]:
    """Return the hooks of the built-in provider `claude`, which keeps the conversation itself."""
    own = (f"{source}/providers/claude" for source in trust.usable(runtime))
    if any(os.access(path, os.X_OK) for path in own):
        return []
    from harness_lib.loop import claude  # noqa: PLC0415 (as above)

    return [Plugin("hooks.d", stage, name, BUILT_IN, hook) for stage, name, hook in claude.HOOKS]


PLUGINS: list[Plugin] = [
    *(
        Plugin("hooks.d", stage, name, BUILT_IN, hook)
        for stage, hooks in _HOOKS.items()
        for name, hook in hooks.items()
    ),
    *(Plugin("tools", "", tool.name, BUILT_IN, tool) for tool in _TOOLS),
    Plugin("providers", "", "anthropic", BUILT_IN, hosted.ANTHROPIC),
    Plugin("providers", "", "claude", BUILT_IN, _Claude()),
    Plugin("providers", "", "openai", BUILT_IN, hosted.OPENAI),
]

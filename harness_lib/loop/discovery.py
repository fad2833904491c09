"""Find plugins, and with them the provider and its model: the stages `sources`, `resolve` and `auth-set`.

The sources are found, and the table made of them, before every request and behind every tool, unless nothing
has run since, so that a plugin which is added during a run takes part in it. The built-in plugins are at the
end; the commands of `hs` are not among them: they stand above the loop.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from harness_lib.errors import ConfigError
from harness_lib.loop import disk, hosted, keys, mcp_servers, plugins, request, tasks, tool_calls, trust
from harness_lib.loop.piped import GarbageError, HookError, HookFailedError, Json
from harness_lib.loop.runtime import BUILT_IN, BUNDLED, Kind, Plugin, Runtime, Table
from harness_lib.loop.tools import agent, asking, builtin, files, search
from harness_lib.loop.tools import skills as skill

CACHE = ".auth-cache.json"
# In the order in which bundled packs of providers stand among the sources.
_OUR_PROVIDERS = ("anthropic", "openai")
# Tried last: it needs no key, so a key that is set means another provider.
_LAST = "claude"


def refresh(runtime: Runtime) -> None:
    """Find the sources and their plugins anew. Raises ConfigError when a `sources` hook fails."""
    # Only bundled packs and home say where sources are: a project could name any directory.
    home = [str(runtime.home)] if runtime.home.is_dir() else []
    use(runtime, [*disk.directories(str(runtime.root / "plugins")), *home])
    stage = runtime.stage
    try:
        sources = _sources(plugins.call(runtime, "sources", {}))
    except GarbageError as failure:
        raise HookFailedError(f"{failure}.", "See hs hooks sources.") from failure
    except HookError as failure:
        raise ConfigError(
            f"A hook of the stage `sources` failed: {failure}.", "See hs hooks sources."
        ) from failure
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
    runtime.servers = mcp_servers.configured(runtime)
    claudes = _of_claude(runtime) if runtime.provider == "claude" else []
    for plugin in [*PLUGINS, *claudes, *(mcp_servers.known(runtime) if runtime.servers else [])]:
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


def walk(runtime: Runtime, payload: Json) -> Json:  # noqa: ARG001 (the first hook makes the list)
    """List bundled packs, home, and each `.harness` from the root down to here, its packs before itself."""
    home_source = str(runtime.home)
    sources = disk.directories(f"{runtime.root}{os.sep}plugins")
    way = [str(directory / ".harness") for directory in (*reversed(runtime.cwd.parents), runtime.cwd)]
    local = [path for path in way if disk.is_directory(path)]
    if home_source not in local and disk.is_directory(home_source):
        local.insert(0, home_source)
    for source in local:
        sources += [*disk.directories(f"{source}{os.sep}plugins"), source]
    return {"sources": sources}


def merge_credentials(runtime: Runtime, payload: Json) -> Json:
    """Write the credentials of all sources into the cache that provider programs read."""
    merged = keys.merged(replace(runtime, sources=_sources(payload)))
    cache = runtime.home / CACHE
    if disk.read_object(cache) != merged:
        runtime.keep(cache, keys.render(merged).encode())
    return payload


def scope(runtime: Runtime, payload: Json) -> Json:
    """Leave out the packs of providers that are not in use; their hooks are for another API."""
    provider = runtime.provider
    sources = runtime.unscoped = _sources(payload)
    if not disk.is_name(provider):
        return payload
    protocol = hosted.protocol_of(replace(runtime, sources=sources), provider)
    kept = []
    for source in sources:
        own, providers = Path(source).name, {*disk.visible_names(f"{source}/providers")}
        # In a bundled pack the provider is a function.
        is_bundled = Path(source).parent == runtime.root / "plugins" and bool(providers)
        is_pack = is_bundled or bool(providers & {own, f"{own}.conf"})
        if not is_pack or own in {provider, protocol} or providers & {provider, f"{provider}.conf"}:
            kept.append(source)
    return {**payload, "sources": kept}


def _sources(payload: Json) -> list[str]:
    """Return the list of sources in `payload`. Raises HookError for anything else."""
    sources = payload.get("sources")
    if not isinstance(sources, list) or not all(
        isinstance(each, str) and "\0" not in each for each in sources
    ):
        raise HookError('the stage `sources` ended without {"sources": [...]}', payload)
    return sources


def settings(runtime: Runtime, payload: Json) -> Json:
    """Take provider and model from the most local `settings.conf`; a model belongs to its provider."""
    files = (Path(source, "settings.conf") for source in reversed(trust.usable(runtime)))
    nearest = next((path for path in files if path.is_file()), None)
    if payload.get("provider") or not nearest:
        return payload
    values = disk.read_conf(nearest)
    model = payload.get("model") or values.get("model", "")
    return {**payload, "provider": values.get("provider", ""), "model": model}


def detect(runtime: Runtime, payload: Json) -> Json:
    """Take the first provider that is ready, in the order of the sources."""
    if payload.get("provider"):
        return payload
    for name in candidates(runtime):
        provider = hosted.find_provider(runtime, name)
        if provider and provider.ready(runtime):
            return {**payload, "provider": name}
    advice = (
        "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_API_URL, or: hs auth login chatgpt. "
        "hs help shows more."
    )
    raise HookError(f"no ready provider found. {advice}")


def defaults(runtime: Runtime, payload: Json) -> Json:
    """Take the model that the provider names."""
    if payload.get("model"):
        return payload
    provider = hosted.find_provider(runtime, str(payload.get("provider") or ""))
    return {**payload, "model": provider.defaults(runtime).get("model", "") if provider else ""}


def candidates(runtime: Runtime) -> list[str]:
    """Return the names of all providers and provider configs, in the order of the sources."""
    names: list[str] = []
    for source in trust.usable(runtime):
        directory = f"{source}/providers"
        programs = {name for name in disk.programs(directory) if not name.endswith(".conf")}
        configs = {name[:-5] for name in disk.visible_names(directory) if name.endswith(".conf")}
        is_bundled = Path(source).parent == runtime.root / "plugins"
        ours = {Path(source).name} & set(_OUR_PROVIDERS) if is_bundled else set()
        names += sorted(programs | ours | configs)
    return list(dict.fromkeys(names if runtime.without_core else [*names, _LAST]))


def log_in(runtime: Runtime, credential: Json) -> Json:
    """Log in where the provider's `.conf` says `auth=oauth`, unless there is a credential already."""
    name = runtime.env.get("HARNESS_AUTH_PROVIDER", "")
    if name == "claude" and not credential.get("type"):
        raise HookError("Claude Code keeps its login itself: start claude and type /login")
    config = hosted.find_config(runtime, name)
    if credential.get("type") or not config or not config.values.get("auth"):
        return credential
    # Imported here: only a login needs a server and a browser.
    from harness_lib.loop import login  # noqa: PLC0415

    return login.log_in(config)


def ask_key(runtime: Runtime, credential: Json) -> Json:
    """Read a key from the terminal without showing it, unless a hook before this one has a credential."""
    if credential.get("type"):
        return credential
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError as error:
        raise HookError("there is no terminal to read the key from") from error
    import getpass  # noqa: PLC0415 (only where a key is typed)

    try:
        key = getpass.getpass(f"Key for {runtime.env.get('HARNESS_AUTH_PROVIDER', '')}: ").strip()
    except EOFError as error:
        raise HookError("no key was typed") from error
    if not key or not key.isprintable():
        raise HookError("the key is empty or has characters that cannot be printed")
    return {"type": "api_key", "key": key}


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


# The built-in hooks by stage and name.
HOOKS: dict[str, dict[str, plugins.Hook]] = {
    "sources": {
        "30-walk-dirs": walk,
        "35-auth-env": merge_credentials,
        "40-scope-providers": scope,
    },
    "resolve": {
        "10-settings": settings,
        "20-detect": detect,
        "30-defaults": defaults,
    },
    "start": {"10-init": request.start, "90-harness": tasks.begin},
    "assemble": {
        "05-typed": request.tell_typed,
        "10-messages": request.messages,
        "20-tools": request.tools,
        "30-prompts": request.prompts,
        "35-skills": request.catalogue,
    },
    "send": {"10-send": request.send},
    "receive": {"10-save": request.save},
    "tool_exec": {"10-exec": tool_calls.execute},
    "tool_gate": {"50-approve": asking.approve, "90-harness": tasks.guard},
    "tool_done": {"10-save": tool_calls.save, "90-harness": tasks.beat},
    "done": {"90-harness": tasks.hold},
    "error": {"10-display": request.display},
    "auth-set": {"10-oauth": log_in, "50-default": ask_key},
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


PLUGINS: list[Plugin] = [
    *(
        Plugin("hooks.d", stage, name, BUILT_IN, hook)
        for stage, hooks in HOOKS.items()
        for name, hook in hooks.items()
    ),
    *(Plugin("tools", "", tool.name, BUILT_IN, tool) for tool in _TOOLS),
    Plugin("providers", "", "anthropic", BUILT_IN, hosted.ANTHROPIC),
    Plugin("providers", "", "claude", BUILT_IN, _Claude()),
    Plugin("providers", "", "openai", BUILT_IN, hosted.OPENAI),
]

"""The stages before a turn: `sources`, `resolve` and `auth-set`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from harness_lib.loop import disk, trust
from harness_lib.loop.disk import is_name
from harness_lib.loop.piped import HookError, Json
from harness_lib.loop.providers import hosted, keys
from harness_lib.loop.runtime import Runtime

CACHE = ".auth-cache.json"
# In the order in which bundled packs of providers stand among the sources.
_OUR_PROVIDERS = ("anthropic", "openai")
# Tried last: it needs no key, so a key that is set means another provider.
_LAST = "claude"


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
    if not is_name(provider):
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
    sources = payload.get("sources")
    if not isinstance(sources, list):
        raise HookError("no list of sources came in", payload)
    return [str(source) for source in sources]


def settings(runtime: Runtime, payload: Json) -> Json:
    """Take provider and model from the most local `settings.conf`; a model belongs to its provider."""
    files = (Path(source, "settings.conf") for source in reversed(trust.usable(runtime)))
    nearest = next((path for path in files if path.is_file()), None)
    if payload.get("provider") or nearest is None:
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
        if provider is not None and provider.ready(runtime):
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
    if credential.get("type") or config is None or not config.values.get("auth"):
        return credential
    # Imported here: only a login needs a server and a browser.
    from harness_lib.loop.providers import login  # noqa: PLC0415

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

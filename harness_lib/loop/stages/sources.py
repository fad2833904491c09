"""The stage `sources`: which directories plugins come from, the most local last."""

from __future__ import annotations

import os

from harness_lib.loop import listing
from harness_lib.loop.failures import HookError
from harness_lib.loop.names import is_name
from harness_lib.loop.piped import Json, Piped, as_object
from harness_lib.loop.provider_files import keys, variants
from harness_lib.loop.runtime import Runtime

CACHE = ".auth-cache.json"


def walk(runtime: Runtime, piped: Piped) -> Piped:  # noqa: ARG001 (the first hook makes the list)
    """Bundled packs, then home, then each `.harness` from the root down to here, its packs before itself."""
    home_source = str(runtime.home)
    sources = listing.directories(f"{runtime.root}{os.sep}plugins")
    way = [str(directory / ".harness") for directory in (*reversed(runtime.cwd.parents), runtime.cwd)]
    local = [path for path in way if listing.is_directory(path)]
    if home_source not in local and listing.is_directory(home_source):
        local.insert(0, home_source)
    for source in local:
        sources += [*listing.directories(f"{source}{os.sep}plugins"), source]
    return {"sources": sources}


def merge_credentials(runtime: Runtime, piped: Piped) -> Piped:
    """Write the credentials of all sources where foreign providers look for them."""
    before, runtime.sources = runtime.sources, _sources(piped)
    merged = keys.merged(runtime)
    runtime.sources = before
    cache = runtime.home / CACHE
    if keys.load(cache) != merged:
        runtime.keep(cache, keys.render(merged).encode())
    return piped


def scope(runtime: Runtime, piped: Piped) -> Piped:
    """Leave out the packs of providers that are not in use: their hooks would speak another language."""
    provider = runtime.provider
    sources = runtime.unscoped = _sources(piped)
    if not is_name(provider):
        return piped
    protocol = _protocol(runtime, sources, provider)
    kept = [source for source in sources if _belongs(runtime, source, {provider, protocol}, provider)]
    return {**(as_object(piped) or {}), "sources": kept}


def _protocol(runtime: Runtime, sources: list[str], provider: str) -> str:
    before, runtime.sources = runtime.sources, sources
    variant = variants.find(runtime, provider)
    runtime.sources = before
    return variant.protocol if variant else provider


def _belongs(runtime: Runtime, source: str, names: set[str], provider: str) -> bool:
    own = source.rpartition(os.sep)[2]
    providers = listing.names(f"{source}{os.sep}providers")
    if own not in providers and f"{own}.conf" not in providers and not _is_ours(runtime, source):
        return True
    return own in names or provider in providers or f"{provider}.conf" in providers


def _is_ours(runtime: Runtime, source: str) -> bool:
    """Return whether `source` is a bundled pack of variants, whose provider is a function."""
    bundled = source.rpartition(os.sep)[0] == f"{runtime.root}{os.sep}plugins"
    return bundled and listing.is_directory(f"{source}{os.sep}providers")


def _sources(piped: Piped) -> list[str]:
    payload: Json = as_object(piped) or {}
    sources = payload.get("sources")
    if not isinstance(sources, list):
        raise HookError("no list of sources came in", piped)
    return [str(source) for source in sources]

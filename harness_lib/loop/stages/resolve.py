"""The stage `resolve`: which provider and which model, from settings, from what is ready, from defaults."""

from __future__ import annotations

from pathlib import Path

from harness_lib.loop import conf, listing, trust
from harness_lib.loop.failures import HookError
from harness_lib.loop.piped import Json, Piped, as_object
from harness_lib.loop.provider_files import variants
from harness_lib.loop.providers import described
from harness_lib.loop.runtime import Runtime

# In the order in which bundled packs of providers stand among the sources.
_OURS = ("anthropic", "openai")
# It needs no key, so whoever has one means the others.
_LAST = "claude"


def settings(runtime: Runtime, piped: Piped) -> Piped:
    """Take provider and model from the most local `settings.conf`; a model belongs to its provider."""
    asked = _asked(piped)
    for source in reversed(trust.usable(runtime)):
        path = Path(source, "settings.conf")
        if path.is_file():
            values = conf.read(path)
            if not asked["provider"]:
                model = asked["model"] or values.get("model", "")
                return {**asked, "provider": values.get("provider", ""), "model": model}
            break
    return asked


def detect(runtime: Runtime, piped: Piped) -> Piped:
    """Take the first provider that is ready, in the order of the sources."""
    asked = _asked(piped)
    if asked["provider"]:
        return asked
    for name in candidates(runtime):
        if is_ready(runtime, name):
            return {**asked, "provider": name}
    advice = (
        "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_API_URL, or: hs auth login chatgpt. "
        "hs help shows more."
    )
    message = f"no ready provider found. {advice}"
    raise HookError(message, {"error": message})


def defaults(runtime: Runtime, piped: Piped) -> Piped:
    """Take the model that the provider names."""
    asked = _asked(piped)
    if asked["model"]:
        return asked
    provider = described.find(runtime, asked["provider"])
    return {**asked, "model": provider.defaults(runtime).get("model", "") if provider else ""}


def is_ready(runtime: Runtime, name: str) -> bool:
    """Return whether the provider or variant `name` has what it needs."""
    provider = described.find(runtime, name)
    return provider is not None and provider.ready(runtime)


def candidates(runtime: Runtime) -> list[str]:
    """Return the names of all providers and variants, in the order of the sources."""
    names: list[str] = []
    for source in trust.usable(runtime):
        directory = str(Path(source, "providers"))
        programs = {name for name in listing.programs(directory) if not name.endswith(".conf")}
        ours = {Path(source).name} & set(_OURS) if Path(source).parent == runtime.root / "plugins" else set()
        names += sorted(programs | ours | set(variants.in_source(source)))
    return list(dict.fromkeys([*names, _LAST]))


def _asked(piped: Piped) -> Json:
    request = as_object(piped) or {}
    return {
        **request,
        "provider": str(request.get("provider") or ""),
        "model": str(request.get("model") or ""),
    }

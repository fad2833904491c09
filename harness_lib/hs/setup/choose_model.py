"""Provider and model: those that a command needs, and the one that a person chooses by its name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from harness_lib.errors import EnvSetupError, HarnessError
from harness_lib.loop import discovery, plugins, trust
from harness_lib.loop.failures import GarbageError, HookError, HookFailedError, ProviderError
from harness_lib.loop.piped import as_object
from harness_lib.loop.providers import endpoints, models
from harness_lib.loop.runtime import Runtime, Table
from harness_lib.loop.stages.setup import candidates, is_ready


def resolve(runtime: Runtime) -> None:
    """Set the run's provider and model by the stage `resolve`. Raises EnvSetupError where none is ready."""
    asked = {"provider": runtime.provider, "model": runtime.model}
    try:
        resolved = as_object(plugins.call(runtime, "resolve", asked, is_told=True)) or {}
    except GarbageError as failure:
        raise HookFailedError(f"{failure}.", "See hs hooks resolve.") from failure
    except HookError as failure:
        problem = (as_object(failure.result) or {}).get("error") or str(failure)
        raise EnvSetupError(str(problem)) from failure
    runtime.env["HARNESS_PROVIDER"] = str(resolved.get("provider") or "")
    runtime.env["HARNESS_MODEL"] = str(resolved.get("model") or "")
    discovery.refresh(runtime)
    try:
        # Without a key or a login a session could not go on.
        endpoints.check(runtime)
    except ProviderError as error:
        raise EnvSetupError(str(error)) from error


@dataclass(frozen=True)
class Choice:
    """A model at a provider."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


def choose(runtime: Runtime, name: str) -> None:
    """Go on with the model `name`, or PROVIDER/MODEL. Raises HarnessError, and all is as it was before."""
    before = {key: runtime.env[key] for key in ("HARNESS_PROVIDER", "HARNESS_MODEL")}
    choice = meant(runtime, name)
    runtime.env |= {"HARNESS_PROVIDER": choice.provider, "HARNESS_MODEL": choice.model}
    try:
        resolve(runtime)
    except HarnessError:
        runtime.env |= before
        discovery.refresh(runtime)
        raise
    if runtime.session is not None:
        runtime.session.goes_on_with(runtime.provider, runtime.model)


def meant(runtime: Runtime, name: str) -> Choice:
    """Return the model that `name` stands for, and whose it is.

    It is the run's own provider's, unless it is said (PROVIDER/MODEL) or known (by its default, or by the
    `models.conf` of its pack) to be another's, which is ready.
    """
    wide = _everywhere(runtime)
    ready = _defaults(wide)
    own = Choice(
        runtime.provider, next((each.model for each in ready if each.provider == runtime.provider), "")
    )
    prefix, _, rest = name.partition("/")
    for each in ready:
        if name == str(each) or each == Choice(prefix, name):
            return each
    # A host of many vendors' models calls them VENDOR/MODEL.
    many = "/" in own.model
    if rest and name != own.model and (prefix == own.provider or (not many and prefix in candidates(wide))):
        return Choice(prefix, rest)
    owner = _owner(wide, name)
    if name != own.model and owner != models.protocol_of(wide, own.provider):
        for each in ready:
            if name == each.model:
                return each
        if owner and is_ready(wide, owner):
            return Choice(owner, name)
    return Choice(own.provider, name)


def ready(runtime: Runtime) -> list[Choice]:
    """Return the default model of each provider that is ready."""
    return _defaults(_everywhere(runtime))


def names(runtime: Runtime) -> list[str]:
    """Return what is known of models that can be typed, those of the run's provider first.

    Providers that are programs are not asked: one of them may take its time.
    """
    wide = _everywhere(runtime)
    defaults = _defaults(wide, programs=False)
    own, protocol = runtime.provider, models.protocol_of(wide, runtime.provider)
    providers = {each.provider for each in defaults}
    lines = [(_pack(source), name) for source in trust.usable(wide) for name in models.names(wide, source)]
    return list(
        dict.fromkeys(
            [
                *(each.model for each in defaults if each.provider == own),
                *(name for pack, name in lines if pack == protocol),
                *(str(each) for each in defaults if each.provider != own),
                *(name for pack, name in lines if pack in providers),
            ]
        )
    )


def _everywhere(runtime: Runtime) -> Runtime:
    """Return the run as it would be without a provider: with the packs of all of them."""
    wide = replace(runtime, env={**runtime.env, "HARNESS_PROVIDER": "", "HARNESS_MODEL": ""}, table=Table())
    discovery.refresh(wide)
    return wide


def _defaults(wide: Runtime, *, programs: bool = True) -> list[Choice]:
    choices = []
    for name in candidates(wide):
        plugin, provider = wide.table.find("providers", name), endpoints.find_provider(wide, name)
        asked = provider is not None and (programs or plugin is None or plugin.is_ours)
        model = (
            provider.defaults(wide).get("model", "") if provider and asked and provider.ready(wide) else ""
        )
        if model:
            choices.append(Choice(name, model))
    return choices


def _owner(wide: Runtime, name: str) -> str:
    """Return the provider whose pack knows the longest beginning of `name`; "" where none does."""
    known = [
        (len(beginning), pack)
        for source in trust.usable(wide)
        for beginning in models.beginnings(wide, source)
        if (pack := _pack(source)) and name.startswith(beginning)
    ]
    return max(known, default=(0, ""))[1]


def _pack(source: str) -> str:
    """Return the name of the pack at `source`, which is also its provider's; "" if it is not a pack."""
    return Path(source).name if Path(source).parent.name == "plugins" else ""

"""Find where the requests of a run go: the address of a built-in provider, or of a provider config."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from harness_lib.loop import plugins
from harness_lib.loop.failures import ProviderError
from harness_lib.loop.providers import keys, models
from harness_lib.loop.providers.hosted import ANTHROPIC, OPENAI
from harness_lib.loop.providers.models import ProviderConfig
from harness_lib.loop.wires import exchange

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.plugins import Provider
    from harness_lib.loop.providers.hosted import Hosted
    from harness_lib.loop.runtime import Plugin, Runtime
    from harness_lib.loop.wires.answer import Endpoint, Speaker


_HOSTED: dict[str, Hosted] = {provider.name: provider for provider in (ANTHROPIC, OPENAI)}


def is_hosted(runtime: Runtime) -> bool:
    """Return whether the run's provider is a host that hs asks itself, over one of its API adapters."""
    plugin = _plugin(runtime)
    return plugin is None or (plugin.is_ours and plugin.name in _HOSTED)


def own_language(runtime: Runtime) -> Provider:
    """Return the run's provider that is a program, or `claude`."""
    plugin = _plugin(runtime)
    assert plugin is not None
    return cast("Provider", plugin.target)


def check(runtime: Runtime) -> None:
    """Raise ProviderError where a built-in provider lacks what it needs: a key, a login, a program."""
    if is_hosted(runtime):
        of(runtime)
    elif (plugin := _plugin(runtime)) and plugin.is_ours:
        plugin.target.check(runtime)


def _plugin(runtime: Runtime) -> Plugin | None:
    return runtime.table.find("providers", models.protocol_of(runtime, runtime.provider))


def of(runtime: Runtime) -> Endpoint:
    """Return the address and key of the run's provider. Raises ProviderError if one is missing."""
    hosted, config = _hosted(runtime)
    return hosted.at(runtime, config)


def speaker(runtime: Runtime) -> Speaker:
    """Return how the session's messages are written for the run's provider; no key is needed.

    Raises ProviderError where we do not speak with that provider ourselves.
    """
    hosted, config = _hosted(runtime)
    return hosted.speaker(runtime, config)


def _hosted(runtime: Runtime) -> tuple[Hosted, ProviderConfig | None]:
    config = models.find_config(runtime, runtime.provider)
    hosted = _HOSTED.get(config.protocol if config else runtime.provider)
    if hosted is None:
        raise ProviderError(_why_not(runtime))
    return hosted, config


def _why_not(runtime: Runtime) -> str:
    """Return why the run's provider has no address."""
    plugin = _plugin(runtime)
    if plugin is None:
        return f"There is no provider {runtime.provider}; hs help lists them."
    if plugin.is_ours:
        return f"{runtime.provider} keeps the conversation itself."
    return (
        f"The provider {runtime.provider} speaks a language of its own: "
        "it needs the hooks assemble/10-messages and receive/10-save beside it."
    )


class Described(NamedTuple):
    """A provider config as a provider."""

    config: ProviderConfig

    def describe(self, runtime: Runtime) -> str:  # noqa: ARG002 (as the protocol says)
        return self.config.values.get("description", "")

    def ready(self, runtime: Runtime) -> bool:
        """Return whether there is a key or a login for it."""
        if self.config.auth_env and runtime.env.get(self.config.auth_env):
            return True
        credential = keys.first(runtime, self.config.name)
        # A login is renewed when it is used.
        return keys.is_fresh(credential) or bool(
            self.config.values.get("auth") and credential.get("refresh_token")
        )

    def defaults(self, runtime: Runtime) -> dict[str, str]:  # noqa: ARG002
        return {"model": self.config.values.get("model", "")}

    def environment_help(self, runtime: Runtime) -> str:  # noqa: ARG002
        name = self.config.name
        if self.config.values.get("auth"):
            return f"(a login: hs auth login {name})"
        return f"{self.config.auth_env}  API key" if self.config.auth_env else "(no key)"

    def ask(self, runtime: Runtime, payload: Json) -> Json:
        if is_hosted(runtime):
            return exchange.ask(runtime, of(runtime), payload)
        return own_language(runtime).ask(runtime, payload)


def find_provider(runtime: Runtime, name: str) -> Provider | None:
    """Return the provider `name`: built-in, a program, or a `.conf`; None if there is none."""
    provider = plugins.provider(runtime, name)
    if provider is not None:
        return provider
    config = models.find_config(runtime, name)
    return Described(config) if config else None

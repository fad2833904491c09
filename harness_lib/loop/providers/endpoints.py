"""Find where the requests of a run go: the address of a built-in provider, or of a provider config."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

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


_HOSTED: dict[str, Hosted] = {provider.name: provider for provider in (ANTHROPIC, OPENAI)}


def with_own_api(runtime: Runtime) -> Plugin | None:
    """Return the run's provider where it is a program or `claude`; None for one that hs asks itself."""
    plugin = runtime.table.find("providers", models.protocol_of(runtime, runtime.provider))
    return None if plugin and plugin.is_ours and plugin.name in _HOSTED else plugin


def host(runtime: Runtime) -> Hosted:
    """Return the host of the run's provider. Raises ProviderError where hs does not ask it itself."""
    config = models.find_config(runtime, runtime.provider)
    hosted = _HOSTED.get(config.protocol if config else runtime.provider)
    if hosted is not None:
        return hosted._replace(config=config)
    plugin = with_own_api(runtime)
    if plugin is None:
        raise ProviderError(f"There is no provider {runtime.provider}; hs help lists them.")
    if plugin.is_ours:
        raise ProviderError(f"{runtime.provider} keeps the conversation itself.")
    raise ProviderError(
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
        plugin = with_own_api(runtime)
        if plugin is None:
            return exchange.ask(runtime, host(runtime).at(runtime), payload)
        return cast("Json", plugin.target.ask(runtime, payload))


def find_provider(runtime: Runtime, name: str) -> Provider | None:
    """Return the provider `name`: built-in, a program, or a `.conf`; None if there is none."""
    plugin = runtime.table.find("providers", name)
    if plugin is not None:
        return cast("Provider", plugin.target)
    config = models.find_config(runtime, name)
    return Described(config) if config else None

"""A provider that is a `.conf`, asked as the others are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness_lib.loop import plugins
from harness_lib.loop.provider_files import keys, variants
from harness_lib.loop.provider_files.variants import Variant
from harness_lib.loop.providers import endpoints
from harness_lib.loop.wires import exchange

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.plugins import Provider
    from harness_lib.loop.runtime import Runtime


@dataclass(frozen=True)
class Described:
    """What the `.conf` of `variant` says, as a provider."""

    variant: Variant

    def describe(self, runtime: Runtime) -> str:  # noqa: ARG002 (as the protocol says)
        return self.variant.values.get("description", "")

    def ready(self, runtime: Runtime) -> bool:
        """Return whether there is a key or a login for it."""
        if self.variant.auth_env and runtime.env.get(self.variant.auth_env):
            return True
        credential = keys.first(runtime, self.variant.name)
        # A login is renewed when it is used.
        return keys.is_fresh(credential) or bool(
            self.variant.values.get("auth") and credential.get("refresh_token")
        )

    def defaults(self, runtime: Runtime) -> dict[str, str]:  # noqa: ARG002
        return {"model": self.variant.values.get("model", "")}

    def environment_help(self, runtime: Runtime) -> str:  # noqa: ARG002
        name = self.variant.name
        if self.variant.values.get("auth"):
            return f"(a login: hs auth login {name})"
        return f"{self.variant.auth_env}  API key" if self.variant.auth_env else "(no key)"

    def ask(self, runtime: Runtime, payload: Json) -> Json:
        if endpoints.is_hosted(runtime):
            return exchange.ask(runtime, endpoints.of(runtime), payload)
        return endpoints.own_language(runtime).ask(runtime, payload)


def find(runtime: Runtime, name: str) -> Provider | None:
    """Return the provider `name`, be it ours, a program, or a `.conf`; None if there is none."""
    provider = plugins.provider(runtime, name)
    if provider is not None:
        return provider
    variant = variants.find(runtime, name)
    return Described(variant) if variant else None

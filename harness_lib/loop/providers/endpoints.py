"""Where the requests of a run go: its provider's address, be it one of ours or a variant of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib.loop.failures import ProviderError
from harness_lib.loop.providers import variants
from harness_lib.loop.providers.anthropic import PROVIDER as ANTHROPIC
from harness_lib.loop.providers.openai import PROVIDER as OPENAI

if TYPE_CHECKING:
    from harness_lib.loop.providers.endpoint import Endpoint
    from harness_lib.loop.providers.hosted import Hosted
    from harness_lib.loop.runtime import Runtime

_HOSTED: dict[str, Hosted] = {provider.name: provider for provider in (ANTHROPIC, OPENAI)}


def of(runtime: Runtime) -> Endpoint:
    """Return the address for the run's provider. Raises ProviderError where it has none, or no key."""
    variant = variants.find(runtime, runtime.provider)
    hosted = _HOSTED.get(variant.protocol if variant else runtime.provider)
    if hosted is None:
        message = (
            f"The provider {runtime.provider} speaks a language of its own: "
            "it needs the hooks assemble/10-messages and receive/10-save beside it."
            if runtime.table.provider(runtime.provider)
            else f"There is no provider {runtime.provider}; hs help lists them."
        )
        raise ProviderError(message)
    return hosted.at(runtime, variant)

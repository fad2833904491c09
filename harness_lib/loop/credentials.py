"""What a tool must not see: the variables that a provider named as a credential."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib.loop.provider_files import variants

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

_OURS = frozenset({"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_HEADER", "OPENAI_API_KEY"})


def without(runtime: Runtime, env: dict[str, str]) -> dict[str, str]:
    """Return `env` without the credentials of any provider that is known here."""
    named = {variant.auth_env for variant in variants.every(runtime) if variant.auth_env}
    return {name: value for name, value in env.items() if name not in _OURS | named}

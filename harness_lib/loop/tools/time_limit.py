"""How long a tool may take where its call does not say it."""

from __future__ import annotations

from collections.abc import Mapping

_DEFAULT_SECONDS = 120


def seconds(env: Mapping[str, str]) -> int:
    """Return what HARNESS_TOOL_TIMEOUT in `env` says, two minutes otherwise."""
    text = env.get("HARNESS_TOOL_TIMEOUT", "")
    return int(text) if text.isascii() and text.isdigit() and int(text) else _DEFAULT_SECONDS

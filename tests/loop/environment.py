"""The environment of a program that a test starts: nothing of the developer's own providers and harness."""

from __future__ import annotations

import os
from collections.abc import Mapping

FOREIGN = ("OPENAI", "ANTHROPIC", "HARNESS")


def environment(added: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of this process without the foreign names and with `added`; no sandbox."""
    base = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**base, "NO_PROXY": "127.0.0.1", "HARNESS_SANDBOX": "off", **added}

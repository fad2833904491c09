"""Kimi Code CLI: its signs and hooks, as documented; `harness run` does not drive it."""

from __future__ import annotations

from harness_lib.agents.hook_host import Host
from harness_lib.agents.signs import Signs

# It sets no variable. Its process calls itself `kimi-code`, some versions `kimi-co` or `Kimi Code`.
SIGNS = Signs("kimi", programs=("kimi", "kimi-cli", "kimi-co", "kimi-code", "Kimi Code"))

HOOKS = Host(
    name="kimi",
    title="Kimi Code CLI",
    files={"user": (".kimi-code/config.toml",)},
    events={"Stop": "Stop"},
    form="toml",
    trust={"user": "see what Kimi Code says at its next start."},
    is_measured=False,
)

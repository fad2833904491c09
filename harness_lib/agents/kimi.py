"""Kimi Code CLI: only its hooks, as documented; `harness run` does not drive it."""

from __future__ import annotations

from harness_lib.agents.hook_host import Host

HOOKS = Host(
    name="kimi",
    title="Kimi Code CLI",
    files={"user": (".kimi-code/config.toml",)},
    events={"Stop": "Stop"},
    form="toml",
    trust={"user": "see what Kimi Code says at its next start."},
    is_measured=False,
)

"""Gemini CLI, driven without a terminal."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tests.hosts.machine import Machine, Ran

# Left to itself it asks another model first which one is to be asked.
MODEL = "gemini-2.5-flash"
SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
}


@dataclass(frozen=True)
class Gemini:
    """`gemini -p` on `machine`."""

    machine: Machine
    address: str

    def settle(self) -> None:
        """Write the user's settings."""
        folder = self.machine.home / ".gemini"
        folder.mkdir()
        (folder / "settings.json").write_text(json.dumps(SETTINGS))

    @property
    def env(self) -> dict[str, str]:
        quiet = {"GEMINI_API_KEY": "dummy", "GEMINI_TELEMETRY_ENABLED": "false"}
        return {**quiet, "GOOGLE_GEMINI_BASE_URL": self.address}

    def __call__(self, prompt: str, *flags: str) -> Ran:
        """Let it work on `prompt` until it stops by itself."""
        env = {**self.env, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
        return self.machine.run("gemini", "-y", "-m", MODEL, "-p", prompt, *flags, env=env)

"""Gemini CLI, driven without a terminal."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tests.hosts.machine import Machine, Ran

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

    def __call__(self, prompt: str, *flags: str) -> Ran:
        """Let it work on `prompt` until it stops by itself."""
        env = {
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": self.address,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_TELEMETRY_ENABLED": "false",
        }
        return self.machine.run("gemini", "-y", "-m", "gemini-2.5-flash", "-p", prompt, *flags, env=env)

"""GitHub Copilot CLI, driven without a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from tests.hosts.machine import Machine, Ran


@dataclass(frozen=True)
class Copilot:
    """`copilot -p` on `machine`."""

    machine: Machine
    address: str

    @property
    def env(self) -> dict[str, str]:
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{self.address}/v1",
            "COPILOT_MODEL": "fake-model",
            "COPILOT_PROVIDER_API_KEY": "dummy",
        }

    def __call__(self, prompt: str, *flags: str) -> Ran:
        """Let it work on `prompt` until it stops by itself."""
        return self.machine.run(
            "copilot", "-p", prompt, "--allow-all-tools", "--trust-folder", *flags, env=self.env
        )

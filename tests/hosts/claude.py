"""Claude Code, driven without a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hosts.machine import Machine, Ran

# Keep quiet towards the world; the dummy key keeps it from asking for a login.
QUIET = {
    "ANTHROPIC_API_KEY": "sk-ant-dummy-000",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    # As root it works without asking only where it is told that nothing can break.
    "IS_SANDBOX": "1",
}


@dataclass(frozen=True)
class Claude:
    """`claude -p` on `machine`; what it told is in the events of its output."""

    machine: Machine
    address: str

    @property
    def env(self) -> dict[str, str]:
        return {**QUIET, "ANTHROPIC_BASE_URL": self.address}

    def __call__(self, prompt: str, *flags: str, env: Mapping[str, str] | None = None) -> ClaudeRan:
        """Let it work on `prompt` until it stops by itself."""
        return self.asking(prompt, "--dangerously-skip-permissions", *flags, env=env)

    def asking(self, prompt: str, *flags: str, env: Mapping[str, str] | None = None) -> ClaudeRan:
        """Let it work on `prompt` as it does by default: what needs the user's approval is refused."""
        ran = self.machine.run(
            "claude",
            "-p",
            prompt,
            "--output-format=stream-json",
            "--verbose",
            "--include-hook-events",
            *flags,
            env={**self.env, **(env or {})},
        )
        return ClaudeRan(ran.code, ran.out, ran.err)

    def plugin(self, *words: str) -> Ran:
        """Type `claude plugin WORDS`."""
        return self.machine.run("claude", "plugin", *words, env=self.env).check()

    def trust(self, folder: Path) -> None:
        """Do what the user does who answers yes when asked whether `folder` is to be trusted."""
        settings = self.machine.home / ".claude.json"
        known: dict[str, Any] = json.loads(settings.read_text()) if settings.exists() else {}
        known.setdefault("projects", {})[str(folder)] = {"hasTrustDialogAccepted": True}
        settings.write_text(json.dumps(known))


class ClaudeRan(Ran):
    """A run of Claude Code."""

    @property
    def result(self) -> str:
        """Return the last words, which are what the user reads."""
        return str(next(event["result"] for event in self.events if event["type"] == "result"))

    def hooks(self, event: str) -> list[dict[str, Any]]:
        """Return what the hooks on `event` answered: stdout, stderr, exit_code, outcome."""
        answers = [e for e in self.events if e.get("subtype") == "hook_response"]
        return [answer for answer in answers if answer.get("hook_event") == event]

    def blocks(self, event: str = "Stop") -> list[str]:
        """Return the reasons with which `event` was refused."""
        said = [json.loads(hook["stdout"]) for hook in self.hooks(event) if hook["stdout"].strip()]
        return [answer["reason"] for answer in said if "reason" in answer]

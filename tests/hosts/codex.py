"""Codex, driven without a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hosts.machine import Machine, Ran

CONFIG = """\
model = "fake-model"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "{sandbox}"

[model_providers.fake]
name = "fake"
base_url = "{address}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0

[projects."{project}"]
trust_level = "trusted"
"""


@dataclass(frozen=True)
class Codex:
    """`codex exec` on `machine`."""

    machine: Machine
    address: str

    @property
    def home(self) -> Path:
        return self.machine.home / ".codex"

    @property
    def env(self) -> dict[str, str]:
        # Its sandbox starts a helper that is not made for who lives in the directory for temporary files.
        temporary = self.machine.home.with_name("temporary")
        temporary.mkdir(exist_ok=True)
        return {"CODEX_HOME": str(self.home), "FAKE_KEY": "dummy", "TMPDIR": str(temporary)}

    def settle(self, sandbox: str = "danger-full-access") -> None:
        """Write the user's settings: the model's address, and the project as a trusted one."""
        self.home.mkdir(exist_ok=True)
        text = CONFIG.format(sandbox=sandbox, address=self.address, project=self.machine.project)
        (self.home / "config.toml").write_text(text)

    def __call__(self, prompt: str, *flags: str, cwd: Path | None = None, before: Sequence[str] = ()) -> Ran:
        """Let it work on `prompt` until it stops by itself; `before` are words that precede the prompt."""
        # What the user has looked at and trusted.
        flags = ("--dangerously-bypass-hook-trust", "--json", *flags)
        command = ["codex", "exec", *flags, *before, prompt]
        return self.machine.run(*command, cwd=cwd, env=self.env)

    def take_skill(self, published: Path) -> None:
        """Install the skill by the real CLI, and the hooks by its own command."""
        self.machine.skills_add(published)
        harness = self.machine.project / ".agents/skills/harness/bin/harness"
        self.machine.run(harness, "hooks", "install", "--agent", "codex", env=self.env).check()

    def plugin(self, *words: str) -> Ran:
        """Type `codex plugin WORDS`."""
        return self.machine.run("codex", "plugin", *words, env=self.env).check()

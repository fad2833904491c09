"""Projects to measure: a repository, a list, and `harness` started as the user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from harness_lib.core.context import Context
from harness_lib.system.install import private_env
from harness_lib.verbs import init
from tests.contention import crowd

CHECKOUT = Path(__file__).resolve().parents[1]
FOREIGN = ("CLAUDE", "CODEX", "GEMINI", "OPENCODE", "HARNESS", "GIT_")
# What a host calls its session, in payloads of hooks and in the environment of commands.
AGENT = "bench-session"
IDENTITY = {
    "CLAUDE_CODE_SESSION_ID": AGENT,
    "GIT_AUTHOR_NAME": "Bench",
    "GIT_AUTHOR_EMAIL": "bench@example.invalid",
    "GIT_COMMITTER_NAME": "Bench",
    "GIT_COMMITTER_EMAIL": "bench@example.invalid",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def settle_in(home: Path) -> None:
    """Give this process, and all that it starts, an empty home and nobody else's session.

    The launcher finds its packages there: those that the benchmark itself runs with.
    """
    for name in list(os.environ):
        if name.startswith(FOREIGN):
            del os.environ[name]
    data = home / "data"
    os.environ.update(IDENTITY, HOME=str(home), HARNESS_WORKER_ID="bench", PYTHONPATH=str(CHECKOUT))
    os.environ["HARNESS_HOME"] = str(data)
    spec = find_spec("jsonschema")
    assert spec is not None
    assert spec.origin is not None
    data.mkdir(mode=0o700, parents=True)
    for place in ("system/install", "loop"):
        pins = CHECKOUT / "harness_lib" / place / "requirements.txt"
        recipe = private_env.recipe(pins)
        env = private_env.environment(data, recipe)
        env.mkdir()
        (env / private_env.PACKAGES).symlink_to(Path(spec.origin).parents[1])
        (env / private_env.READY).write_text(recipe, encoding="utf-8")


@dataclass(frozen=True)
class Project:
    """A project in `path` with a list of `tasks` tasks, whose check is `true`."""

    path: Path
    tasks: int

    @classmethod
    def make(cls, path: Path, tasks: int) -> Project:
        """Make the repository and the list in `path`, with a session open."""
        path.mkdir(parents=True)
        init.run(Context(env=os.environ, cwd=path), make_git=True)
        project = cls(path.resolve(), tasks)
        project.refill()
        return project

    def refill(self) -> None:
        """Make every task as good as new, with a session open: the next round meets what the last one did."""
        crowd.fill(
            Context(env={**os.environ, "HARNESS_STATE_ROOT": str(self.path)}, cwd=self.path), self.tasks
        )
        self.type("start")

    def close(self) -> None:
        """End the session, so that its lock directory does not outlive the benchmark."""
        self.type("stop")

    def type(self, *argv: str) -> None:
        """Run `harness ARGV` in a process of its own; anything but exit 0 ends the benchmark."""
        self._process("-m", "harness_lib", *argv)

    def launch(self, *argv: str) -> None:
        """Do the same as the launcher does it, whatever the exit code."""
        self._process("-I", "-S", str(CHECKOUT / "bin" / "harness"), *argv, check=False)

    def _process(self, *words: str, check: bool = True) -> None:
        subprocess.run(
            [sys.executable, *words],
            cwd=self.path,
            check=check,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def log_of(self, size: int) -> None:
        """Let the log have `size` bytes: at its end megabytes of real lines, before them a hole."""
        line = '[2025-07-01T10:00:00Z] [SESSION-1] CHECKPOINT [task-001] step=1/2 "something was done"\n'
        end = (line * 30000).encode()[-min(size, 2_000_000) :] if size else b""
        with (self.path / crowd.LOG).open("wb") as stream:
            stream.truncate(max(0, size - len(end)))
            stream.seek(0, os.SEEK_END)
            stream.write(end)

"""One run of the launcher, and the environment that it really has."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]

# Taken before the guard of conftest.py replaces it: pip's own configuration says where the registry is.
REAL_ENVIRON = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("CLAUDE", "CODEX", "GEMINI", "HARNESS", "PYTHON"))
}


@dataclass(frozen=True)
class Run:
    """What one run of the launcher left behind."""

    code: int
    out: str
    err: str

    @property
    def seen(self) -> dict[str, Any]:
        """What the stand-in was started with."""
        seen = json.loads(self.out)
        assert isinstance(seen, dict)
        return seen


def run(
    *command: str | Path,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdin: str = "",
) -> Run:
    """Run a command to its end with `env` on top of the real environment."""
    done = subprocess.run(
        [str(word) for word in command],
        env={**REAL_ENVIRON, **env},
        cwd=cwd,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=280,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)

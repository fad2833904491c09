"""One run of the launcher, and the environment that it really has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tests.run_to_end import Said, run_to_end

CHECKOUT = Path(__file__).resolve().parents[2]

# Fetches the engine nono for the checkout that is named behind it.
NONO = (
    "import os, sys; sys.path.append(sys.argv[1]); "
    "from harness_lib.system.install import launcher; launcher.nono(os.environ)"
)

# Taken before the guard of conftest.py replaces it: pip's own configuration says where the registry is.
REAL_ENVIRON = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("CLAUDE", "CODEX", "GEMINI", "HARNESS", "PYTHON"))
}


def run(
    *command: str | Path,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdin: str = "",
) -> Said:
    """Run a command to its end with `env` on top of the real environment."""
    done = run_to_end(command, cwd=cwd, env={**REAL_ENVIRON, **env}, stdin=stdin)
    return Said(done.returncode, done.stdout, done.stderr)

"""The `python3` that hosts start hooks with, which need not be the one that runs us."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

OLDEST = (3, 10)

# As hooks are started.
_TEST = ("-I", "-S", "-c", f"import sys; sys.exit(sys.version_info < {OLDEST})")
_SECONDS = 20


def python3(env: Mapping[str, str]) -> str | None:
    """Return the path of `python3` on the PATH of `env`, None if there is none."""
    return shutil.which("python3", path=env.get("PATH", os.defpath))


def problem(python: str, env: Mapping[str, str]) -> str | None:
    """Return why hooks cannot run with `python`, None if they can."""
    try:
        done = subprocess.run(
            [python, *_TEST],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run ({error})"
    return "is older than {}.{}, or does not run".format(*OLDEST) if done.returncode else None

"""Other Pythons than the one that runs us: that of hooks, and those that a check may run with."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import NamedTuple

OLDEST = (3, 10)

# As hooks are started.
_TEST = ("-I", "-S", "-c", f"import sys; sys.exit(sys.version_info < {OLDEST})")
_SECONDS = 20
_ASKS = "import importlib.util as u, sys; print(sys.version.split()[0], u.find_spec(sys.argv[1]) is not None)"


class Found(NamedTuple):
    """The version of an interpreter, and whether it can import the module in question."""

    version: str
    has_module: bool


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


def module(python: str, name: str, env: Mapping[str, str]) -> Found | None:
    """Return what `python` says of the module `name`; None if it does not run."""
    try:
        done = subprocess.run(
            [python, "-c", _ASKS, name.partition(".")[0]],
            cwd="/",
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
            text=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version, _, has_module = done.stdout.strip().partition(" ")
    return Found(version, has_module == "True") if done.returncode == 0 else None

"""Other Pythons than the one that runs us: that of hooks, and those that a check may run with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from harness_lib.system.processes import child

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
        code = child.ask([python, *_TEST], env=env, cwd=Path(), seconds=_SECONDS).code
    except OSError as error:
        return f"does not run ({error})"
    return "is older than {}.{}, or does not run".format(*OLDEST) if code else None


def module(python: str, name: str, env: Mapping[str, str]) -> Found | None:
    """Return what `python` says of the module `name`; None if it does not run."""
    asked = [python, "-c", _ASKS, name.partition(".")[0]]
    try:
        answer = child.ask(asked, env=env, cwd=Path("/"), seconds=_SECONDS)
    except OSError:
        return None
    version, _, has_module = answer.output.decode("utf-8", "replace").strip().partition(" ")
    return Found(version, has_module == "True") if answer.code == 0 else None

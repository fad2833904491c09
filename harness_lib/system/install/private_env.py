"""Find the packages of a bare checkout, outside of the skill folder and of every project, made once.

It is a directory of packages, not a virtual environment: it has no interpreter that an upgrade of Python
could break, and the launcher can use it without a second start of Python. Every start loads this module, so
it only reads; `build` makes the directory. Standard library only. Source: docs/design.md, "On the user's
machine".
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path

from harness_lib.errors import EnvSetupError
from harness_lib.system.place import data_home

# In an environment: what belongs on `sys.path`, and the file that is written last and holds the recipe.
PACKAGES, READY = "packages", "ready"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
ELSEWHERE = "Set HARNESS_HOME to the absolute path of a directory that only you can write."


def data_directory(environ: Mapping[str, str]) -> Path:
    """Return the data directory: HARNESS_HOME, else `harness` in the user's data directory.

    A relative XDG_DATA_HOME is ignored, as its standard demands.
    Raises EnvSetupError when the place would depend on the current directory, which is a project.
    """
    path = Path(data_home.directory(environ))
    if not path.is_absolute():
        message = f"The data directory of harness is not an absolute path: {path}."
        raise EnvSetupError(message, ELSEWHERE)
    return path


def recipe(requirements: Path = REQUIREMENTS) -> str:
    """Return the recipe of the environment: pins, and the Python and machine for binary packages."""
    python = f"{sys.implementation.cache_tag}{sys.abiflags} {sys.platform} {os.uname().machine}"
    return f"{python}\n{requirements.read_text(encoding='utf-8')}"


def environment(data: Path, wanted: str) -> Path:
    """Return the directory in `data` for the recipe `wanted`; it need not exist.

    Its name holds a checksum, not a proof: `is_ready` compares the whole recipe.
    """
    return data / f"env-{zlib.crc32(wanted.encode()):08x}"


def is_ready(env: Path, wanted: str) -> bool:
    """Return whether `env` was finished, by the recipe `wanted`."""
    try:
        return (env / READY).read_text(encoding="utf-8") == wanted
    except (OSError, UnicodeDecodeError):
        # An unreadable one counts as missing: making it reports the problem.
        return False

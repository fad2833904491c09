"""The PATH without the entries that lead into whatever project one happens to stand in.

With `.`, an empty or another relative entry, the project's own `git` and `python3` would be run by us.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping


def absolute(path: str) -> str:
    """Return `path` (as in PATH) less its relative entries; the system's own where nothing is left."""
    return os.pathsep.join(filter(os.path.isabs, path.split(os.pathsep))) or os.defpath.lstrip(os.pathsep)


def find(program: str, path: str | None = None) -> str | None:
    """Return where `program` lies on `path`, by default on ours; None if nowhere."""
    import shutil  # noqa: PLC0415 (every verb loads this file, and few look for a program)

    return shutil.which(program, path=path)


def drop_relative(env: MutableMapping[str, str]) -> None:
    """Take relative entries out of the PATH in `env`, for us and for all that we start."""
    if "PATH" in env:
        env["PATH"] = absolute(env["PATH"])

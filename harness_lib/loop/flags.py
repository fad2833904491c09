"""Ask a program that is a plugin what it says to one of its flags."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from harness_lib.loop import processes

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

# A flag is answered at once or not at all.
SECONDS = 10.0


def ask(runtime: Runtime, path: str, flag: str, env: dict[str, str]) -> str | None:
    """Return what the program `path` prints for `flag`; None if it fails or does not end."""
    try:
        done = processes.run([path, flag], env=env, cwd=runtime.cwd, log=os.devnull, timeout=SECONDS)
    except OSError:
        return None
    text = done.text()
    return text if done.code == 0 and done.reason == "ended" else None

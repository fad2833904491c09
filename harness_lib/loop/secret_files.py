"""Files that no tool reads, whoever allows what: credentials, and what the system shows of a process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

REFUSED = "holds credentials or shows a process: no tool reads it. Ask the user for what you need of it."
# In whichever source they are.
_OURS = frozenset((".auth.json", ".auth-cache.json"))
# Below the person's home directory: files, and whole directories.
_OF_OTHERS = (
    ".aws", ".azure", ".cargo/credentials", ".cargo/credentials.toml", ".claude/.credentials.json",
    ".codex/auth.json", ".config/gcloud", ".config/gh", ".config/git/credentials", ".config/github-copilot",
    ".docker/config.json", ".gemini/oauth_creds.json", ".git-credentials", ".gnupg", ".kube",
    ".local/share/opencode/auth.json", ".netrc", ".npmrc", ".pgpass", ".pypirc", ".ssh",
)  # fmt: skip
_OF_A_PROCESS = re.compile(r"/proc/\d+/")
# More links than any system follows.
_MOST_LINKS = 40


def is_secret(path: Path) -> bool:
    """Return whether the way to `path` passes one of them; links are followed, step by step."""
    home = os.path.realpath(Path.home())
    closed = tuple(f"{home}{os.sep}{name}" for name in _OF_OTHERS)
    return any(
        step.rpartition(os.sep)[2].casefold() in _OURS
        or _OF_A_PROCESS.match(step)
        or step in closed
        or step.startswith(tuple(f"{each}{os.sep}" for each in closed))
        for step in way(path)
    )


def way(path: Path) -> Iterator[str]:
    """Yield each place that the system passes on its way to the absolute `path`; the last is its end."""
    at, links = os.sep, 0
    left = [*reversed(path.parts[1:])]
    while left:
        part = left.pop()
        step = str(Path(at).parent) if part == ".." else f"{at.rstrip(os.sep)}{os.sep}{part}"
        yield step
        try:
            target = Path(step).readlink()
        except OSError:
            at = step
            continue
        links += 1
        if links > _MOST_LINKS:
            return
        at = target.anchor or at
        left += reversed(target.parts[1:] if target.anchor else target.parts)

"""Name what of `.harness/` is ours alone; the rest may be plugins for hs that a project commits.

In plain strings and the standard library, for hooks.
"""

from __future__ import annotations

import os

from harness_lib.system.files import nofollow

# As git's ignore files want them: temporary files and credentials begin with a dot.
PATTERNS = (
    ".*",
    "*.lock",
    "*.turn",
    "beats/",
    "board-*.json",
    "budget*.json",
    "bug-*.txt",
    "ended/",
    "final.json",
    "foreign.json",
    "gates/",
    "generations/",
    "history",
    "logs/",
    "mail/",
    "mcp/",
    "seen/",
    "sessions/",
    "stops/",
    "summary.json",
    "trusted.json",
)
_HEAD = "# What harness keeps to itself; plugins beside it can be committed."
RULES = "".join(f"{line}\n" for line in (_HEAD, *(f"/{pattern}" for pattern in PATTERNS))).encode()
# What an earlier harness wrote: nothing in the directory could be committed.
_FORMER = b"*\n"
_FILE = ".gitignore"


def ignore_file(private: str) -> str | None:
    """Return the file of ignore rules in `private` if it is to be written; None where one is to stay."""
    path = os.path.join(private, _FILE)
    try:
        content = nofollow.read(path, len(_FORMER) + 1)
    except FileNotFoundError:
        return path
    except OSError:
        # A link, or nothing that we may read: somebody else's.
        return None
    return path if content == _FORMER else None

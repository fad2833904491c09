"""Find the repository around a directory from its files: to ask git takes a process, in every verb.

Only the plainest kind is found: a `.git` of our own at the top, and a configuration that moves nothing.
Of any other (a linked work tree, a submodule, a bare repository, another owner) git is asked, which says what
is wrong, too.
The layout is the one of gitrepository-layout(5), the search that of git(1).
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

# What may move the work tree or need a newer git, wherever the word stands: a branch may be called so, too.
_MOVES = re.compile(
    rb"extensions|worktree|include|\bbare\b(?!\s*=\s*false\s*\n)|formatversion(?!\s*=\s*0\s*\n)",
    re.IGNORECASE,
)
# What git is certain to read as we do: no quotes, no backslashes, no lines that go on.
_SETTING = rb"[ \t]*[A-Za-z][A-Za-z0-9-]*[ \t]*(?:=[^\"\\\0\n]*)?\n"
_REMARK = rb"[ \t\r]*(?:[#;][^\0\n]*)?\n"
_SECTION = rb"[ \t]*\[[A-Za-z0-9.-]+(?:[ \t]+\"[^\"\\\0\n]*\")?\][ \t\r]*\n"
_CONFIG = re.compile(rb"(?:%b)*(?:%b(?:%b|%b)*)*" % (_REMARK, _SECTION, _REMARK, _SETTING))
_HEAD = re.compile(rb"(?:ref: refs/[^\s]+|[0-9a-f]{40}(?:[0-9a-f]{24})?)\n")


def find(path: Path) -> Path | None:
    """Return the top of the plain repository around `path`; None where the files do not tell: ask git."""
    try:
        place = Path(os.path.realpath(path))
        facts = place.stat()
        if not stat.S_ISDIR(facts.st_mode) or not _has_git():
            return None
        for top in (place, *place.parents):
            if os.path.lexists(top / ".git"):
                return top if _is_plain(top, facts.st_dev) else None
            if os.path.lexists(top / "HEAD"):
                return None
    except (OSError, ValueError):
        pass
    return None


def _has_git() -> bool:
    # Who has none is told so before anything else is done.
    return any(os.access(f"{directory}/git", os.X_OK) for directory in os.get_exec_path())


def _is_plain(top: Path, device: int) -> bool:
    git_dir = top / ".git"
    owner = os.geteuid()
    for directory in (top, git_dir, git_dir / "objects", git_dir / "refs"):
        facts = os.lstat(directory)
        if not stat.S_ISDIR(facts.st_mode) or facts.st_dev != device or facts.st_uid != owner:
            return False
    config = (git_dir / "config").read_bytes()
    return (
        not os.path.lexists(git_dir / "commondir")
        and _HEAD.fullmatch((git_dir / "HEAD").read_bytes()) is not None
        and _CONFIG.fullmatch(config) is not None
        and _MOVES.search(config) is None
    )

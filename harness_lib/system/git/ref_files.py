"""Read what a ref points at from git's own files: to ask git takes a process, each time.

An answer is as new as git's own would be.
Where the files do not tell for certain (another store of refs, a ref that leads to a ref, a torn file), it is
git that has to be asked.
The layout is the one of gitrepository-layout(5).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# All work trees share these; the others are each its own.
_SHARED = re.compile(r"refs/(?:stash|(?:heads|harness|remotes|replace|tags)/[^\s~^:?*\[\\]+)")
_LEADS = "ref: "
_BRANCHES = "refs/heads/"
# What stands in HEAD where the refs are in no files.
_ELSEWHERE = "refs/heads/.invalid"


class UnclearError(Exception):
    """The files do not tell: ask git."""


def branch(git_dir: Path) -> str | None:
    """Return the full name of HEAD's branch, born or not; None when detached. Raises UnclearError."""
    head = _head(git_dir)
    return None if _OID.fullmatch(head) else head


def resolve(git_dir: Path, common_dir: Path, name: str) -> str | None:
    """Return what `name`, which is HEAD or a whole name, points at; None if it does not exist.

    Raises UnclearError.
    """
    ref = _head(git_dir) if name == "HEAD" else name
    if _OID.fullmatch(ref):
        return ref
    if not _is_shared(ref) or (common_dir / "reftable").exists():
        raise UnclearError
    line = _line(common_dir / ref)
    return _packed(common_dir, ref) if line is None else _checked(line)


def has_none(common_dir: Path, directory: str) -> bool:
    """Say whether no ref is below `directory` (`refs/harness/rescue/`, say) for certain; False: ask git."""
    if not _is_shared(f"{directory}x") or not directory.endswith("/") or (common_dir / "reftable").exists():
        return False
    # In this order: git packs a ref before it takes its file away.
    if os.path.lexists(common_dir / directory.rstrip("/")):
        return False
    try:
        return b" " + os.fsencode(directory) not in (common_dir / "packed-refs").read_bytes()
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _head(git_dir: Path) -> str:
    """Return the name of HEAD's branch, or its commit when it is detached."""
    text = _line(git_dir / "HEAD") or ""
    if _OID.fullmatch(text):
        return text
    name = text.removeprefix(_LEADS)
    if name in (text, _ELSEWHERE) or not name.startswith(_BRANCHES):
        raise UnclearError
    return name


def _is_shared(name: str) -> bool:
    return _SHARED.fullmatch(name) is not None and ".." not in name and "@{" not in name


def _packed(common_dir: Path, name: str) -> str | None:
    try:
        lines = (common_dir / "packed-refs").read_bytes()
    except FileNotFoundError:
        return None
    end = lines.find(b" " + os.fsencode(name) + b"\n")
    start = lines.rfind(b"\n", 0, end) + 1
    return None if end < 0 else _checked(os.fsdecode(lines[start:end]))


def _checked(text: str) -> str:
    if not _OID.fullmatch(text):
        raise UnclearError
    return text


def _line(path: Path) -> str | None:
    """Return the line in `path`; None if nothing is there."""
    try:
        if path.is_symlink():
            raise UnclearError
        return os.fsdecode(path.read_bytes()).rstrip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnclearError from error

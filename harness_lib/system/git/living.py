"""Find the living git processes that could hold a lock of a repository.

Linux answers from /proc where a process works and what it was started with; elsewhere `ps` tells only its
name, so every git process may be the one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.system.files import listing
from harness_lib.system.processes import process

if TYPE_CHECKING:
    from harness_lib.system.git.repository import Git

# These live for hours beside editors and agents, and never take a lock.
HARMLESS = {b"fsmonitor--daemon", b"cat-file", b"credential-cache--daemon", b"daemon"}
# With these git works somewhere else than where it stands.
ELSEWHERE = (b"GIT_DIR=", b"GIT_COMMON_DIR=", b"GIT_INDEX_FILE=", b"GIT_WORK_TREE=")

# A process: pids come round again, pid and start together never do.
Living = frozenset[tuple[int, str]]


def living(directories: Sequence[str]) -> Living:
    """Return the git processes that work in one of the directories, or may."""
    return frozenset(
        (each.pid, each.started)
        for each in process.everybody()
        if each.name.startswith("git") and _works_in(Path("/proc", str(each.pid)), directories)
    )


def named(processes: Living) -> str:
    """Say which processes these are."""
    pids = ", ".join(str(pid) for pid, _ in sorted(processes))
    return f"git process {pids} is working in this repository"


def places(git: Git) -> tuple[str, ...]:
    """Return every directory from which a command can reach the locks of all: linked worktrees share some."""
    directories = {git.top, git.git_dir, git.common_dir}
    if git.common_dir.name == ".git":
        directories.add(git.common_dir.parent)
    for linked in listing.matching(git.common_dir / "worktrees", "*"):
        # It may be taken away at this moment.
        with suppress(FileNotFoundError, NotADirectoryError):
            directories.add(Path(os.fsdecode((linked / "gitdir").read_bytes().rstrip(b"\n"))).parent)
    return _real(directories)


def _real(directories: set[Path]) -> tuple[str, ...]:
    return tuple(os.path.realpath(each) for each in directories)


def _works_in(entry: Path, directories: Sequence[str]) -> bool:
    if not process.has_proc():
        return True
    try:
        argv = (entry / "cmdline").read_bytes().split(b"\0")
        if HARMLESS.intersection(argv):
            return False
        # A zombie has neither arguments nor a directory, and holds nothing.
        cwd = str((entry / "cwd").readlink()) if any(argv) else ""
        variables = (entry / "environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    except PermissionError:
        # Another user's git: where it works cannot be seen, so it may be here.
        return True
    values = [*argv[1:], *(each for each in variables if each.startswith(ELSEWHERE))]
    words = [cwd, *(os.fsdecode(word) for word in values)]
    return any(_inside(word.partition("=")[2] or word, directories) for word in words)


def _inside(path: str, directories: Sequence[str]) -> bool:
    return any(path == place or path.startswith(place + os.sep) for place in directories)

"""What differs from HEAD in a work tree, files that git was told not to look at included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness_lib.system.git import clones, hidden
from harness_lib.system.git.calls import covers, decode
from harness_lib.system.git.repository import Git

_CHANGED = "C"


class Changes(NamedTuple):
    """What differs from HEAD: tracked files, and untracked ones (a nested repository ends in `/`)."""

    tracked: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


def changes(git: Git, keep_out: Sequence[str] = ()) -> Changes:
    """Return what differs from HEAD, without `keep_out` (files, or directories with all below them)."""
    # To look for changes in a submodule git starts another in it, which its settings may lead anywhere.
    ignored = "dirty" if clones.is_agents(git) else "untracked"
    with hidden.looked_at(git) as env:
        output = git.run(
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            f"--ignore-submodules={ignored}",
            env=env,
        ).stdout
    paths: dict[str, list[str]] = {"tracked": [], "untracked": []}
    for record in decode(output):
        kind, path = _status(record)
        if kind and not covers(keep_out, path.rstrip("/")):
            paths[kind].append(path)
    return Changes(tuple(paths["tracked"]), tuple(paths["untracked"]))


def unstaged(git: Git, keep_out: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the tracked files that differ on disk from the index, without `keep_out`.

    One process where `changes` takes two, for an index that is known to be as HEAD.
    """
    differing = []
    for record in decode(git.run(*hidden.AS_MARKED, "ls-files", "-v", "-c", "-m", "-z").stdout):
        tag, _, path = record.partition(" ")
        if hidden.is_mark(tag):
            # Whether a marked file differs git does not say.
            return changes(git, keep_out).tracked
        if tag == _CHANGED and not covers(keep_out, path):
            differing.append(path)
    return tuple(differing)


def _status(record: str) -> tuple[str, str]:
    """Return ("tracked" or "untracked", path) of one record of `status --porcelain=v2 -z`."""
    if record.startswith("? "):
        return "untracked", record[2:]
    fields = {"1": 8, "u": 10}.get(record[:1])
    return ("tracked", record.split(" ", fields)[fields]) if fields else ("", "")

"""What differs from HEAD in a work tree, files that git was told not to look at included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness_lib.system.git import hidden
from harness_lib.system.git.calls import covers, decode
from harness_lib.system.git.repository import Git


class Changes(NamedTuple):
    """What differs from HEAD: tracked files, and untracked ones (a nested repository ends in `/`)."""

    tracked: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


def changes(git: Git, keep_out: Sequence[str] = ()) -> Changes:
    """Return what differs from HEAD, without `keep_out` (files, or directories with all below them)."""
    with hidden.looked_at(git) as env:
        output = git.run(
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=untracked",
            env=env,
        ).stdout
    paths: dict[str, list[str]] = {"tracked": [], "untracked": []}
    for record in decode(output):
        kind, path = _status(record)
        if kind and not covers(keep_out, path.rstrip("/")):
            paths[kind].append(path)
    return Changes(tuple(paths["tracked"]), tuple(paths["untracked"]))


def _status(record: str) -> tuple[str, str]:
    """Return ("tracked" or "untracked", path) of one record of `status --porcelain=v2 -z`."""
    if record.startswith("? "):
        return "untracked", record[2:]
    fields = {"1": 8, "u": 10}.get(record[:1])
    return ("tracked", record.split(" ", fields)[fields]) if fields else ("", "")

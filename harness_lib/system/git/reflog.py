"""Git's own record of how a ref moved; it goes with the ref, but for what a checkout's HEAD tells.

Source: git-reflog(1); a line is `OLD NEW NAME <MAIL> SECONDS ZONE TAB MESSAGE`.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from harness_lib.system.git.repository import Git

NULL = "0"
# What earlier versions noted where they had put HEAD back, with no look at the files.
PUT_BACK = "harness: put back"
# And where finished work goes over to a checkout, with its files.
MERGED = "harness: merge"
READ_BYTES = 65536


class Step(NamedTuple):
    """From which commit to which; "" where the ref was not there."""

    old: str
    new: str


def last_of_checkout(git: Git, branch: str) -> str | None:
    """Return where `branch` stood last by the record of this work tree, if that stands on it now."""
    if git.branch() != branch:
        return None
    steps = map(_step, _lines(git.git_dir / "logs" / "HEAD"))
    return next((place for step in steps for place in (step.new, step.old) if place), None)


def stood_last(git: Git) -> str | None:
    """Return the commit that the files of this work tree were last brought to, by the record of its HEAD."""
    for line in _lines(git.git_dir / "logs" / "HEAD"):
        step = _step(line)
        if step.new and not line.endswith(b"\t" + PUT_BACK.encode()):
            return step.new
    return None


def merged(git: Git) -> list[Step]:
    """Return by which steps of this work tree's HEAD we last brought it finished work, the newest first."""
    lines = _lines(git.git_dir / "logs" / "HEAD")
    return [_step(line) for line in lines if line.endswith(b"\t" + MERGED.encode())]


def _lines(path: Path) -> list[bytes]:
    """Return the last lines of a record, the newest first."""
    try:
        with path.open("rb") as stream:
            stream.seek(0, 2)
            size = stream.tell()
            stream.seek(max(0, size - READ_BYTES))
            lines = stream.read().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
    whole = lines if size <= READ_BYTES else lines[1:]
    return whole[::-1]


def _step(line: bytes) -> Step:
    old, new, *_ = line.decode("utf-8", "replace").split(" ", 2)
    return Step(*("" if not place.strip(NULL) else place for place in (old, new)))

"""Find the commits that a branch has since some commit, which of them others have, and how HEAD moved.

How a ref moved is git's own record (git-reflog(1)); it goes with the ref, but for what the HEAD of a
checkout tells. A line is `OLD NEW NAME <MAIL> SECONDS ZONE TAB MESSAGE`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness_lib.system.git import trees
from harness_lib.system.git.calls import decode
from harness_lib.system.git.repository import Git

NULL = "0"
# What earlier versions noted where they had put HEAD back, with no look at the files.
PUT_BACK = "harness: put back"
# And where finished work goes over to a checkout, with its files.
MERGED = "harness: merge"
READ_BYTES = 65536


def lost_base(git: Git, base: str) -> bool:
    """Say whether HEAD no longer has `base` in its history: a reset, an amend, another root."""
    head = git.head()
    return head not in (None, base) and git.exists(base) and not git.is_ancestor(base, head)


def pushed(git: Git, base: str, tip: str) -> str:
    """Return the commit between `base` and `tip` before which a branch must not go back.

    A remote-tracking branch has it, or it is the merge that brought in what one has; `base` if there is none.
    """
    if tip == base or not git.is_ancestor(base, tip):
        return base
    ours = set(git.lines("rev-list", tip, "--not", base, "--remotes"))
    for line in git.lines("rev-list", "--first-parent", "--parents", tip, f"^{base}"):
        commit, *parents = line.split(" ")
        if commit not in ours:
            return commit
        if not parents or not git.is_ancestor(base, parents[0]):
            # Somebody has merged the base into another history.
            return commit if _brings(git, commit, base, ours) else base
        if any(_brings(git, other, base, ours, parents[0]) for other in parents[1:]):
            return commit
    return base


def _brings(git: Git, merged: str, base: str, ours: set[str], *known: str) -> bool:
    """Say whether `merged` has a commit that neither `base` nor `known` have and that is not `ours` alone."""
    return any(oid not in ours for oid in git.lines("rev-list", merged, "--not", base, *known))


def since(git: Git, base: str, head: str) -> list[str]:
    """Return the commits of `head` that `base` lacks, newest first: short name and subject."""
    if base == head or not (git.exists(base) and git.exists(head)):
        return []
    return git.lines("log", "--encoding=UTF-8", "--format=%h %s", f"{base}..{head}")


def with_files(git: Git, tip: str, most: int = 10_000) -> list[tuple[str, tuple[str, ...]]]:
    """Return the last `most` commits of a branch, the last one first, each with the files that it changed."""
    args = ("log", "--first-parent", "-m", f"--max-count={most}", "--no-renames", "--name-only", "-z")
    found: list[tuple[str, list[str]]] = []
    begins = False
    for part in os.fsdecode(git.run(*args, "--format=%x00%x00%H", tip).stdout).split("\0"):
        if part and begins:
            found.append((part, []))
        elif part.strip("\n"):
            found[-1][1].append(part.removeprefix("\n"))
        begins = not part
    return [(oid, tuple(files)) for oid, files in found]


def added(git: Git, base: str, head: str) -> set[str]:
    """Return the files that commits of `head` add which neither `base` nor a remote-tracking branch has."""
    if base == head or not git.exists(head):
        return set()
    listing = ("log", "-z", "--format=", "--name-only", "--no-renames", "--diff-filter=A")
    return set(decode(git.run(*listing, head, "--not", base, "--remotes").stdout))


def without(git: Git, base: str, head: str, paths: Sequence[str]) -> str:
    """Return `head` with the files `paths` (or directories) that `base` lacks taken out of each commit since.

    `head` itself if none has them. Commits that a remote-tracking branch has stay as they are; a commit of
    nothing else is left out.
    """
    if base == head or not (paths and git.exists(base) and git.is_ancestor(base, head)):
        return head
    since = ("rev-list", head, "--not", base, "--remotes")
    if not git.lines("--literal-pathspecs", *since, "--full-history", "--", *paths):
        return head
    known = set(trees.entries(git, base))
    names = [path for path in paths if not any(f"{name}/".startswith(f"{path}/") for name in known)]
    rewritten: dict[str, str] = {}
    for oid in git.lines(*since, "--topo-order", "--reverse"):
        rewritten[oid] = _rewritten(git, oid, rewritten, names)
    return rewritten.get(head, head)


def _rewritten(git: Git, oid: str, rewritten: Mapping[str, str], names: Sequence[str]) -> str:
    """Return the commit `oid` without `names`, on what its parents have become in `rewritten`."""
    head, gap, message = git.run("cat-file", "commit", oid).stdout.partition(b"\n\n")
    old = git.tree_of(oid)
    tree = trees.without(git, old, names)
    parents = git.text("rev-list", "--parents", "-1", oid).split(" ")[1:]
    after = [rewritten.get(parent, parent) for parent in parents]
    if tree == old and after == parents:
        return oid
    if len(after) == 1 and tree != old and tree == git.tree_of(after[0]):
        return after[0]
    # Who made it and when stays; a signature of other bytes would be a broken one.
    rest = re.sub(rb"\ngpgsig(-sha256)? .*(\n .*)*", b"", head).split(b"\n")
    kept = [line for line in rest if not line.startswith((b"tree ", b"parent "))]
    lines = [f"tree {tree}".encode(), *(f"parent {parent}".encode() for parent in after), *kept]
    content = b"\n".join(lines) + gap + message
    return os.fsdecode(git.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=content).stdout).strip()


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

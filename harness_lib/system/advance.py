"""Move a branch forward that a person may have checked out, files included, and leave their changes alone.

Crash model: files first, each in one step, HEAD last; run again with the same arguments, it goes on.
A file is replaced only if it has the content of the old commit, so nothing of a person's is written over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness_lib.system import placing, restore, trees
from harness_lib.system.git import Git
from harness_lib.system.gitrun import encode
from harness_lib.system.rawfiles import hashed, obstructed
from harness_lib.system.trees import GITLINK, Entry


@dataclass(frozen=True)
class _Step:
    """What has to change on disk; `blocked` are the paths where something else stands."""

    put: dict[str, Entry] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)


def obstacles(git: Git, old: str, new: str, keep_out: Sequence[str] = ()) -> list[str]:
    """Return the paths of a person's changes: tracked files, and whatever stands where `forward` would write.

    What a killed `forward` has written already is not a person's.
    """
    step = _step(git, old, new)
    changed = set(git.changes(keep_out).tracked).difference(step.done)
    return sorted(changed.union(step.blocked))


def forward(git: Git, old: str, new: str) -> None:
    """Let HEAD's branch, index and files go from `old` to `new`; call it inside `gitlocks.hold()`.

    Raises HeadMovedError if HEAD is neither of the two. What `obstacles` names must have been dealt with: a
    file that has come into the way since is left, and then differs from the new commit.
    """
    if git.head() not in (old, new):
        raise restore.HeadMovedError(
            f"HEAD of {git.top} is at {(git.head() or 'no commit')[:12]}, not at {old[:12]}",
            "look at `git log`: somebody committed or switched the branch there",
        )
    step = _step(git, old, new)
    for path in step.remove:
        placing.remove(git.top, path)
    placing.prune(git.top, step.remove)
    placing.checkout(git, step.put)
    restore.publish(git, new, old)


def _step(git: Git, old: str, new: str) -> _Step:
    moves = trees.changed(git, old, new)
    standing = _standing(git, list(moves))
    step = _Step()
    for path, (before, after) in moves.items():
        there = standing.get(path)
        if GITLINK in {entry[0] for entry in (before, after) if entry}:
            continue
        if there == after:
            step.done.append(path)
        elif there != before or (there is None and _is_in_the_way(git, path, moves)):
            step.blocked.append(path)
        elif after is None:
            step.remove.append(path)
        else:
            step.put[path] = after
    return step


def _standing(git: Git, paths: list[str]) -> dict[str, Entry]:
    """Return what stands at `paths` now as git would add it: line endings and filters are not differences."""
    there = hashed(git, paths, store=False)
    if not there:
        return {}
    with trees.private_index(git) as env:
        git.run(*trees.INDEX, "update-index", "--add", "-z", "--stdin", env=env, stdin=encode(list(there)))
        return trees.entries(git, trees.write_tree(git, env))


def _is_in_the_way(git: Git, path: str, moves: dict[str, tuple[Entry | None, Entry | None]]) -> bool:
    """Say whether a directory of a person's stands where a file has to be, or a file for a directory."""
    if not obstructed(git.top, path):
        return False
    # A file of the old commit that makes way for a directory, or the other way round, is no obstacle.
    above = {path[:at] for at in range(len(path)) if path[at] == "/"}
    return not any(
        old is not None and new is None and (name in above or name.startswith(path + "/"))
        for name, (old, new) in moves.items()
    )

"""Move a branch forward that a person may have checked out, files included, and leave their changes alone.

Crash model: a journal first, then the files, each in one step, then the index, HEAD last. As long as HEAD is
where it was, whoever comes next finds the journal and takes everything back: half a move looks like a
person's changes to all others.
A file is replaced only if it has the content of the old commit, and of the index only what belongs to such
files, so nothing of a person's is written over: not even what they stage or commit in the middle of it.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from harness_lib.system.files import atomic
from harness_lib.system.git import checkout, history, restore, status, submodules, trees
from harness_lib.system.git.calls import encode
from harness_lib.system.git.checkout import hashed, obstructed
from harness_lib.system.git.repository import Git
from harness_lib.system.git.trees import GITLINK, Entry

# Beside git's own files: from where to where `forward` is moving.
JOURNAL = "harness-advance"


_Stamp = tuple[int, int, int]


class _Step:
    """What has to change on disk; `blocked` are the paths where something else stands.

    `stamps` tell what was looked at from what a person has written since.
    """

    def __init__(self, top: Path, stamps: dict[str, _Stamp | None]) -> None:
        self.top = top
        self.put: dict[str, Entry] = {}
        self.remove: list[str] = []
        self.done: list[str] = []
        self.blocked: list[str] = []
        self.stamps = stamps

    def is_untouched(self, path: str) -> bool:
        """Say whether the file at `path` is still the one that was looked at, or none."""
        return _stamp(self.top / path) == self.stamps.get(path)


def obstacles(git: Git, old: str, new: str, excluded_paths: Sequence[str] = ()) -> list[str]:
    """Return the paths of a person's changes: tracked files, and whatever stands where `forward` would write.

    Once what a killed `forward` has left is taken back.
    """
    step = _step(git, old, new)
    changed = set(status.changes(git, excluded_paths).tracked).difference(step.done)
    if changed:
        changed -= submodules.left_behind(git, history.merged(git))
    return sorted(changed.union(step.blocked))


def forward(git: Git, old: str, new: str, *, only_while: tuple[str, str] | None = None) -> None:
    """Let HEAD's branch, index and files go from `old` to `new`; call it inside `locks.hold()`.

    `only_while`: as `Git.set_ref` has it.
    Raises HeadMovedError if HEAD is neither of the two, or the other ref is elsewhere; then nothing is left
    changed. What `obstacles` names must have been dealt with: a file that has come into the way since is
    left, and then differs from the new commit; so is one that a person writes while this goes on.
    """
    head = git.head()
    if head == new:
        return
    if head != old:
        raise restore.HeadMovedError(
            f"HEAD of {git.top} is at {(head or 'no commit')[:12]}, not at {old[:12]}",
            "look at `git log`: somebody committed or switched the branch there",
        )
    step = _step(git, old, new)
    atomic.write(_journal(git), f"{old} {new}\n".encode())
    checkout.move(git, step.put, step.remove, untouched=step.is_untouched)
    restore.restage(git, {path: after for path, (_, after) in trees.changed(git, old, new).items()})
    try:
        restore.move_head(git, new, old, history.MERGED, only_while)
    except restore.HeadMovedError:
        take_back(git)
        raise
    atomic.remove(_journal(git))


def is_half_done(git: Git) -> bool:
    """Return whether a `forward` is under way here, or was killed."""
    return _journal(git).exists()


def take_back(git: Git) -> None:
    """Undo what a killed `forward` has written, if HEAD did not come to move; call it as `forward`.

    A file that stands as it has written it gets HEAD's content; what a person has changed since is left.
    """
    journal = _journal(git)
    try:
        old, new = journal.read_text(encoding="ascii").split()
    except FileNotFoundError:
        return
    head = git.head()
    if head is not None and git.exists(new) and not git.is_ancestor(new, head):
        _go_back(git, new, head, set(trees.changed(git, old, new)))
    atomic.remove(journal)


def catch_up(git: Git, stood: str, head: str) -> bool:
    """Bring index and files, which were left at `stood`, to `head`, where HEAD is; call it as `forward`.

    Return whether they stand there now. Nothing is done unless the index is that of `stood`, and no file that
    would change has a person's content; again after a kill it comes to the same end.
    """
    if _index_is(git, stood):
        step = _step(git, stood, head)
        if step.blocked:
            return False
        checkout.move(git, step.put, step.remove, untouched=step.is_untouched)
        restore.restage(git, {path: after for path, (_, after) in trees.changed(git, stood, head).items()})
    elif not _index_is(git, head):
        return False
    # The next one that asks where the files stand is told here.
    git.run("update-ref", "-m", history.MERGED, "HEAD", head, head)
    return True


def _index_is(git: Git, commit: str) -> bool:
    return git.run("diff-index", "--cached", "--quiet", commit, "--", check=False).returncode == 0


def _journal(git: Git) -> Path:
    return git.git_dir / JOURNAL


def _go_back(git: Git, new: str, head: str, paths: set[str]) -> None:
    step = _step(git, new, head)
    written = paths.difference(step.blocked)
    absent = {path for path, (_, after) in trees.changed(git, new, head).items() if after is None}
    # The absent ones even if they are: a directory that was made for one of them may stand empty.
    put = {path: entry for path, entry in step.put.items() if path in written}
    checkout.move(git, put, sorted(absent & written), untouched=step.is_untouched)
    restore.unstage(git, written)


def _step(git: Git, old: str, new: str) -> _Step:
    moves = trees.changed(git, old, new)
    # Before the look itself: what is written during it counts as written since.
    step = _Step(git.top, stamps={path: _stamp(git.top / path) for path in moves})
    standing = _standing(git, list(moves))
    left_out = set(status.left_out(git))
    for path, (before, after) in moves.items():
        present = standing.get(path)
        if GITLINK in {entry[0] for entry in (before, after) if entry} or path in left_out:
            continue
        if present == after:
            step.done.append(path)
        elif present != before or (present is None and _is_in_the_way(git, path, moves)):
            step.blocked.append(path)
        elif after is None:
            step.remove.append(path)
        else:
            step.put[path] = after
    return step


def _standing(git: Git, paths: list[str]) -> dict[str, Entry]:
    """Return what stands at `paths` now as git would add it: line endings and filters are not differences."""
    hashes = hashed(git, paths, store=False)
    if not hashes:
        return {}
    with trees.private_index(git) as env:
        git.run(*trees.INDEX, "update-index", "--add", "-z", "--stdin", env=env, stdin=encode(list(hashes)))
        return trees.entries(git, trees.write_tree(git, env))


def _stamp(path: Path) -> _Stamp | None:
    """Return what changes with the file at `path`; None where none stands, or a directory does."""
    try:
        info = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return None if stat.S_ISDIR(info.st_mode) else (info.st_ino, info.st_size, info.st_mtime_ns)


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

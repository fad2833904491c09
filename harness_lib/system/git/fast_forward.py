"""Move a checked-out branch forward, files included, and keep the user's changes.

Crash model: a journal first, then the files, each in one step, then the index, HEAD last. As long as HEAD has
not moved, the next process finds the journal and takes everything back: half a move looks like changes of the
user. A file is replaced only if it has the content of the old commit, and of the index only the entries of
such files. So nothing of the user is overwritten, not even what they stage or commit meanwhile.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_lib.system import fs
from harness_lib.system.git import checkout, history, restore, status, submodules, trees
from harness_lib.system.git.calls import encode
from harness_lib.system.git.checkout import hashed, obstructed
from harness_lib.system.git.repository import Git
from harness_lib.system.git.trees import GITLINK, Entry

# Beside git's own files: from where to where `forward` is moving.
JOURNAL = "harness-advance"


_Stamp = tuple[int, int, int]


class _Step:
    """The changes to make on disk; `blocked` are the paths that have other content.

    `stamps` distinguish files as they were seen from files that were written since.
    """

    def __init__(self, top: Path, stamps: dict[str, _Stamp | None]) -> None:
        self.top = top
        self.put: dict[str, Entry] = {}
        self.remove: list[str] = []
        self.done: list[str] = []
        self.blocked: list[str] = []
        self.stamps = stamps

    def is_untouched(self, path: str) -> bool:
        """Return whether the file at `path` is unchanged since it was seen, or still missing."""
        return _stamp(self.top / path) == self.stamps.get(path)


def obstacles(git: Git, old: str, new: str, excluded_paths: Sequence[str] = ()) -> list[str]:
    """Return the paths of the user's changes: tracked files, and what is in the place of files of `forward`.

    Call `take_back` before, after a killed `forward`.
    """
    step = _step(git, old, new)
    changed = set(status.changes(git, excluded_paths).tracked).difference(step.done)
    if changed:
        changed -= submodules.left_behind(git, history.merged(git))
    return sorted(changed.union(step.blocked))


def forward(git: Git, old: str, new: str, *, only_while: tuple[str, str] | None = None) -> None:
    """Move HEAD's branch, index and files from `old` to `new`; call it inside `locks.hold()`.

    `only_while` as in `Git.set_ref`.
    Raises HeadMovedError if HEAD is neither of the two, or the other ref has moved; then nothing is changed.
    Before, no path of `obstacles` may be left: a file that was made or written since is kept, and then
    differs from the new commit.
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
    fs.write(_journal(git), f"{old} {new}\n".encode())
    checkout.move(git, step.put, step.remove, untouched=step.is_untouched)
    restore.restage(git, {path: after for path, (_, after) in trees.changed(git, old, new).items()})
    try:
        restore.move_head(git, new, old, history.MERGED, only_while)
    except restore.HeadMovedError:
        take_back(git)
        raise
    fs.remove(_journal(git))


def is_half_done(git: Git) -> bool:
    """Return whether a `forward` is in progress here, or was killed."""
    return _journal(git).exists()


def take_back(git: Git) -> None:
    """Undo what a killed `forward` has written, if HEAD was not moved; call it like `forward`.

    A file as `forward` has written it gets HEAD's content; one that was changed since is kept.
    """
    journal = _journal(git)
    try:
        old, new = journal.read_text(encoding="ascii").split()
    except FileNotFoundError:
        return
    head = git.head()
    if head is not None and git.exists(new) and not git.is_ancestor(new, head):
        step = _step(git, new, head)
        written = set(trees.changed(git, old, new)).difference(step.blocked)
        absent = {path for path, (_, after) in trees.changed(git, new, head).items() if after is None}
        # Absent ones too: a directory that was made for one of them may be empty.
        put = {path: entry for path, entry in step.put.items() if path in written}
        checkout.move(git, put, sorted(absent & written), untouched=step.is_untouched)
        restore.unstage(git, written)
    fs.remove(journal)


def catch_up(git: Git, stood: str, head: str) -> bool:
    """Bring index and files from `stood` to `head`, which HEAD is at; call it like `forward`.

    Return whether they are at `head` now. Nothing is done unless the index is that of `stood`, and no file to
    change has other content. It can be repeated after a kill.
    """
    if _index_is(git, stood):
        step = _step(git, stood, head)
        if step.blocked:
            return False
        checkout.move(git, step.put, step.remove, untouched=step.is_untouched)
        restore.restage(git, {path: after for path, (_, after) in trees.changed(git, stood, head).items()})
    elif not _index_is(git, head):
        return False
    # The reflog of HEAD says where the files are.
    git.run("update-ref", "-m", history.MERGED, "HEAD", head, head)
    return True


def _index_is(git: Git, commit: str) -> bool:
    return git.run("diff-index", "--cached", "--quiet", commit, "--", check=False).returncode == 0


def _journal(git: Git) -> Path:
    return git.git_dir / JOURNAL


def _step(git: Git, old: str, new: str) -> _Step:
    moves = trees.changed(git, old, new)
    # Taken before the files are read: what is written meanwhile counts as changed.
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
    """Return the present files at `paths` as git would add them, with line endings and filters."""
    hashes = hashed(git, paths, store=False)
    if not hashes:
        return {}
    with trees.private_index(git) as env:
        git.run(*trees.INDEX, "update-index", "--add", "-z", "--stdin", env=env, stdin=encode(list(hashes)))
        return trees.entries(git, trees.write_tree(git, env))


def _stamp(path: Path) -> _Stamp | None:
    """Return a value that changes with the file at `path`; None if it is missing or a directory."""
    try:
        info = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return None if stat.S_ISDIR(info.st_mode) else (info.st_ino, info.st_size, info.st_mtime_ns)


def _is_in_the_way(git: Git, path: str, moves: Mapping[str, tuple[Entry | None, Entry | None]]) -> bool:
    """Return whether a user's directory is in the place of a file, or a file in that of a directory."""
    if not obstructed(git.top, path):
        return False
    # A file of the old commit that a directory replaces, or the other way round, is no obstacle.
    above = {path[:at] for at in range(len(path)) if path[at] == "/"}
    return not any(
        old is not None and new is None and (name in above or name.startswith(path + "/"))
        for name, (old, new) in moves.items()
    )

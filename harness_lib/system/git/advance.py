"""Move HEAD, its branch and the index to another commit, and a checkout with its files.

Crash model of `forward`: a journal first, then the files, each in one step, then the index, HEAD last. Until
HEAD has moved, the next process finds the journal and takes everything back: half a move looks like changes
of the user. A file is replaced only if it has the content of the old commit, and of the index only the
entries of such files. So nothing of the user is overwritten, not even what they stage or commit meanwhile.
The other functions, called again with the same arguments inside `locks.hold()`, have the same result.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from harness_lib.errors import HeldError, RefusedError
from harness_lib.system import fs
from harness_lib.system.git import calls, checkout, history, status, submodules, trees
from harness_lib.system.git.locks import leftover_locks
from harness_lib.system.git.repository import Git
from harness_lib.system.git.trees import GITLINK, Entry

# Beside git's own files: from where to where `forward` is moving.
JOURNAL = "harness-advance"

_Done = TypeVar("_Done")
_Stamp = tuple[int, int, int]

# An editor that refreshes its view holds index.lock for milliseconds.
PATIENCE_SECONDS = 3.0


class HeadMovedError(RefusedError):
    """HEAD has moved: another process committed or switched the branch."""


def move_head_and_index(git: Git, commit: str, expected_head: str | None) -> bool:
    """Move HEAD's branch (or a detached HEAD) from `expected_head` to `commit`, and the index with it.

    The work tree is not changed. Return whether each tracked file is known to be as in `commit`.
    Raises HeadMovedError if HEAD is neither of the two.
    """
    move_head(git, commit, expected_head, "harness: commit")
    return reset_index(git, commit)


def move_head(
    git: Git, commit: str, expected: str | None, why: str, only_while: tuple[str, str] | None = None
) -> None:
    """Move HEAD's branch (or a detached HEAD) from `expected` to `commit`; `why` goes into the reflog.

    `only_while` as in `Git.set_ref`. Repeated with the same arguments it does nothing.
    Raises HeadMovedError if HEAD is neither of the two, or the other ref is elsewhere.
    """
    head = git.head()
    if head == commit:
        return
    if head == expected:
        try:
            _patiently(lambda: git.set_ref("HEAD", commit, expected or "", why=why, only_while=only_while))
        except calls.GitError:
            head = git.head()
            if head == expected:
                if not only_while or (git.ref(only_while[0]) or "") == only_while[1]:
                    raise
                raise HeadMovedError(
                    f"{only_while[0]} has moved meanwhile", "look at `git log --all`: somebody moved it"
                ) from None
        else:
            return
    raise HeadMovedError(
        f"HEAD is at {(head or 'no commit')[:12]}, not at {(expected or 'no commit')[:12]} as it was",
        "look at `git log`: somebody committed or switched the branch here",
    )


def point_head(git: Git, branch: str | None, base: str) -> None:
    """Point HEAD at `branch` (full name), or for None at the commit `base`; no file is changed."""
    present = git.branch()
    if present == branch:
        return
    if branch is None:
        _patiently(lambda: git.run("update-ref", "--no-deref", "-m", "harness: go back", "HEAD", base))
    else:
        _patiently(lambda: git.run("symbolic-ref", "-m", "harness: go back", "HEAD", branch))


def reset_index(git: Git, commit: str) -> bool:
    """Set the index to `commit`; no file is changed.

    Return whether each tracked file is known to be as in `commit`.
    """
    # Git refuses to change the entry of a marked file that exists.
    marks = status.unmark(git, {})
    # With a path no ref moves. Conflicts are removed and the stat data is refreshed (by older versions of git
    # only without --quiet).
    differing = _patiently(lambda: git.run("reset", "--no-quiet", commit, "--", ":/")).stdout
    if differing:
        _refresh(git)
    if marks:
        status.put_marks(git, marks)
    return not marks and not differing


def restage(git: Git, old: str, new: str) -> None:
    """Put what differs between `old` and `new` into the index as it is in `new`; no file is changed.

    Other entries are kept, so also what a user stages or commits meanwhile.
    """
    edits = {path: after for path, (_, after) in trees.changed(git, old, new).items()}
    marks = status.unmark(git, {})
    _patiently(lambda: trees.update(git, {}, edits))
    git.run("update-index", "-q", "--refresh", check=False)
    if marks:
        status.put_marks(git, marks)


def _refresh(git: Git) -> None:
    """Refresh the index, and let git read the files whose size is not the recorded one.

    With converted line ends a file may be restored in another size than it was committed in; git calls such
    a file changed without reading it, unless its entry in the index is a new one.
    """
    git.run("update-index", "-q", "--refresh", check=False)
    if recorded := trees.unread(git):
        _patiently(lambda: trees.update(git, {}, recorded))
        git.run("update-index", "-q", "--refresh", check=False)


def unstage(git: Git, paths: Collection[str]) -> None:
    """Set the entries of `paths` in the index to those of HEAD; no file is changed."""
    if paths:
        args = ("--literal-pathspecs", "reset", "-q", "--pathspec-from-file=-", "--pathspec-file-nul")
        _patiently(lambda: git.run(*args, stdin=calls.encode(sorted(paths))))


def _patiently(step: Callable[[], _Done]) -> _Done:
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return step()
        except calls.GitLockedError:
            if time.monotonic() >= end:
                raise
            time.sleep(0.05)


def blocking_locks(git: Git) -> list[Path]:
    """Return the lock files that block this checkout: of the index, HEAD and its branch."""
    return [path for path in leftover_locks(git) if path.name != "packed-refs.lock"]


def require_unlocked(git: Git) -> None:
    """Raise HeldError, naming the file, if another program keeps the index, HEAD or its branch locked.

    Called inside `locks.hold()`, which removes those of harness, and before anything is moved.
    """
    end = time.monotonic() + PATIENCE_SECONDS
    while locks := blocking_locks(git):
        if time.monotonic() >= end:
            raise HeldError(
                f"Another program holds a lock of git: {locks[0]} has been there for {PATIENCE_SECONDS:g} s. "
                "Nothing was changed.",
                "Let the git command that made it end; if none runs, delete that one file. Then try again.",
            )
        time.sleep(0.05)


def to_undo(git: Git, present: str, content: str) -> dict[str, Entry]:
    """Return the files of `content` (a tree or commit) that are gone or others in `present`, the work tree's.

    Those in whose place lies what git takes no content of (a FIFO) are among them, repositories are not.
    """
    moves = trees.changed(git, present, content)
    return {
        path: entry
        for path, entry in trees.entries(git, content).items()
        if entry[0] != GITLINK and (path in moves or _is_no_content(git.top / path))
    }


def _is_no_content(path: Path) -> bool:
    return os.path.lexists(path) and not (path.is_symlink() or path.is_file())


def undo(git: Git, files: Mapping[str, Entry]) -> tuple[str, ...]:
    """Restore tracked `files`; return those whose place is free for it.

    Their present content is lost unless the caller kept it; other files are not changed.
    """
    blocked = set(checkout.checkout(git, files))
    _refresh(git)
    return tuple(path for path in files if path not in blocked)


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
        raise HeadMovedError(
            f"HEAD of {git.top} is at {(head or 'no commit')[:12]}, not at {old[:12]}",
            "look at `git log`: somebody committed or switched the branch there",
        )
    step = _step(git, old, new)
    fs.write(_journal(git), f"{old} {new}\n".encode())
    checkout.move(git, step.put, step.remove, untouched=step.is_untouched)
    restage(git, old, new)
    try:
        move_head(git, new, old, history.MERGED, only_while)
    except HeadMovedError:
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
        absent = {path for path, (_, after) in trees.changed(git, new, head).items() if not after}
        # Absent ones too: a directory that was made for one of them may be empty.
        put = {path: entry for path, entry in step.put.items() if path in written}
        checkout.move(git, put, sorted(absent & written), untouched=step.is_untouched)
        unstage(git, written)
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
        restage(git, stood, head)
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
    stamps = {path: _stamp(git.top / path) for path in moves}
    stamps |= dict.fromkeys(_respelled(moves, stamps))
    step = _Step(git.top, stamps)
    standing = _standing(git, [path for path, stamp in stamps.items() if stamp])
    left_out = set(status.left_out(git))
    for path, (before, after) in moves.items():
        present = standing.get(path)
        if GITLINK in {entry[0] for entry in (before, after) if entry} or path in left_out:
            continue
        if present == after:
            step.done.append(path)
        elif present != before or (not present and _is_in_the_way(git.top, path, moves)):
            step.blocked.append(path)
        elif not after:
            step.remove.append(path)
        else:
            step.put[path] = after
    return step


def _respelled(moves: Mapping[str, trees.Change], stamps: Mapping[str, _Stamp | None]) -> list[str]:
    """Return the new paths of files that only change the case of their names, where case makes no file.

    There, as on macOS, the old file is found under the new path, too.
    """
    leaving = {(path.casefold(), stamps[path]) for path, (_, after) in moves.items() if not after}
    new = (path for path, (before, _) in moves.items() if not before)
    return [path for path in new if (path.casefold(), stamps[path]) in leaving]


def _standing(git: Git, paths: list[str]) -> dict[str, Entry]:
    """Return the present files at `paths` as git would add them, with line endings and filters."""
    hashes = checkout.hashed(git, paths, store=False)
    if not hashes:
        return {}
    with trees.private_index(git) as env:
        git.run(
            *trees.INDEX, "update-index", "--add", "-z", "--stdin", env=env, stdin=calls.encode(list(hashes))
        )
        return trees.entries(git, trees.write_tree(git, env))


def _stamp(path: Path) -> _Stamp | None:
    """Return a value that changes with the file at `path`; None if it is missing or a directory."""
    try:
        info = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return None if stat.S_ISDIR(info.st_mode) else (info.st_ino, info.st_size, info.st_mtime_ns)


def _is_in_the_way(top: Path, path: str, moves: Mapping[str, trees.Change]) -> bool:
    """Return whether a user's directory is in the place of a file, or a file in that of a directory."""
    at = checkout.obstacle(top, path)
    # A file of the old commit that a directory replaces, or the other way round, is no obstacle.
    gone = {name for name, (_, new) in moves.items() if not new}
    if at != path:
        return at is not None and at not in gone
    files = {str(file.relative_to(top)) for file in (top / path).rglob("*") if _stamp(file)}
    return not files or not files <= gone

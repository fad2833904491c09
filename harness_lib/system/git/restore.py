"""Move a repository and its work tree to another commit, without losing unsaved work.

Crash model: the process or its git may be killed at any line. Every function here, called again with the same
arguments inside `locks.hold()`, has the same result.
The rule: a file is replaced or removed only if its present content is already in a tree that was kept
(`base`, `made`, `before`); anything else is left where it is, and named.
Source: docs/design.md, "Rescue and rollback".
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from harness_lib import typed
from harness_lib.errors import HeldError, RefusedError
from harness_lib.system import fs
from harness_lib.system.git import checkout, snapshot, status, trees
from harness_lib.system.git.calls import GitError, covers, decode, encode
from harness_lib.system.git.checkout import hashed
from harness_lib.system.git.locks import leftover_locks
from harness_lib.system.git.repository import Git
from harness_lib.system.git.snapshot import Before
from harness_lib.system.git.trees import GITLINK, Entry

_Done = TypeVar("_Done")

# An editor that refreshes its view holds index.lock for milliseconds.
PATIENCE_SECONDS = 3.0

# In the git directory: the untracked files whose directories may have to be removed.
JOURNAL = "harness-emptied"

# Files that change how git reads other files; they are restored first.
RULES = (".gitattributes", ".gitignore")


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
        except GitError:
            head = git.head()
            if head == expected:
                if only_while is None or (git.ref(only_while[0]) or "") == only_while[1]:
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


def restage(git: Git, edits: Mapping[str, Entry | None]) -> None:
    """Put `edits` (None: absent) into the index and keep its other entries; no file is changed.

    So entries that a user stages or commits meanwhile are kept.
    """
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
        _patiently(lambda: git.run(*args, stdin=encode(sorted(paths))))


def _patiently(step: Callable[[], _Done]) -> _Done:
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return step()
        except GitError as error:
            if "File exists" not in error.stderr or time.monotonic() >= end:
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
                f"Another program has git locked: {locks[0]} stands for longer than {PATIENCE_SECONDS:g} s. "
                "Nothing was changed.",
                "Let the git command that made it end; if none runs, delete that one file. Then try again.",
            )
        time.sleep(0.05)


def undo_tracked(git: Git, commit: str, excluded_paths: Sequence[str] = ()) -> tuple[str, ...]:
    """Restore the files of `commit` that differ on disk; return them.

    Their present content is lost unless the caller kept it; untracked files are not changed.
    """
    with status.looked_at(git) as env:
        listing = git.run(
            "diff",
            "--name-only",
            "-z",
            "--no-renames",
            "--no-ext-diff",
            "--ignore-submodules=all",
            "--diff-filter=MDTU",
            commit,
            env=env,
        )
    known = trees.entries(git, commit)
    differing = {
        path: known[path]
        for path in decode(listing.stdout)
        if path in known and known[path][0] != GITLINK and not covers(excluded_paths, path)
    }
    blocked = set(checkout.checkout(git, differing))
    _refresh(git)
    return tuple(path for path in differing if path not in blocked)


class _Move:
    """The files to change, decided once, from trees alone."""

    def __init__(self, emptied: list[str]) -> None:
        self.emptied = emptied
        self.restore: dict[str, Entry] = {}
        self.remove: list[str] = []
        self.problems: list[str] = []


def go_back(
    git: Git,
    base: str,
    *,
    branch: str | None,
    made: str,
    before: Before | None = None,
    excluded_paths: Sequence[str] = (),
) -> list[str]:
    """Restore the work tree, the index, HEAD and its branch to `base`; return what could not be restored.

    `branch`: the full name of the branch for HEAD, None for a detached HEAD.
    `made`: the tree captured just before, with this `base` and `before`, which the caller has kept.
    `before`: what was untracked at the base.
    Untracked files are removed only if `made` has them and `before` does not. Ignored files, submodules,
    nested repositories and `excluded_paths` are not touched, not even files there that `base` tracks.
    """
    git.quit_under_way()
    _point_head(git, branch, base)
    current = snapshot.capture(git, excluded_paths, base=base, before=before)
    move = _plan(git, base, made, current, before, excluded_paths)
    journal = git.git_dir / JOURNAL
    if journal.exists():
        # A killed run was about to remove these: its files may be gone, but not their directories.
        move.emptied.extend(decode(journal.read_bytes()))
    fs.write(journal, encode(move.emptied), durable=False)
    problems = list(move.problems)
    for rules in (True, False):
        problems += _carry_out(git, move, rules=rules)
        if before is not None:
            problems += _give_back(git, before, made, current, excluded_paths, rules=rules)
    for path in before.unprotected if before else ():
        if not os.path.lexists(git.top / path):
            problems.append(f"{path} was there before, could not be kept, and is gone")
    move_head(git, base, git.head(), "harness: go back")
    reset_index(git, base)
    fs.remove(journal)
    return problems


def _point_head(git: Git, branch: str | None, base: str) -> None:
    present = git.branch()
    if present == branch:
        return
    if branch is None:
        _patiently(lambda: git.run("update-ref", "--no-deref", "-m", "harness: go back", "HEAD", base))
    else:
        _patiently(lambda: git.run("symbolic-ref", "-m", "harness: go back", "HEAD", branch))


def _plan(
    git: Git, base: str, made: str, current: str, before: Before | None, excluded_paths: Sequence[str]
) -> _Move:
    left_alone = {*excluded_paths, *(before.unprotected if before else ())}
    given_back = set(before.protected) if before else set()
    in_made = trees.changed(git, base, made)
    move = _Move(emptied=[path for path, (base_entry, _) in in_made.items() if base_entry is None])
    for path, (base_entry, present) in trees.changed(git, base, current).items():
        if covers(left_alone, path) or (base_entry is None and path in given_back):
            continue
        _, saved = in_made.get(path, (base_entry, base_entry))
        if GITLINK in {entry[0] for entry in (base_entry, present) if entry}:
            move.problems.append(f"{path} is a repository of its own and was left as it is")
        elif base_entry is None and path not in in_made:
            # It appeared after `made`, so nothing has kept it.
            continue
        elif present not in (None, saved):
            move.problems.append(f"{path} has changed since it was saved and was left as it is")
        elif base_entry is None:
            move.remove.append(path)
        else:
            move.restore[path] = base_entry
    return move


def _carry_out(git: Git, move: _Move, *, rules: bool) -> list[str]:
    """Restore and remove the files that are rules, or all others; return what could not be restored."""
    restore = {path: entry for path, entry in move.restore.items() if _is_rule(path) == rules}
    remove = [path for path in move.remove if _is_rule(path) == rules]
    blocked = checkout.checkout(git, restore)
    # An edited .gitignore makes files visible that the base ignores.
    ignored = status.among_ignored(git, remove)
    for path in remove:
        if path not in ignored:
            checkout.remove(git.top, path)
    # Of all new files: a killed run may have removed a file and not its directory.
    checkout.prune(git.top, move.emptied)
    blocked = checkout.checkout(git, {path: restore[path] for path in blocked})
    # Without --force, which would delete what stands there.
    return [
        f"{_blocked(git, path)}, then type: {typed.git('-C', git.top, 'checkout-index', '--', path)}"
        for path in blocked
    ]


def _blocked(git: Git, path: str) -> str:
    """Return a sentence, without its end, about the file `path`, whose place is taken."""
    taken = checkout.obstacle(git.top, path) or path
    what = "a directory" if (git.top / taken).is_dir() else "a file"
    return f"{path} could not be put back: {what} stands at {taken}. Move that away"


def _is_rule(path: str) -> bool:
    return path.rpartition("/")[2] in RULES


def _give_back(
    git: Git, before: Before, made: str, current: str, excluded_paths: Sequence[str], *, rules: bool
) -> list[str]:
    """Restore the files of `before` that are missing or differ; return what could not be restored."""
    paths = [
        path for path in before.protected if _is_rule(path) == rules and not covers(excluded_paths, path)
    ]
    kept = trees.entries(git, before.tree) if paths else {}
    protected = {path: kept[f"content/{path}"] for path in paths}
    standing = hashed(git, protected, store=False)
    differing = {path: entry for path, entry in protected.items() if standing.get(path) != entry}
    at_made, at_current = (trees.entries(git, tree) for tree in (made, current)) if differing else ({}, {})
    unsaved = {path for path in differing if path in standing and at_current.get(path) != at_made.get(path)}
    saved = {path: entry for path, entry in differing.items() if path not in unsaved}
    blocked = checkout.write_exactly(git, saved, before.modes)
    left = unsaved.union(blocked)
    checkout.restore_modes(
        git, {path: before.modes[path] for path in paths if path in before.modes and path not in left}
    )
    return [
        *(f"{path} has changed since it was saved and was left as it is" for path in sorted(unsaved)),
        *(f"{_blocked(git, path)} first" for path in blocked),
    ]

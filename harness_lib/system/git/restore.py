"""Bring a work tree back to where an attempt began, or bring kept work into it, and lose no unsaved work.

Crash model: the process or its git may be killed at any line. `go_back`, called again with the same arguments
inside `locks.hold()`, has the same result.
The rule of `go_back`: a file is replaced or removed only if its present content is already in a tree that was
kept (`base`, `made`, `before`); anything else is left where it is, and named. `apply` writes nothing unless
all of it applies, and to no file with uncommitted changes, nor to one that git does not track.
Source: docs/design.md, "Rescue and rollback".
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from harness_lib import typed
from harness_lib.system import fs
from harness_lib.system.git import advance, checkout, locks, snapshot, status, trees
from harness_lib.system.git.calls import covers, decode, encode
from harness_lib.system.git.repository import Git
from harness_lib.text import Strings

# In the git directory: the untracked files whose directories may have to be removed.
JOURNAL = "harness-emptied"

# Files that change how git reads other files; they are restored first.
RULES = (".gitattributes", ".gitignore")


class _Move:
    """The files to change, decided once, from trees alone."""

    def __init__(self, emptied: list[str]) -> None:
        self.emptied = emptied
        self.restore: dict[str, trees.Entry] = {}
        self.remove: list[str] = []
        self.problems: list[str] = []


def go_back(
    git: Git,
    base: str,
    *,
    branch: str | None,
    made: str,
    before: snapshot.Before | None = None,
    excluded_paths: Sequence[str] = (),
) -> list[str]:
    """Restore the work tree, the index, HEAD and its branch to `base`; return what could not be restored.

    `branch`: the full name of the branch for HEAD, None for a detached HEAD.
    `made`: the tree captured just before, with this `base` and `before`, which the caller has kept.
    `before`: what was untracked at the base.
    Untracked files are removed only if `made` has them and `before` does not. Ignored files, submodules,
    nested repositories and `excluded_paths` are not touched, not even files there that `base` tracks.
    """
    status.quit_under_way(git)
    advance.point_head(git, branch, base)
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
        if before:
            problems += _give_back(git, before, made, current, excluded_paths, rules=rules)
    for path in before.unprotected if before else ():
        if not os.path.lexists(git.top / path):
            problems.append(f"{path} was there before, could not be kept, and is gone")
    advance.move_head(git, base, git.head(), "harness: go back")
    advance.reset_index(git, base)
    fs.remove(journal)
    return problems


def _plan(
    git: Git,
    base: str,
    made: str,
    current: str,
    before: snapshot.Before | None,
    excluded_paths: Sequence[str],
) -> _Move:
    left_alone = {*excluded_paths, *(before.unprotected if before else ())}
    given_back = before.kept if before else {}
    in_made = trees.changed(git, base, made)
    move = _Move(emptied=[path for path, (base_entry, _) in in_made.items() if not base_entry])
    for path, (base_entry, present) in trees.changed(git, base, current).items():
        if covers(left_alone, path) or (not base_entry and path in given_back):
            continue
        _, saved = in_made.get(path, (base_entry, base_entry))
        if trees.GITLINK in {entry[0] for entry in (base_entry, present) if entry}:
            move.problems.append(f"{path} is a repository of its own and was left as it is")
        elif not base_entry and path not in in_made:
            # It appeared after `made`, so nothing has kept it.
            continue
        elif present not in (None, saved):
            move.problems.append(f"{path} has changed since it was saved and was left as it is")
        elif not base_entry:
            move.remove.append(path)
        else:
            move.restore[path] = base_entry
    move.restore |= {
        path: entry
        for path, entry in _respelled(git, base, move.remove).items()
        if not covers(left_alone, path)
    }
    return move


def _respelled(git: Git, base: str, paths: Sequence[str]) -> dict[str, trees.Entry]:
    """Return the files of `base` of which `paths` are other names, where case makes no second file.

    There, as on macOS, a file is found under its old name, too, after an attempt has changed the case.
    """
    other = {path.casefold() for path in paths if _is_one(git.top / path, git.top / path.swapcase())}
    found = trees.entries(git, base) if other else {}
    return {path: entry for path, entry in found.items() if path.casefold() in other}


def _is_one(file: Path, other: Path) -> bool:
    try:
        return file != other and os.path.samestat(file.lstat(), other.lstat())
    except (FileNotFoundError, NotADirectoryError):
        return False


def _carry_out(git: Git, move: _Move, *, rules: bool) -> list[str]:
    """Restore and remove the files that are rules, or all others; return what could not be restored."""
    restore = {path: entry for path, entry in move.restore.items() if _is_rule(path) == rules}
    remove = [path for path in move.remove if _is_rule(path) == rules]
    # Where case makes no second file, a new name may be that of the file to restore: it goes first.
    blocked = checkout.checkout(git, restore) if rules else list(restore)
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
    git: Git, before: snapshot.Before, made: str, current: str, excluded_paths: Sequence[str], *, rules: bool
) -> list[str]:
    """Restore the files of `before` that are missing or differ; return what could not be restored."""
    protected = {
        path: entry
        for path, entry in before.kept.items()
        if _is_rule(path) == rules and not covers(excluded_paths, path)
    }
    standing = checkout.hashed(git, protected, store=False)
    differing = {path: entry for path, entry in protected.items() if standing.get(path) != entry}
    at_made, at_current = (trees.entries(git, tree) for tree in (made, current)) if differing else ({}, {})
    unsaved = {path for path in differing if path in standing and at_current.get(path) != at_made.get(path)}
    saved = {path: entry for path, entry in differing.items() if path not in unsaved}
    blocked = checkout.write_exactly(git, saved, before.modes)
    left = unsaved.union(blocked)
    checkout.restore_modes(
        git, {path: before.modes[path] for path in protected if path in before.modes and path not in left}
    )
    return [
        *(f"{path} has changed since it was saved and was left as it is" for path in sorted(unsaved)),
        *(f"{_blocked(git, path)} first" for path in blocked),
    ]


_FIELDS = "%(refname)%00%(objectname)%00%(committerdate:unix)%00%(subject)"
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--full-index")
# As `git apply` reads it, whatever the user likes to see (`diff.noprefix`, `diff.context`).
_PATCH = (*_DIFF, "--binary", "--unified=3", "--src-prefix=a/", "--dst-prefix=b/")
_REJECTED = re.compile(r"^error: (.+?): (?:patch does not apply|.*exists.*|.*No such file.*)$", re.MULTILINE)


class Rescue(NamedTuple):
    """A ref, the commit it keeps, when that was made (seconds since 1970), and its subject."""

    ref: str
    oid: str
    at: int
    subject: str


class Applied(NamedTuple):
    """The result of restoring: nothing was written if a path is in the way or does not apply."""

    written: Strings = ()
    in_the_way: Strings = ()
    unfit: Strings = ()
    left_out: Strings = ()
    excluded: Strings = ()


def listed(git: Git, prefix: str) -> list[Rescue]:
    """Return the kept work below `prefix`, newest first."""
    # The last --sort is the first key.
    order = ("--sort=-version:refname", "--sort=-committerdate")
    lines = git.lines("for-each-ref", *order, f"--format={_FIELDS}", prefix)
    parts = (line.split("\0", 3) for line in lines)
    return [Rescue(ref, oid, int(at or 0), subject) for ref, oid, at, subject in parts]


def origin(git: Git, oid: str) -> str:
    """Return the base of the kept work: its merge base with HEAD.

    Without a common history, the parent of `oid`, or the empty tree.
    """
    result = git.run("merge-base", "HEAD", oid, check=False)
    if result.returncode == 0:
        return os.fsdecode(result.stdout).strip()
    return git.parent(oid) or git.empty_tree()


def stat(git: Git, old: str, new: str, files: int) -> str:
    """Return `git diff --stat` of at most so many files, and its summary."""
    return "\n".join(git.lines(*_DIFF, f"--stat=100,60,{files}", old, new, "--"))


def diff(git: Git, old: str, new: str) -> list[str]:
    """Return the lines of the difference between two commits or trees, binary files by name only."""
    return git.lines(*_DIFF, old, new, "--")


def apply(git: Git, oid: str, excluded_paths: Sequence[str] = ()) -> Applied:
    """Apply the changes between `oid` and its origin to the work tree, all or none; HEAD and index stay.

    `excluded_paths`, files or directories with all below them, are never written.
    """
    base = origin(git, oid)
    differences = trees.changed(git, base, oid)
    with locks.hold(git):
        present = snapshot.capture(git, excluded_paths)
        differs = trees.changed(git, present, oid)
        excluded = tuple(path for path in differences if covers(excluded_paths, path))
        changed = {path: pair for path, pair in differences.items() if path not in excluded}
        foreign = {
            path
            for path, pair in changed.items()
            if any(entry and entry[0] == trees.GITLINK for entry in pair)
        }
        paths = [path for path in changed if path in differs and path not in foreign]
        gone = [path for path in paths if not changed[path][1]]
        in_the_way = _in_the_way(git, present, paths, gone)
        if in_the_way or not paths:
            return Applied(in_the_way=in_the_way, left_out=tuple(foreign), excluded=excluded)
        unfit = _apply_patch(git, base, oid, paths)
        return Applied(() if unfit else tuple(paths), (), unfit, tuple(foreign), excluded)


def _in_the_way(git: Git, present: str, paths: Collection[str], gone: Collection[str]) -> Strings:
    """Return which of `paths` have uncommitted content, ignored files included; `gone` are removed."""
    head = git.head() or git.empty_tree()
    unsaved = trees.changed(git, head, present)
    known = trees.entries(git, present)

    def is_free(path: str) -> bool:
        if obstacle := checkout.obstacle(git.top, path):
            return _makes_room(git.top, obstacle, gone)
        return path in known or not os.path.lexists(git.top / path)

    return tuple(path for path in paths if path in unsaved or not is_free(path))


def _makes_room(top: Path, obstacle: str, gone: Collection[str]) -> bool:
    """Return whether `obstacle` is a file among `gone`, or a directory of nothing else."""
    at = top / obstacle
    inside = at.rglob("*") if not at.is_symlink() else ()
    names = [str(each.relative_to(top)) for each in inside if each.is_symlink() or not each.is_dir()]
    return all(name in gone for name in names or [obstacle])


def _apply_patch(git: Git, base: str, oid: str, paths: Collection[str]) -> Strings:
    """Apply the changes of `paths`; return the paths that git rejected."""
    target = trees.with_from(git, git.tree_of(base), oid, paths)
    patch = git.run(*_PATCH, base, target, "--").stdout
    done = git.run("apply", "--whitespace=nowarn", "-", stdin=patch, check=False)
    if done.returncode == 0:
        return ()
    complaint = os.fsdecode(done.stderr)
    named = tuple(dict.fromkeys(_REJECTED.findall(complaint)))
    return named or (complaint.strip() or "git apply failed",)

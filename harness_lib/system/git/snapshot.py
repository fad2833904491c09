"""Capture the content of a work tree as git objects, without changing its index, HEAD or files.

Source: docs/design.md, "At the finish".
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from harness_lib.system.git import checkout, status, submodules, worktrees
from harness_lib.system.git.calls import covers, decode, encode, failure
from harness_lib.system.git.repository import Git
from harness_lib.system.git.trees import (
    INDEX,
    SYMLINK,
    Entry,
    changed,
    entries,
    private_index,
    with_from,
    write,
    write_tree,
)

# Messages of `add --ignore-errors` about what it skips: unreadable files, repositories without a commit, and
# FIFOs or sockets in the place of a tracked file. A directory that it cannot open is no error to git.
_UNREADABLE = re.compile(rb"^error: unable to index file '(.*?)'$", re.MULTILINE | re.DOTALL)
_LEFT_OUT = re.compile(
    rb"^(?:error: (?:unable to index file )?|warning: could not open directory )'(.*?)/?'(?=$|: | does)",
    re.MULTILINE | re.DOTALL,
)
_PASSED_OVER = (
    b"unable to index file",
    b"open(",
    b"does not have a commit",
    b"can only add",
    b"adding files failed",
)
# It begins with the excluded files that are ignored, as if these were the reason.
_NO_REASON = rb"(?m)^(?:The following paths are ignored .*|hint: .*|(?:.*/)?\.?harness[^ :]*)\n"

NO_FILES: Mapping[str, Entry] = MappingProxyType({})
NO_MODES: Mapping[str, int] = MappingProxyType({})


class Before(NamedTuple):
    """The untracked files of before: `kept` in `tree`, or only named there if too large or unreadable.

    `tree` is empty if nothing was kept.
    `modes` are the permissions of the kept files: git would forget them.
    `left_out` are tracked files that were not there because git was told to skip them.
    """

    tree: str = ""
    kept: Mapping[str, Entry] = NO_FILES
    unprotected: tuple[str, ...] = ()
    modes: Mapping[str, int] = NO_MODES
    left_out: frozenset[str] = frozenset()

    @property
    def paths(self) -> frozenset[str]:
        """Everything that was untracked."""
        return frozenset((*self.kept, *self.unprotected))


def capture(
    git: Git, excluded_paths: Sequence[str] = (), *, base: str | None = None, before: Before | None = None
) -> str:
    """Return the tree of the work tree, as `taken` has it."""
    return taken(git, excluded_paths, base=base, before=before)[0]


def taken(
    git: Git, excluded_paths: Sequence[str] = (), *, base: str | None = None, before: Before | None = None
) -> tuple[str, list[str]]:
    """Return the tree of the work tree, and the paths of what could not be taken into it.

    It has tracked and untracked files, not ignored ones, and `excluded_paths` as in HEAD.

    With `base` and `before`, files that those know are in it even where they are ignored by now, and so are
    those that are ignored only since then: whoever wants to put the old content back must have saved the new.
    An untracked file that cannot be read is left out, and so are a directory that cannot be opened and a
    repository without a commit; GitError if it is a tracked file. A submodule or nested repository is its
    commit, never its content.
    """
    with private_index(git, copy=True) as env:
        status.unmark(git, env, before.left_out if before else None)
        # `add` would start another git in each submodule, which its settings may lead anywhere.
        inner = submodules.staged(git) if worktrees.is_agents(git) else ()
        links = [path for path in inner if os.path.lexists(git.top / path / ".git")]
        spec = [f":(top,exclude,literal){path}" for path in (*excluded_paths, *links)]
        args = (*INDEX, "add", "-A", "--ignore-errors", "--", ":/", *spec)
        added = git.run(*args, env=env, check=False)
        if added.returncode:
            _excuse(git, env, args, added.returncode, added.stderr)
        if links:
            git.run(*INDEX, "update-index", "-z", "--stdin", env=env, stdin=encode(links))
        tree = write_tree(git, env)
        if (base or before) and (ignored := _ignored(git, tree, excluded_paths, base, before)):
            git.run(
                *INDEX, "update-index", "--add", "--replace", "-z", "--stdin", env=env, stdin=encode(ignored)
            )
            tree = write_tree(git, env)
    # Newer gits say two errors of a repository without a commit.
    left_out = dict.fromkeys(_LEFT_OUT.findall(added.stderr))
    return _as_in_head(git, tree, excluded_paths), decode(b"\0".join(left_out))


def _excuse(git: Git, env: Mapping[str, str], args: Sequence[str], code: int, stderr: bytes) -> None:
    """Raise GitError unless all that could not be added is untracked, or not a file."""
    errors = [line for line in stderr.splitlines() if line.startswith((b"error:", b"fatal:"))]
    why = failure(args, code, re.sub(_NO_REASON, b"", stderr))
    if not all(any(words in line for words in _PASSED_OVER) for line in errors):
        raise why
    names = [os.fsdecode(name) for name in _UNREADABLE.findall(stderr)]
    known = git.run("--literal-pathspecs", "ls-files", "-z", "--", *names, env=env).stdout if names else b""
    if any(_is_content(git.top / name) for name in decode(known)):
        raise why


def _is_content(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _ignored(
    git: Git, tree: str, excluded_paths: Sequence[str], base: str | None, before: Before | None
) -> list[str]:
    """Return existing files that `tree` lacks.

    `base` or `before` have them, or they are ignored only since then.
    """
    missing: set[str] = set()
    if base is not None:
        listing = git.run(
            "diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=D", base, tree
        )
        missing.update(decode(listing.stdout))
    if before and before.kept:
        missing.update(before.kept.keys() - entries(git, tree))
    if base is not None and before:
        rules_then = write(git, status.rules_in({**entries(git, base), **before.kept}))
        new = status.newly_ignored(git, rules_then, tree)
        missing.update(path for path in new if not covers(before.unprotected, path))
    return sorted(
        path
        for path in missing
        if not covers(excluded_paths, path)
        and not checkout.obstructed(git.top, path)
        and _is_content(git.top / path)
    )


def _as_in_head(git: Git, tree: str, excluded_paths: Sequence[str]) -> str:
    if not excluded_paths:
        return tree
    before = git.tree_of("HEAD") if git.head() else git.empty_tree()
    # Whoever commits `tree` asks the same.
    differs = any(covers(excluded_paths, path) for path in changed(git, before, tree))
    return with_from(git, tree, before, excluded_paths) if differs else tree


def capture_untracked(
    git: Git,
    paths: Sequence[str],
    limit_bytes_each: int,
    limit_total: int,
    left_out: Sequence[str] = (),
) -> Before:
    """Keep the content of untracked `paths` in a tree: `content`, and directories of names.

    `unprotected` names what is larger than `limit_bytes_each`, what no longer fits into `limit_total` (small
    files first), what cannot be read, and nested repositories; `mode/OCTAL` the permissions of what is kept;
    `left_out` what is handed in by that name.
    """
    chosen, total = [], 0
    for size, path in sorted((_size(git.top / path), path) for path in paths):
        if size <= limit_bytes_each and total + size <= limit_total:
            chosen.append(path)
            total += size
    kept = checkout.hashed(git, chosen, store=True)
    named = sorted({path.rstrip("/") for path in paths} - set(kept))
    files = {f"content/{path}": entry for path, entry in kept.items()}
    modes = {path: _bits(git.top / path) for path, (mode, _) in sorted(kept.items()) if mode != SYMLINK}
    names = [
        *(f"unprotected/{path}" for path in named),
        *(f"mode/{bits:04o}/{path}" for path, bits in modes.items()),
        *(f"left_out/{path}" for path in left_out),
    ]
    if names:
        empty = git.text("hash-object", "-t", "blob", "-w", "--stdin")
        files |= dict.fromkeys(names, ("100644", empty))
    return Before(write(git, files), kept, tuple(named), modes, frozenset(left_out))


def _bits(path: Path) -> int:
    try:
        return stat.S_IMODE(path.lstat().st_mode) & 0o777
    except FileNotFoundError:
        return stat.S_IRUSR | stat.S_IWUSR


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


@lru_cache(maxsize=4)
def read_untracked(git: Git, tree_or_commit: str) -> Before:
    """Return what `capture_untracked` kept in this tree, or in its commit."""
    parts: dict[str, dict[str, Entry]] = {"content": {}, "unprotected": {}, "left_out": {}}
    modes = {}
    for path, entry in entries(git, tree_or_commit).items():
        part, _, name = path.partition("/")
        if part == "mode":
            bits, _, name = name.partition("/")
            modes[name] = int(bits, 8)
        else:
            parts[part][name] = entry
    kept, unprotected, left_out = parts.values()
    return Before(git.tree_of(tree_or_commit), kept, tuple(unprotected), modes, frozenset(left_out))


def glob_tree(
    git: Git, globs: Sequence[str], cwd: str | Path | None = None, excluded_paths: Sequence[str] = ()
) -> str:
    """Return the tree of the files on disk, tracked or not, that match git-style `globs`.

    The globs are relative to `cwd`, which is relative to the top (default: the top); a directory matches all
    below it. Byte for byte, so that two such trees differ if and only if a file does.
    """
    if not globs:
        return git.empty_tree()
    prefix = "" if cwd is None else os.path.relpath(git.top / cwd, git.top) + "/"
    included = [f":(top,glob){_placed(prefix, glob)}" for glob in globs if not glob.startswith("!")]
    excluded = [f":(top,exclude,glob){_placed(prefix, glob[1:])}" for glob in globs if glob.startswith("!")]
    listed = git.run("ls-files", "-z", "--cached", "--others", "--", *included, *excluded).stdout
    paths = [path for path in dict.fromkeys(decode(listed)) if included and not covers(excluded_paths, path)]
    return write(git, checkout.hashed(git, paths, store=True))


def _placed(prefix: str, glob: str) -> str:
    return os.path.normpath(prefix + glob.lstrip("/"))

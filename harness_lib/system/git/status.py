"""What differs from HEAD in a work tree, and between two work trees of a commit.

What stands on disk is content like any other, whatever marks the index has for it (assume-unchanged,
skip-worktree): a mark would hide it from every capture, and so from the commit, the rescue and the rollback.
What a sparse checkout has left out does not stand there, and is no deletion.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from harness_lib.system.git import calls, clones, trees
from harness_lib.system.git.calls import GitError, call, covers, decode, encode
from harness_lib.system.git.repository import Git

_SKIPPED = "S"
_UNMERGED = "M"
# In a sparse checkout git takes some marks off by itself as it reads the index.
AS_MARKED = ("-c", "core.sparseCheckout=false")
# Between two work trees so many are named, and so many files of a directory are compared.
MOST = 20
LOOKED_AT = 10_000
# No check fails for want of one, but for those that hold what was installed.
CACHES = calls.NAMES - {"node_modules", ".venv", "venv"}


class Changes(NamedTuple):
    """What differs from HEAD: tracked files, and untracked ones (a nested repository ends in `/`)."""

    tracked: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


def changes(git: Git, excluded_paths: Sequence[str] = ()) -> Changes:
    """Return what differs from HEAD, without `excluded_paths` (files, or directories with all below them)."""
    # To look for changes in a submodule git starts another in it, which its settings may lead anywhere.
    ignored = "dirty" if clones.is_agents(git) else "untracked"
    with looked_at(git) as env:
        output = git.run(
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            f"--ignore-submodules={ignored}",
            env=env,
        ).stdout
    paths: dict[str, list[str]] = {"tracked": [], "untracked": []}
    for record in decode(output):
        kind, path = _status(record)
        if kind and not covers(excluded_paths, path.rstrip("/")):
            paths[kind].append(path)
    return Changes(tuple(paths["tracked"]), tuple(paths["untracked"]))


def _status(record: str) -> tuple[str, str]:
    """Return ("tracked" or "untracked", path) of one record of `status --porcelain=v2 -z`."""
    if record.startswith("? "):
        return "untracked", record[2:]
    fields = {"1": 8, "u": 10}.get(record[:1])
    return ("tracked", record.split(" ", fields)[fields]) if fields else ("", "")


@contextmanager
def looked_at(git: Git) -> Iterator[Mapping[str, str]]:
    """Yield the environment for a git that sees what the marks hide; an empty one where there are none."""
    marked = _marked(git)
    if not marked:
        yield {}
        return
    with trees.index(git.git_dir, copy=True) as env:
        _unmark(git, env, marked, None)
        yield env


def unmark(git: Git, env: Mapping[str, str], left_out: Collection[str] | None = None) -> None:
    """Take the marks off the private index in `env`, but for files that are left out of the work tree.

    `left_out` names those that were left out before; then any other file that is missing was deleted.
    None: nobody knows, so that a file that git skips and that is missing was left out.
    """
    marked = _marked(git)
    if marked:
        _unmark(git, env, marked, left_out)


def left_out(git: Git) -> tuple[str, ...]:
    """Return the tracked files that git was told to skip and that are not there."""
    return tuple(path for path, tag in _marked(git).items() if _is_skipped(tag) and not _stands(git, path))


def marked(git: Git) -> tuple[str, ...]:
    """Return the files that git does not look at although they stand there."""
    return tuple(path for path in _marked(git) if _stands(git, path))


def take_marks(git: Git) -> Mapping[str, str]:
    """Take the marks off the index itself, and return what `put_marks` needs."""
    marks = _marked(git)
    if marks:
        _unmark(git, {}, marks, None)
    return marks


def put_marks(git: Git, marks: Mapping[str, str]) -> None:
    """Put `marks` back on the files that the index still has."""
    if not marks:
        return
    tracked = set(decode(git.run(*AS_MARKED, "ls-files", "-z").stdout))
    assumed, skipped = _kinds({path: tag for path, tag in marks.items() if path in tracked})
    _update(git, {}, ("--assume-unchanged", assumed), ("--skip-worktree", skipped))


def unmerged(git: Git) -> tuple[str, ...]:
    """Return the files that are in a merge conflict which nobody has marked as resolved."""
    return tuple(path for path, tag in _tagged(git).items() if tag == _UNMERGED)


def _marked(git: Git) -> dict[str, str]:
    """Return path → tag of `git ls-files -v` for every file that has a mark."""
    return {path: tag for path, tag in _tagged(git).items() if is_mark(tag)}


def _tagged(git: Git) -> Mapping[str, str]:
    """Return path → tag of `git ls-files -v` for every file that is not just tracked."""
    return _tagged_in(git, git.index_state())


@lru_cache(maxsize=32)
def _tagged_in(git: Git, _index: bytes) -> Mapping[str, str]:
    records = decode(git.run(*AS_MARKED, "ls-files", "-v", "-z").stdout)
    return {path: tag for tag, _, path in (r.partition(" ") for r in records) if tag != "H"}


def is_mark(tag: str) -> bool:
    """Say whether a tag of `git ls-files -v` is that of a marked file."""
    return tag.islower() or tag == _SKIPPED


def _is_skipped(tag: str) -> bool:
    return tag.upper() == _SKIPPED


def _stands(git: Git, path: str) -> bool:
    return os.path.lexists(git.top / path)


def _unmark(
    git: Git, env: Mapping[str, str], marks: Mapping[str, str], left_out: Collection[str] | None
) -> None:
    assumed, skipped = _kinds(marks)
    shown = [
        path for path in skipped if _stands(git, path) or (left_out is not None and path not in left_out)
    ]
    _update(git, env, ("--no-assume-unchanged", assumed), ("--no-skip-worktree", shown))


def _kinds(marks: Mapping[str, str]) -> tuple[list[str], list[str]]:
    assumed = [path for path, tag in marks.items() if tag.islower()]
    return assumed, [path for path, tag in marks.items() if _is_skipped(tag)]


def _update(git: Git, env: Mapping[str, str], *changes: tuple[str, list[str]]) -> None:
    # One at a time: each of these options ends what the command does with a file.
    for option, paths in changes:
        if paths:
            git.run(*AS_MARKED, "update-index", option, "-z", "--stdin", env=env, stdin=encode(paths))


def differing(there: Git, clean: Git, excluded_paths: Sequence[str]) -> tuple[str, ...]:
    """Return at most `MOST` ignored files and directories of `there` that `clean` lacks or has otherwise.

    Where there are none, return such untracked ones.
    """
    for which in (("--ignored", "--exclude-standard"), ("--exclude-standard",)):
        paths = (path for path in _others(there, *which) if not covers(excluded_paths, path.rstrip("/")))
        named = (path for path in paths if CACHES.isdisjoint(Path(path).parts))
        found = tuple(islice((each for each in named if _differs(there.top / each, clean.top / each)), MOST))
        if found:
            return found
    return ()


def kept_otherwise(there: Git, clean: Git) -> tuple[str, ...]:
    """Return at most `MOST` files that git keeps, and that have other bytes in `there` than in `clean`.

    What is not in both (a sparse checkout), or is a directory (a submodule), says nothing.
    """
    paths = (
        (path, there.top / path, clean.top / path) for path in decode(there.run("ls-files", "-z").stdout)
    )
    both = (
        (path, one, other) for path, one, other in paths if os.path.lexists(one) and os.path.lexists(other)
    )
    return tuple(
        islice((path for path, one, other in both if not one.is_dir() and not _is_same(one, other)), MOST)
    )


def _others(git: Git, *which: str) -> list[str]:
    """Return untracked files; a directory of only such files once, with a slash."""
    return sorted(decode(git.run("ls-files", "--others", "--directory", *which, "-z").stdout))


def _differs(there: Path, clean: Path) -> bool:
    if there.is_symlink() or not there.is_dir():
        return not _is_same(there, clean)
    if not clean.is_dir():
        return True
    return not all(
        _is_same(path, clean / path.relative_to(there)) for path in islice(_files(there), LOOKED_AT)
    )


def _files(directory: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(directory):
        names[:] = [name for name in names if name not in CACHES]
        yield from (Path(folder, name) for name in files)


def _is_same(one: Path, other: Path) -> bool:
    try:
        if one.is_symlink() or other.is_symlink():
            return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
        return filecmp.cmp(one, other, shallow=False)
    except OSError:
        return False


RULES = ".gitignore"
# What the tools of a project make that has this file.
PYTHON = ("__pycache__", ".venv")
USUAL = {
    "package.json": ("node_modules",),
    "pyproject.toml": PYTHON,
    "setup.py": PYTHON,
    "requirements.txt": PYTHON,
    calls.CRATE: (calls.BUILT,),
    "build.gradle": (".gradle",),
    "build.gradle.kts": (".gradle",),
}
FILES = (".env", ".DS_Store")


def newly_ignored(git: Git, rules_then: str, rules_now: str) -> list[str]:
    """Return the files that are ignored now and would not be under the rules of the tree `rules_then`.

    `rules_now`: the tree of the work tree as git sees it today. What ignores itself (a cache with rules of
    its own inside) counts as ignored, whenever it was made: nobody can tell.
    """
    changed = {path for path in trees.difference(git, rules_then, rules_now) if _is_rules(path)}
    if not changed:
        return []
    files = list(_ignored_files(git))
    if not files:
        return []
    with trees.scratch_directory(git) as place:
        _lay_out(git, place, rules_then, [path for path in files if _is_rules(path) and path not in changed])
        hidden_then = _check_ignored(git, place, files)
    return [path for path in files if path not in hidden_then]


def caches_above(git: Git, paths: Iterable[str]) -> list[str]:
    """Return the caches that `paths` lie in, or are, as far as no rule takes them in with a `!`."""
    found = set()
    for path in paths:
        parts = path.split("/")
        called = [n for n, part in enumerate(parts, 1) if part in calls.NAMES or part == calls.BUILT]
        found |= {"/".join(parts[:n]) for n in called}
    names = [f"{path}/" if (git.top / path).is_dir() else path for path in sorted(found)]
    return [path.rstrip("/") for path in sorted(_check_ignored(git, git.top, names))] if names else []


def offered_rules(git: Git) -> list[str]:
    """Return the lines that the rules for ignoring lack here, for caches and for `.env`.

    Only what stands at the top of the work tree, or what the tools of such a project make there.
    """
    here = {entry.name for entry in git.top.iterdir()}
    usual = {name for kind in here for name in USUAL.get(kind, ())}
    names = usual.union(here.intersection(calls.NAMES), here.intersection(FILES))
    wanted = [name if name in FILES else f"{name}/" for name in sorted(names)]
    asked = ("check-ignore", "--no-index", "-z", "--stdin")
    # Not by way of `git`, for which caches are ignored already.
    answer = call(asked, git.top, env=git.place(), stdin=encode(wanted)).stdout if wanted else b""
    ignored = set(decode(answer))
    return [line for line in wanted if line not in ignored and not git.is_tracked(Path(line))]


def only_rules(git: Git, tree: str) -> dict[str, trees.Entry]:
    """Return those entries of `tree` that are rules."""
    return rules_in(trees.entries(git, tree))


def rules_in(files: Mapping[str, trees.Entry]) -> dict[str, trees.Entry]:
    """Return those of `files` that are rules."""
    return {path: entry for path, entry in files.items() if _is_rules(path)}


def _is_rules(path: str) -> bool:
    return path.rpartition("/")[2] == RULES


def _ignored_files(git: Git) -> Iterable[str]:
    listing = git.run("ls-files", "--others", "--ignored", "--exclude-standard", "-z").stdout
    return (path for path in decode(listing) if not path.endswith("/"))


def _lay_out(git: Git, place: Path, rules_then: str, present: Collection[str]) -> None:
    """Write the rules of then into `place`, and beside them those that stand in ignored directories."""
    for path, (mode, oid) in only_rules(git, rules_then).items():
        if mode != trees.SYMLINK:
            _write_rules(place / path, git.run("cat-file", "blob", oid).stdout)
    for path in present:
        if (git.top / path).is_file() and not (git.top / path).is_symlink():
            _write_rules(place / path, (git.top / path).read_bytes())


def _write_rules(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _check_ignored(git: Git, place: Path, files: list[str]) -> set[str]:
    args = (f"--work-tree={place}", "check-ignore", "--no-index", "-z", "--stdin")
    answer = git.run(*args, stdin=encode(files), check=False)
    if answer.returncode not in (0, 1):
        raise GitError(args, answer.returncode, answer.stderr)
    return set(decode(answer.stdout))

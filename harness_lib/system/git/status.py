"""Compare a work tree with HEAD or with another one, and find what git ignores, and what is under way.

Files on disk count even if the index marks them (assume-unchanged, skip-worktree): a mark would hide them
from every capture, and so from the commit, the rescue and the rollback. Files that a sparse checkout leaves
out are not deleted.
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

from harness_lib.errors import EnvSetupError
from harness_lib.system.git import calls, trees, worktrees
from harness_lib.system.git.calls import call, covers, decode, encode, failure
from harness_lib.system.git.repository import Git
from harness_lib.text import Strings

_SKIPPED = "S"
_UNMERGED = "M"
# In a sparse checkout git removes some marks by itself when it reads the index.
AS_MARKED = ("-c", "core.sparseCheckout=false")
# How many differences between two work trees are named, and how many files of a directory compared.
MOST = 20
LOOKED_AT = 10_000
# No check fails without these; installed packages are not among them.
CACHES = calls.NAMES - {"node_modules", ".venv", "venv"}


class Changes(NamedTuple):
    """What differs from HEAD: tracked files, and untracked ones (a nested repository ends in `/`)."""

    tracked: Strings = ()
    untracked: Strings = ()


def changes(git: Git, excluded_paths: Sequence[str] = ()) -> Changes:
    """Return what differs from HEAD, without `excluded_paths` (files, or directories with all below them)."""
    # To find changes in a submodule git starts another git in it, whose settings may run programs.
    ignored = "dirty" if worktrees.is_agents(git) else "untracked"
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


def ignored(git: Git) -> Strings:
    """Return the untracked paths that git ignores; a directory counts as one if all of it is ignored."""
    asked = ("--others", "--ignored", "--exclude-standard", "--directory", "-z")
    return tuple(path.rstrip("/") for path in decode(git.run("ls-files", *asked).stdout))


def work_trees_inside(git: Git) -> list[str]:
    """Return the linked work trees of the repository that are inside this one, as paths from its top."""
    places = (Path(os.path.realpath(top)) for _, top in sorted(git.linked()))
    inside = (place for place in places if git.top in place.parents)
    # Git keeps its record of one that was deleted by hand; what stands there now is no work tree.
    return [str(place.relative_to(git.top)) for place in inside if (place / ".git").is_file()]


def _status(record: str) -> tuple[str, str]:
    """Return ("tracked" or "untracked", path) of one record of `status --porcelain=v2 -z`."""
    if record.startswith("? "):
        return "untracked", record[2:]
    fields = {"1": 8, "u": 10}.get(record[:1])
    return ("tracked", record.split(" ", fields)[fields]) if fields else ("", "")


@contextmanager
def looked_at(git: Git) -> Iterator[Mapping[str, str]]:
    """Yield the environment for a git that ignores the marks; an empty one if there are none."""
    if not _marked(git):
        yield {}
        return
    with trees.private_index(git, copy=True) as env:
        unmark(git, env)
        yield env


def unmark(git: Git, env: Mapping[str, str], left_out: Collection[str] | None = None) -> Mapping[str, str]:
    """Remove the marks from the index in `env` (default: the real one), and return them for `put_marks`.

    Files that are left out of the work tree keep theirs. `left_out` are those that were left out before; then
    any other missing file was deleted. None: unknown, so a missing file with a skip mark counts as left out.
    """
    marks = _marked(git)
    if marks:
        assumed, skipped = _kinds(marks)
        gone = skipped if left_out is None else [path for path in skipped if path in left_out]
        shown = [path for path in skipped if _stands(git, path) or path not in gone]
        _update(git, env, ("--no-assume-unchanged", assumed), ("--no-skip-worktree", shown))
    return marks


def left_out(git: Git) -> Strings:
    """Return the tracked files with a skip mark that do not exist."""
    return tuple(
        path for path, tag in _marked(git).items() if tag.upper() == _SKIPPED and not _stands(git, path)
    )


def marked(git: Git) -> Strings:
    """Return the existing files with a mark."""
    return tuple(path for path in _marked(git) if _stands(git, path))


def put_marks(git: Git, marks: Mapping[str, str]) -> None:
    """Restore `marks` of files that the index still has."""
    tracked = set(decode(git.run(*AS_MARKED, "ls-files", "-z").stdout))
    assumed, skipped = _kinds({path: tag for path, tag in marks.items() if path in tracked})
    _update(git, {}, ("--assume-unchanged", assumed), ("--skip-worktree", skipped))


def unmerged(git: Git) -> Strings:
    """Return the unmerged files: in a conflict that is not marked as resolved."""
    return tuple(path for path, tag in _tagged(git, git.index_state()).items() if tag == _UNMERGED)


def _marked(git: Git) -> dict[str, str]:
    """Return path → tag of `git ls-files -v` of the files with a mark."""
    tagged = _tagged(git, git.index_state())
    return {path: tag for path, tag in tagged.items() if tag.islower() or tag == _SKIPPED}


@lru_cache(maxsize=32)
def _tagged(git: Git, _index: bytes) -> Mapping[str, str]:
    """Return path → tag of `git ls-files -v` of the files of this index that are not just tracked."""
    records = decode(git.run(*AS_MARKED, "ls-files", "-v", "-z").stdout)
    return {path: tag for tag, _, path in (r.partition(" ") for r in records) if tag != "H"}


def _stands(git: Git, path: str) -> bool:
    return os.path.lexists(git.top / path)


def _kinds(marks: Mapping[str, str]) -> tuple[list[str], list[str]]:
    assumed = [path for path, tag in marks.items() if tag.islower()]
    return assumed, [path for path, tag in marks.items() if tag.upper() == _SKIPPED]


def _update(git: Git, env: Mapping[str, str], *changes: tuple[str, list[str]]) -> None:
    # One at a time: the command takes only one of these options for a file.
    for option, paths in changes:
        if paths:
            git.run(*AS_MARKED, "update-index", option, "-z", "--stdin", env=env, stdin=encode(paths))


def differing(there: Git, clean: Git, excluded_paths: Sequence[str]) -> Strings:
    """Return at most `MOST` ignored files and directories of `there` that are missing or differ in `clean`.

    If there are none, return such untracked ones.
    """
    for which in (("--ignored", "--exclude-standard"), ("--exclude-standard",)):
        # A directory of only such files is listed once, with a slash.
        listing = there.run("ls-files", "--others", "--directory", *which, "-z").stdout
        paths = (path for path in sorted(decode(listing)) if not covers(excluded_paths, path.rstrip("/")))
        named = (path for path in paths if CACHES.isdisjoint(Path(path).parts))
        found = tuple(islice((each for each in named if _differs(there.top / each, clean.top / each)), MOST))
        if found:
            return found
    return ()


def kept_otherwise(there: Git, clean: Git) -> Strings:
    """Return at most `MOST` tracked files that have other bytes in `there` than in `clean`.

    Files that are not in both (a sparse checkout) and directories (submodules) are skipped.
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
# What the tools of a project with this file make.
PYTHON = ("__pycache__", ".venv")
USUAL = {
    "package.json": ("node_modules",),
    "pyproject.toml": PYTHON,
    "setup.py": PYTHON,
    "requirements.txt": PYTHON,
    calls.CRATE: (calls.BUILT,),
    "pom.xml": ("target",),
    "build.gradle": (".gradle", "build"),
    "build.gradle.kts": (".gradle", "build"),
    "CMakeLists.txt": ("build",),
}
FILES = (".env", ".DS_Store")


def newly_ignored(git: Git, rules_then: str, rules_now: str) -> list[str]:
    """Return the files that are ignored now and were not by the rules of the tree `rules_then`.

    `rules_now` is the tree of the present work tree. A cache with its own rules inside counts as ignored,
    whenever it was made.
    """
    changed = {path for path in trees.changed(git, rules_then, rules_now) if _is_rules(path)}
    if not changed:
        return []
    listing = git.run("ls-files", "--others", "--ignored", "--exclude-standard", "-z").stdout
    files = [path for path in decode(listing) if not path.endswith("/")]
    if not files:
        return []
    with trees.scratch_directory(git) as place:
        # The old rules, and the present rules in ignored directories.
        for path, (mode, oid) in rules_in(trees.entries(git, rules_then)).items():
            if mode != trees.SYMLINK:
                _write_rules(place / path, git.run("cat-file", "blob", oid).stdout)
        for path in files:
            present = git.top / path
            if _is_rules(path) and path not in changed and present.is_file() and not present.is_symlink():
                _write_rules(place / path, present.read_bytes())
        hidden_then = among_ignored(git, files, place)
    return [path for path in files if path not in hidden_then]


def caches_above(git: Git, paths: Iterable[str]) -> list[str]:
    """Return the caches that are, or have, one of `paths`, unless a rule includes them with a `!`."""
    found = set()
    for path in paths:
        parts = path.split("/")
        called = [n for n, part in enumerate(parts, 1) if part in calls.NAMES or part == calls.BUILT]
        found |= {"/".join(parts[:n]) for n in called}
    names = [f"{path}/" if (git.top / path).is_dir() else path for path in sorted(found)]
    return [path.rstrip("/") for path in sorted(among_ignored(git, names))]


def offered_rules(git: Git) -> list[str]:
    """Return the lines that the ignore rules lack here, for caches and for `.env`.

    Only for files at the top of the work tree, or what the tools of such a project make there.
    """
    here = {entry.name for entry in git.top.iterdir()}
    usual = {name for kind in here for name in USUAL.get(kind, ())}
    names = usual.union(here.intersection(calls.NAMES), here.intersection(FILES))
    wanted = [name if name in FILES else f"{name}/" for name in sorted(names)]
    asked = ("check-ignore", "--no-index", "-z", "--stdin")
    # Not by `git.run`, which ignores caches already.
    place = {"GIT_DIR": str(git.git_dir), "GIT_WORK_TREE": str(git.top)}
    answer = call(asked, git.top, env=place, stdin=encode(wanted)).stdout if wanted else b""
    ignored = set(decode(answer))
    return [line for line in wanted if line not in ignored and not git.is_tracked(Path(line))]


def rules_in(files: Mapping[str, trees.Entry]) -> dict[str, trees.Entry]:
    """Return those of `files` that are rules."""
    return {path: entry for path, entry in files.items() if _is_rules(path)}


def _is_rules(path: str) -> bool:
    return path.rpartition("/")[2] == RULES


def _write_rules(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def among_ignored(git: Git, paths: Sequence[str], place: Path | None = None) -> set[str]:
    """Return those of `paths` that the rules of the work tree ignore, or the rules in `place`."""
    if not paths:
        return set()
    args = (*([f"--work-tree={place}"] if place else []), "check-ignore", "--no-index", "-z", "--stdin")
    answer = git.run(*args, stdin=encode(paths), check=False)
    if answer.returncode not in (0, 1):
        raise failure(args, answer.returncode, answer.stderr)
    return set(decode(answer.stdout))


def under_way(git: Git) -> str | None:
    """Return the unfinished operation: merge, rebase, am, cherry-pick, revert or bisect; None without."""
    # A rebase that stopped may also have a CHERRY_PICK_HEAD, so it is looked for first.
    if (git.git_dir / "rebase-apply" / "applying").exists():
        return "am"
    signs = {
        "rebase-merge": "rebase",
        "rebase-apply": "rebase",
        "MERGE_HEAD": "merge",
        "CHERRY_PICK_HEAD": "cherry-pick",
        "REVERT_HEAD": "revert",
        "sequencer": "cherry-pick",
        "BISECT_LOG": "bisect",
    }
    return next((name for sign, name in signs.items() if (git.git_dir / sign).exists()), None)


def merge_heads(git: Git) -> Strings:
    """Return the commits that an unfinished merge brings in."""
    return tuple(os.fsdecode(calls.read(git.git_dir / "MERGE_HEAD")).split())


def quit_under_way(git: Git) -> str | None:
    """Quit the unfinished merge, rebase, am, cherry-pick, revert or bisect, and return its name.

    HEAD, index and files stay; an autostash goes to the stash list.
    A bisect stays as long as files are in conflict.
    """
    first = name = under_way(git)
    # A rebase may have stopped inside a merge: each needs a --quit.
    while name is not None:
        is_bisect = name == "bisect"
        git.run(*(("bisect", "reset", "HEAD") if is_bisect else (name, "--quit")), check=not is_bisect)
        last, name = name, under_way(git)
        if name == last and is_bisect:
            break
        if name == last:
            raise EnvSetupError(f"git cannot end the {name} under way in {git.top}", "end it by hand")
    return first


def to_end(operation: str) -> str:
    """Return the command that finishes an operation, named as by `under_way`."""
    return f"git {operation} {'reset' if operation == 'bisect' else '--continue'}"

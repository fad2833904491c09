"""Record the files that judge an attempt at its claim, and find those that it has changed since."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from harness_lib.checks import check_of
from harness_lib.core.context import Context
from harness_lib.rules import judge_changes, judge_parts, judges
from harness_lib.system.git import raw_files, snapshot, trees
from harness_lib.system.git.repository import Git
from harness_lib.task import Task

CONFIG, NAMED, TESTS = "config", "named", "tests"


# `git prune` takes what no commit has yet.
GONE = "files that git no longer has as they were (git prune)"


class Touched(NamedTuple):
    """What an attempt has changed of its judge: `forbidden` where the task protects it, `others` else."""

    forbidden: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def is_judged_by_files(task: Task) -> bool:
    """Return whether anything but the command itself can be told to judge `task`."""
    return _judges(task).are_files


def tree(ctx: Context, task: Task) -> str | None:
    """Return the tree of the files that judge `task` now; None if none can be told."""
    judging = _judges(task)
    if not judging.are_files:
        return None
    cwd = task.validation.cwd or ""
    named = [_joined(cwd, name) for name in judging.named]
    files = [name for name in named if (ctx.git.top / name).is_file()]
    folders = [name for name in named if (ctx.git.top / name).is_dir()]
    config = [*(_joined(cwd, glob) for glob in judging.config), *judging.config]
    # A runner that is told which files to run runs no others.
    tests = [
        _joined(folder, glob) for folder in folders or ([] if files else [cwd]) for glob in judging.tests
    ]
    excluded = tuple(glob[1:] for glob in task.validation.protect if glob.startswith("!"))
    entries: dict[str, trees.Entry] = {}
    for kind, globs in ((CONFIG, config), (NAMED, files), (TESTS, tests)):
        paths = snapshot.matching(ctx.git, globs, excluded, ctx.keep_out)
        entries |= {f"{kind}/{path}": entry for path, entry in _parts(ctx, paths).items()}
    return trees.write(ctx.git, entries)


def touched(ctx: Context, task: Task) -> Touched:
    """Return what the attempt at `task` has changed of the files that judge it."""
    then = task.gate.judges if task.gate else None
    current = tree(ctx, task) if then else None
    if then is None or current is None or then == current:
        return Touched()
    if not ctx.git.object_exists(then):
        return Touched(forbidden=(GONE,)) if _forbids(task) else Touched(others=(GONE,))
    forbidden: dict[str, None] = {}
    others: dict[str, None] = {}
    changed = trees.changed(ctx.git, then, current)
    standing = _parts(ctx, [place.partition("/")[2] for place, (_, new) in changed.items() if new is None])
    for place, (old, _) in changed.items():
        kind, _, path = place.partition("/")
        # What a check goes by may be another file now, because the one that it names is there at last.
        if old is not None and standing.get(path) == old:
            continue
        # A new file that the check names, or a new test, is what many tasks are about.
        if old is None and kind != CONFIG:
            continue
        strict = kind != TESTS and _forbids(task)
        (forbidden if strict else others)[path] = None
    return Touched(tuple(forbidden), tuple(path for path in others if path not in forbidden))


def is_same_part(git: Git, path: str, change: judge_changes.Change) -> bool:
    """Return whether what judges of the file at `path` is the same after `change`."""
    old, new = change
    if old is None or new is None or not judge_parts.is_partial(path):
        return False
    before, after = (git.run("cat-file", "blob", entry[1]).stdout for entry in (old, new))
    return judge_parts.part(path, before) == judge_parts.part(path, after)


def _forbids(task: Task) -> bool:
    """Return whether the task names files that no attempt may change: then nor may what its check names."""
    return any(glob not in judges.WORDS and not glob.startswith("!") for glob in task.validation.protect)


def _judges(task: Task) -> judges.Judges:
    return judges.of("\n".join(text or "" for text, _ in check_of(task).commands()))


def _joined(folder: str, name: str) -> str:
    return f"{folder.strip('/')}/{name}" if folder.strip("/") else name


def _parts(ctx: Context, paths: list[str]) -> dict[str, trees.Entry]:
    """Return the entries of `paths`, each with only what of it judges."""
    whole = [path for path in paths if not judge_parts.is_partial(path)]
    entries = raw_files.hashed(ctx.git, whole, store=True)
    for path in paths:
        content = None if path in entries else _read(ctx.git.top / path)
        part = None if content is None else judge_parts.part(path, content)
        if part is not None:
            entries[path] = ("100644", raw_files.stored(ctx.git, part))
    return entries


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None

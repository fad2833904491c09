"""Find the state root of a project, name its files, and make its private directory.

Standard library only. Source: docs/design.md, "On disk".
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping
from pathlib import Path

from harness_lib import typed
from harness_lib.errors import EnvSetupError, RefusedError
from harness_lib.system import fs
from harness_lib.system.place import find_root, own_files

# Harness's own files in the root, which never enter a commit. A `*` matches anything, as in a glob: temporary
# files have a random part. The init script and the settings are not among them: a project may commit both.
HARNESS_NAMES = (
    find_root.STATE_FILE,
    find_root.BACKUP_FILE,
    f"{find_root.STATE_FILE}.tmp",
    f"{find_root.STATE_FILE}.broken-*",
    f"{find_root.STATE_FILE}.old-*",
    f"{find_root.STATE_FILE}.edited-*",
    f"{find_root.STATE_FILE}.set-back-*",
    f".{find_root.STATE_FILE}.*.tmp",
    f".{find_root.BACKUP_FILE}.*.tmp",
    find_root.LOG_FILE,
    find_root.ENABLE_FLAG,
    find_root.PRIVATE_DIR,
)
# What git's ignore files say of what is private in `.harness/`.
PRIVATE_PATTERNS = tuple(f"{find_root.PRIVATE_DIR}/{pattern}" for pattern in own_files.PATTERNS)


class Root:
    """A state root: `path` is the resolved directory, the other attributes are files that may be in it.

    Not a dataclass: importing `dataclasses` alone takes a hook longer than the rest of this file.
    """

    __slots__ = (
        *("backup", "enable_flag", "generations", "init_script", "link", "lock_file", "log", "logs", "path"),
        *("private", "runs", "state", "summary"),
    )

    def __init__(self, path: Path) -> None:
        self.path = path
        # The list, and the list before the last change, as the protocol keeps it.
        self.state = path / find_root.STATE_FILE
        self.backup = path / find_root.BACKUP_FILE
        # The append-only log.
        self.log = path / find_root.LOG_FILE
        # The enable flag; without it every hook does nothing.
        self.enable_flag = path / find_root.ENABLE_FLAG
        # Set-up and health check of the environment; optional.
        self.init_script = path / find_root.INIT_SCRIPT
        # All below may be deleted at any time.
        self.private = path / find_root.PRIVATE_DIR
        # The file that a state change locks; never removed.
        self.lock_file = self.private / "state.lock"
        # The status cache, which hooks read instead of the list.
        self.summary = self.private / "summary.json"
        # The last generations of the list, each a file.
        self.generations = self.private / find_root.GENERATIONS
        # A record of each run.
        self.runs = self.private / "runs"
        # Where the list is, if it is in a database.
        self.link = self.private / find_root.LINK
        # The output of checks.
        self.logs = self.private / "logs"

    def private_paths(self) -> tuple[Path, ...]:
        """Return the paths of what is private in `.harness/`, whether they exist or not."""
        paths: list[Path] = []
        for pattern in own_files.PATTERNS:
            name = pattern.rstrip("/")
            paths += sorted(fs.matching(self.private, name)) if "*" in name else [self.private / name]
        return tuple(paths)

    def standing_names(self) -> tuple[str, ...]:
        """Return `HARNESS_NAMES` with the present matches in the place of each name with a `*`."""
        names: list[str] = []
        present = sorted(path.name for path in fs.matching(self.path, "*"))
        for name in HARNESS_NAMES:
            names += fnmatch.filter(present, name) if "*" in name else [name]
        return tuple(names)


def find(env: Mapping[str, str], cwd: Path) -> Root | None:
    """Return what `find_root.search` finds.

    Raises EnvSetupError if HARNESS_STATE_ROOT is set but is not a directory.
    """
    root = find_root.search(env, os.fspath(cwd))
    if root is None:
        return None
    pinned = env.get("HARNESS_STATE_ROOT")
    if not pinned or os.path.isdir(root):  # noqa: PTH112 (Path.is_dir() raises where we may not look)
        return Root(Path(root))
    message = f"HARNESS_STATE_ROOT is not a directory: {pinned}"
    raise EnvSetupError(message, "Make that directory, or unset HARNESS_STATE_ROOT.")


def elsewhere(cwd: Path) -> list[Path]:
    """Return the other directories of this work tree whose lists its git directory knows."""
    return [Path(directory) for directory in find_root.elsewhere(os.fspath(cwd))]


def of_another_user(cwd: Path) -> Path | None:
    """Return the first directory from `cwd` upwards with a list of another user; None if there is none."""
    directory = find_root.of_another_user(os.fspath(cwd))
    return Path(directory) if directory else None


def has_list(directory: Path) -> bool:
    """Return whether `directory` has a list."""
    return (directory / find_root.STATE_FILE).exists()


def require_direct(root: Root) -> None:
    """Raise RefusedError if one of harness's files in `root` is a symbolic link: a clone could bring it."""
    path = find_root.linked(os.fspath(root.path), thorough=True)
    if path is not None:
        raise refused(path)


def refused(path: str | Path) -> RefusedError:
    """Return the error about the symbolic link `path` in the place of a file of harness."""
    return RefusedError(
        f"{path} is a symbolic link; harness opens none of its files through one, as a clone could bring it.",
        f"See where it leads: ls -l {typed.word(path)}. Nothing was changed. "
        "If it is yours, put the file itself in its place; if not, take the link away.",
    )


def remember(root: Path, common_git_dir: Path) -> None:
    """Note `root` in `common_git_dir`, so that every linked worktree of the repository finds it."""
    note = common_git_dir / find_root.NOTE
    fs.make_directory(note.parent)
    fs.keep_private(note.parent)
    fs.write(note, os.fsencode(os.path.realpath(root)) + b"\n")


def make_private(directory: Path) -> None:
    """Make `directory`, a `.harness/`, with a .gitignore for its files; one of a user stays as it is."""

    def hide() -> None:
        # A clone or an earlier harness may have made the directory.
        fs.keep_private(directory)
        ignore = own_files.ignore_file(os.fspath(directory))
        if ignore is not None:
            fs.write(Path(ignore), own_files.RULES, durable=False)

    fs.within(directory, hide)

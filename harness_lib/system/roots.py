"""Where the state of a project lives, and what the files there are called.

Standard library only: hooks ask this on every event, nearly always to hear "nowhere".
Source: design section 3.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness_lib.errors import EnvSetupError

STATE_FILE = "harness-tasks.json"
BACKUP_FILE = "harness-tasks.json.bak"
LOG_FILE = "harness-progress.txt"
MARKER = ".harness-active"
INIT_SCRIPT = "harness-init.sh"
PRIVATE_DIR = ".harness"

_GENERATIONS = "generations"
_NOTE = Path("harness", "root")
_POINTER_LIMIT = 8192


class Root:
    """A state root: `path` is the resolved directory, the other properties are what may lie in it.

    A value, written out: importing `dataclasses` alone costs a hook more than all the rest of this file.
    """

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __eq__(self, other: object) -> bool:
        return self._path == other._path if isinstance(other, Root) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._path)

    def __repr__(self) -> str:
        return f"Root({self._path!r})"

    @property
    def path(self) -> Path:
        """The directory."""
        return self._path

    @property
    def state(self) -> Path:
        """The list itself."""
        return self.path / STATE_FILE

    @property
    def backup(self) -> Path:
        """The generation before, as the seed keeps it."""
        return self.path / BACKUP_FILE

    @property
    def log(self) -> Path:
        """The append-only log."""
        return self.path / LOG_FILE

    @property
    def marker(self) -> Path:
        """Without it every hook is a silent no-op."""
        return self.path / MARKER

    @property
    def init_script(self) -> Path:
        """Set-up and health check of the environment; optional."""
        return self.path / INIT_SCRIPT

    @property
    def private(self) -> Path:
        """Ours; may be deleted at any time."""
        return self.path / PRIVATE_DIR

    @property
    def lock_file(self) -> Path:
        """What a state change locks; never removed."""
        return self.private / "state.lock"

    @property
    def summary(self) -> Path:
        """What hooks read instead of the list."""
        return self.private / "summary.json"

    @property
    def generations(self) -> Path:
        """The last generations of the list, each a file."""
        return self.private / _GENERATIONS

    @property
    def logs(self) -> Path:
        """The output of checks."""
        return self.private / "logs"

    def harness_names(self) -> tuple[str, ...]:
        """Return the names in the root that are ours and never enter a commit.

        A `*` in a name stands for anything, as in a glob: temporary files carry a random part.
        The init script is not among them: a project may well commit it.
        """
        return (
            STATE_FILE,
            BACKUP_FILE,
            f"{STATE_FILE}.tmp",
            f"{STATE_FILE}.broken-*",
            f".{STATE_FILE}.*.tmp",
            f".{BACKUP_FILE}.*.tmp",
            LOG_FILE,
            MARKER,
            PRIVATE_DIR,
        )

    def standing_names(self) -> tuple[str, ...]:
        """Return `harness_names` with what now lies in the root in the place of each that has a `*`."""
        found: list[str] = []
        for name in self.harness_names():
            found += [path.name for path in sorted(self.path.glob(name))] if "*" in name else [name]
        return tuple(found)


def find(env: Mapping[str, str], cwd: Path) -> Root | None:
    """Return the state root that `env` and `cwd` stand in, or None.

    In this order: HARNESS_STATE_ROOT; upwards from CLAUDE_PROJECT_DIR; upwards from `cwd`; the main worktree
    that `remember` noted in the common git directory of `cwd`. Another user's is passed over.
    Raises EnvSetupError if HARNESS_STATE_ROOT is set but is no directory.
    """
    pinned = env.get("HARNESS_STATE_ROOT")
    if pinned:
        return _pinned(pinned)
    project = env.get("CLAUDE_PROJECT_DIR")
    starts = [Path(project)] if project and _is_directory(Path(project)) else []
    for start in (*starts, cwd):
        for directory in _upwards(start):
            if _holds_state(directory) and _is_ours(directory):
                return Root(directory)
    for start in (*starts, cwd):
        root = _remembered(start)
        if root is not None:
            return root
    return None


def remember(root: Path, common_git_dir: Path) -> None:
    """Note `root` in `common_git_dir`, so that every linked worktree of the repository finds it."""
    from harness_lib.system import atomic  # noqa: PLC0415 (only `find` is asked on every event)

    note = common_git_dir / _NOTE
    atomic.make_directory(note.parent)
    atomic.write(note, os.fsencode(os.path.realpath(root)) + b"\n")


def _pinned(text: str) -> Root:
    path = Path(os.path.realpath(os.path.expanduser(text)))  # noqa: PTH111 (Path raises where there is no home)
    if _is_directory(path):
        return Root(path)
    message = f"HARNESS_STATE_ROOT is no directory: {text}"
    raise EnvSetupError(message, "Make that directory, or unset HARNESS_STATE_ROOT.")


def _upwards(start: Path) -> Iterator[Path]:
    resolved = Path(os.path.realpath(start))
    yield resolved
    yield from resolved.parents


def _holds_state(directory: Path) -> bool:
    """Tell whether the list, or (it was lost) a generation to restore it from, lies in `directory`."""
    if _is_file(directory / STATE_FILE):
        return True
    try:
        with os.scandir(directory / PRIVATE_DIR / _GENERATIONS) as entries:
            return any(entry.is_file(follow_symlinks=False) for entry in entries)
    except OSError:
        # Missing is the usual case; what we may not look into is not ours.
        return False


# Path.is_file() and Path.is_dir() raise where we may not look; on the way up that is "not here".
def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113


def _is_directory(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112


def _is_ours(directory: Path) -> bool:
    """Somebody else's list would run somebody else's commands (`/tmp/harness-tasks.json`)."""
    user = os.geteuid()
    try:
        return user in (0, directory.stat().st_uid)
    except OSError:
        return False


def _remembered(start: Path) -> Root | None:
    git_dir = _linked_git_dir(start)
    common = None if git_dir is None else _pointer(git_dir / "commondir", "", git_dir)
    noted = None if common is None else _pointer(common / _NOTE, "", common)
    if common is None or noted is None or not _is_ours(common):
        return None
    return Root(noted) if _holds_state(noted) and _is_ours(noted) else None


def _linked_git_dir(start: Path) -> Path | None:
    """Return what the nearest `.git` above `start` points to, if it is a file (git never checks one out)."""
    for directory in _upwards(start):
        dot_git = directory / ".git"
        if _is_directory(dot_git):
            return None
        if _is_file(dot_git):
            return _pointer(dot_git, "gitdir: ", directory)
    return None


def _pointer(file: Path, prefix: str, base: Path) -> Path | None:
    """Return the path in the one line of `file`, relative to `base`, resolved; None if there is none."""
    try:
        with file.open("rb") as stream:
            text = os.fsdecode(stream.read(_POINTER_LIMIT)).rstrip("\r\n")
    except OSError:
        return None
    if not text.startswith(prefix) or not text[len(prefix) :] or "\0" in text:
        return None
    return Path(os.path.realpath(base / text[len(prefix) :]))

"""The search for a state root, in plain strings.

Hooks ask this on every event of every agent on the machine, nearly always to hear "nowhere": importing
`pathlib` alone would take longer than all of the answer. Everybody else asks `roots`.
Source: docs/design.md, "On disk".
"""

from __future__ import annotations

import os

from harness_lib.system.place import data_home

TYPE_CHECKING = False  # importing it from `typing` costs as much as `pathlib`
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

STATE_FILE = "harness-tasks.json"
BACKUP_FILE = "harness-tasks.json.bak"
LOG_FILE = "harness-progress.txt"
INIT_SCRIPT = "harness-init.sh"
MARKER = ".harness-active"
PRIVATE_DIR = ".harness"
GENERATIONS = "generations"
NOTE = "harness/root"
SPARES = "harness/lists"
# In the directory of our own files: the work trees of runs, each at `<project>/<run>/<worker>`.
WORKERS = "worktrees"

_POINTER_LIMIT = 8192
_WORKER_DEPTH = 3
_NAME_LIMIT = 200


def switched_off(env: Mapping[str, str]) -> bool:
    """Return whether HARNESS_DISABLED silences every hook: anything but nothing and 0 does."""
    return env.get("HARNESS_DISABLED", "") not in ("", "0")


def pinned(env: Mapping[str, str]) -> str | None:
    """Return what HARNESS_STATE_ROOT names, resolved; None if it is unset. It need not be there."""
    text = env.get("HARNESS_STATE_ROOT")
    return os.path.realpath(os.path.expanduser(text)) if text else None


def search(env: Mapping[str, str], cwd: str) -> str | None:
    """Return the state root that `env` and `cwd` stand in, HARNESS_STATE_ROOT aside, or None.

    In this order: upwards from CLAUDE_PROJECT_DIR; upwards from `cwd`; the main worktree that
    `roots.remember` noted in the common git directory of either; where a list was that only the git directory
    still has a copy of. Another user's is passed over.
    """
    project = env.get("CLAUDE_PROJECT_DIR")
    starts = (project, cwd) if project and os.path.isdir(project) else (cwd,)
    data = data_home.directory(env)
    root = _above(starts) or next(filter(None, (_remembered(start, data) for start in starts)), None)
    return root or _spared(starts)


def linked(root: str, *, thorough: bool = False) -> str | None:
    """Return the path of the first of our files in `root` that is a symbolic link, None if none is.

    A clone could bring it, and what is written through it would be written into somebody's own file.
    `thorough`: two levels of the private directory instead of one.
    """
    private = os.path.join(root, PRIVATE_DIR)
    for name in (STATE_FILE, BACKUP_FILE, LOG_FILE, MARKER, INIT_SCRIPT, PRIVATE_DIR):
        path = os.path.join(root, name)
        if os.path.islink(path):
            return path
    return _linked_in(private, 1 if thorough else 0)


def _linked_in(directory: str, deeper: int) -> str | None:
    try:
        with os.scandir(directory) as entries:
            listed = list(entries)
    except OSError:
        # Not there, or not for us to look into: nothing is opened in it either.
        return None
    for entry in listed:
        if entry.is_symlink():
            return entry.path
    inside = (entry.path for entry in listed if deeper and entry.is_dir(follow_symlinks=False))
    return next(filter(None, (_linked_in(path, deeper - 1) for path in inside)), None)


def _above(starts: Iterable[str]) -> str | None:
    for start in starts:
        for directory in upwards(start):
            if _holds_state(directory) and _is_ours(directory):
                return directory
    return None


def _spared(starts: Iterable[str]) -> str | None:
    """Return the directory whose list was lost, and of which the git directory above it has a copy."""
    for start in starts:
        inside = []
        for directory in upwards(start):
            inside.append(directory)
            git_directory = git_dir(directory)
            if git_directory is None:
                continue
            if os.path.isdir(os.path.join(git_directory, SPARES)):
                copies = ((each, _spare_in(git_directory, directory, each)) for each in inside)
                root = next((each for each, copy in copies if copy and os.path.isfile(copy)), None)
                if root is not None and _is_ours(root):
                    return root
            break
    return None


def spare(root: str) -> str | None:
    """Return where the copy of the list in the directory `root`, resolved, is; None outside of a repository.

    `git clean -fdx` takes everything else that there is of a list. In a linked work tree the place is in its
    own part of the common git directory.
    """
    for directory in upwards(root):
        git_directory = git_dir(directory)
        if git_directory is not None:
            return _spare_in(git_directory, directory, root)
    return None


def elsewhere(start: str) -> list[str]:
    """Return the directories of this work tree, `start` aside, that the git directory has a list's copy of.

    Nothing is searched for in the work tree; a directory that is gone by now is left out.
    """
    resolved = os.path.realpath(start)
    for directory in upwards(resolved):
        git_directory = git_dir(directory)
        if git_directory is None:
            continue
        try:
            copies = sorted(os.listdir(os.path.join(git_directory, SPARES)))
        except OSError:
            return []
        ways = (name[: -len(".json")] for name in copies if name.endswith(".json"))
        roots = (os.path.normpath(os.path.join(directory, _way_of(way))) for way in ways)
        return [root for root in roots if root != resolved and os.path.isdir(root) and _is_ours(root)]
    return []


def _way_of(name: str) -> str:
    return os.curdir if name == "%" else name.replace("%2F", os.sep).replace("%25", "%")


def _spare_in(git_directory: str, top: str, root: str) -> str | None:
    way = os.path.relpath(root, top)
    name = "%" if way == os.curdir else way.replace("%", "%25").replace(os.sep, "%2F")
    return (
        os.path.join(git_directory, SPARES, f"{name}.json") if len(os.fsencode(name)) <= _NAME_LIMIT else None
    )


def upwards(start: str) -> Iterator[str]:
    """Yield `start`, resolved, and the directories above it."""
    directory, above = "", os.path.realpath(start)
    while directory != above:
        directory, above = above, os.path.dirname(above)
        yield directory


def _holds_state(directory: str) -> bool:
    """Tell whether the list, or (it was lost) a generation to restore it from, lies in `directory`."""
    state = os.path.join(directory, STATE_FILE)
    if os.path.isfile(state) or os.path.islink(state):
        # A link is refused by whoever would open it, and never passed over.
        return True
    try:
        with os.scandir(os.path.join(directory, PRIVATE_DIR, GENERATIONS)) as entries:
            return any(entry.is_file(follow_symlinks=False) for entry in entries)
    except OSError:
        # Missing is the usual case; what we may not look into is not ours.
        return False


def _is_ours(directory: str) -> bool:
    """Somebody else's list would run somebody else's commands (`/tmp/harness-tasks.json`)."""
    user = os.geteuid()
    try:
        return user in (0, os.stat(directory).st_uid)
    except OSError:
        return False


def worker(data: str, start: str) -> str | None:
    """Return the work tree of a run's worker that `start` is in; `data` is the directory of our own files."""
    home, place = os.path.join(os.path.realpath(data), WORKERS, ""), os.path.realpath(start)
    parts = place[len(home) :].split(os.sep) if place.startswith(home) else []
    return os.path.join(home, *parts[:_WORKER_DEPTH]) if len(parts) >= _WORKER_DEPTH else None


def _remembered(start: str, data: str) -> str | None:
    top = worker(data, start)
    # The `.git` of a worker is a repository of its own; ours is named beside it.
    git_dir = _linked_git_dir(start) if top is None else pointed(f"{top}.git", "gitdir: ", top)
    common = None if git_dir is None else pointed(os.path.join(git_dir, "commondir"), "", git_dir)
    noted = None if common is None else pointed(os.path.join(common, NOTE), "", common)
    if common is None or noted is None or not _is_ours(common):
        return None
    return noted if _holds_state(noted) and _is_ours(noted) else None


def _linked_git_dir(start: str) -> str | None:
    """Return what the nearest `.git` above `start` points to, if it is a file (git never checks one out)."""
    for directory in upwards(start):
        git_directory = git_dir(directory)
        if git_directory is not None:
            return None if git_directory == os.path.join(directory, ".git") else git_directory
    return None


def git_dir(directory: str) -> str | None:
    """Return the git directory of the work tree whose top is `directory`; None if there is none."""
    dot_git = os.path.join(directory, ".git")
    if os.path.isdir(dot_git):
        return dot_git
    return pointed(dot_git, "gitdir: ", directory) if os.path.isfile(dot_git) else None


def pointed(file: str, prefix: str, base: str) -> str | None:
    """Return the path in the one line of `file`, relative to `base`, resolved; None if there is none."""
    try:
        with open(file, "rb") as stream:
            text = os.fsdecode(stream.read(_POINTER_LIMIT)).rstrip("\r\n")
    except OSError:
        return None
    if not text.startswith(prefix) or not text[len(prefix) :] or "\0" in text:
        return None
    return os.path.realpath(os.path.join(base, text[len(prefix) :]))

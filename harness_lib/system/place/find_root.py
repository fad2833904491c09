"""Search for the state root of a project, in plain strings.

Hooks search on every event of every agent on the machine, and nearly always find nothing: importing `pathlib`
alone would take longer than the whole search. All others use `roots`.
Source: docs/design.md, "On disk".
"""

from __future__ import annotations

import os

from harness_lib.system.place import data_home

TYPE_CHECKING = False  # importing it from `typing` costs as much as `pathlib`
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STATE_FILE = "harness-tasks.json"
BACKUP_FILE = "harness-tasks.json.bak"
LOG_FILE = "harness-progress.txt"
INIT_SCRIPT = "harness-init.sh"
SETTINGS = "harness.toml"
ENABLE_FLAG = ".harness-active"
PRIVATE_DIR = ".harness"
GENERATIONS = "generations"
LINK = "store.json"
NOTE = "harness/root"
# What a git directory has; a broken one perhaps only one of them.
GIT_HAS = ("HEAD", "objects")
# In a git directory: the backup copies of lists.
COPIES = "harness/lists"
# In the data directory: the work trees of runs, each at `<project>/<run>/<worker>`.
WORKERS = "worktrees"

_WORKER_DEPTH = 3
_NAME_LIMIT = 200


def switched_off(env: Mapping[str, str]) -> bool:
    """Return whether HARNESS_DISABLED switches all hooks off: any value but "" and 0 does."""
    return env.get("HARNESS_DISABLED", "") not in ("", "0")


def search(env: Mapping[str, str], cwd: str) -> str | None:
    """Return the state root for `env` and `cwd`; None if there is none.

    HARNESS_STATE_ROOT is taken as it is: it need not exist. Without it, in this order: upwards from
    CLAUDE_PROJECT_DIR; upwards from `cwd`; the main worktree that `roots.remember` noted in the common git
    directory of either; a directory whose list is lost, if the git directory has a backup copy of it. A root
    of another user is skipped. A list that git has checked out in a linked work tree, or in that of a worker,
    comes last: two workers would take one task, each from its copy.
    """
    if pinned := env.get("HARNESS_STATE_ROOT"):
        return os.path.realpath(os.path.expanduser(pinned))
    project = env.get("CLAUDE_PROJECT_DIR")
    starts = (project, cwd) if project and os.path.isdir(project) else (cwd,)
    data = data_home.directory(env)
    above = (directory for start in starts for directory in upwards(start))
    root = next((each for each in above if _holds_state(each) and is_ours(each)), None)
    if root is not None:
        if any(os.path.lexists(os.path.join(root, name)) for name in (PRIVATE_DIR, ENABLE_FLAG)):
            return root
        # Nobody has worked with the list there: git may have put it there.
        return _original(root, data) or root
    repositories = {start: _repository(start) for start in starts}
    noted = (_remembered(start, found, data) for start, found in repositories.items())
    return next(filter(None, noted), None) or _with_backup_copy(repositories)


def linked(root: str, *, thorough: bool = False) -> str | None:
    """Return the path of the first file of harness in `root` that is a symbolic link, None if none is.

    A clone could bring the link, and a write through it would change a file elsewhere.
    `thorough`: two levels of the private directory instead of one.
    """
    private = os.path.join(root, PRIVATE_DIR)
    for name in (STATE_FILE, BACKUP_FILE, LOG_FILE, ENABLE_FLAG, INIT_SCRIPT, SETTINGS, PRIVATE_DIR):
        path = os.path.join(root, name)
        if os.path.islink(path):
            return path
    return _linked_in(private, 1 if thorough else 0)


def _linked_in(directory: str, deeper: int) -> str | None:
    try:
        with os.scandir(directory) as entries:
            listed = list(entries)
    except OSError:
        # Missing, or not readable: then nothing is opened in it either.
        return None
    for entry in listed:
        if entry.is_symlink():
            return entry.path
    inside = (entry.path for entry in listed if deeper and entry.is_dir(follow_symlinks=False))
    return next(filter(None, (_linked_in(path, deeper - 1) for path in inside)), None)


def _with_backup_copy(repositories: Mapping[str, tuple[str, str] | None]) -> str | None:
    """Return the directory whose list was lost, and of which the git directory above it has a backup copy."""
    for start, found in repositories.items():
        if not found or not os.path.isdir(os.path.join(found[1], COPIES)):
            continue
        for directory in upwards(start):
            copy = _copy_in(found[1], found[0], directory)
            if copy and os.path.isfile(copy):
                if is_ours(directory):
                    return directory
                break
            if directory == found[0]:
                break
    return None


def _repository(start: str) -> tuple[str, str] | None:
    """Return the top and the git directory of the work tree that `start` is in."""
    for directory in upwards(start):
        git_directory = git_dir(directory)
        if git_directory is not None:
            return directory, git_directory
    return None


def backup_copy(root: str) -> str | None:
    """Return the path of the backup copy of the list in `root` (resolved); None outside of a repository.

    `git clean -fdx` removes everything else that is known of a list. In a linked work tree the path is in its
    own part of the common git directory.
    """
    found = _repository(root)
    return _copy_in(found[1], found[0], root) if found else None


def elsewhere(start: str) -> list[str]:
    """Return the other directories of this work tree whose lists have a backup copy in the git directory.

    The work tree is not searched; directories that no longer exist are left out.
    """
    resolved = os.path.realpath(start)
    found = _repository(resolved)
    if not found:
        return []
    try:
        copies = sorted(os.listdir(os.path.join(found[1], COPIES)))
    except OSError:
        return []
    ways = (name[: -len(".json")] for name in copies if name.endswith(".json"))
    # As `_copy_in` spells them.
    there = (os.curdir if way == "%" else way.replace("%2F", os.sep).replace("%25", "%") for way in ways)
    roots = (os.path.normpath(os.path.join(found[0], way)) for way in there)
    return [root for root in roots if root != resolved and os.path.isdir(root) and is_ours(root)]


def of_another_user(start: str) -> str | None:
    """Return the first directory from `start` upwards with a list that `search` passes over."""
    return next((each for each in upwards(start) if _holds_state(each) and not is_ours(each)), None)


def _copy_in(git_directory: str, top: str, root: str) -> str | None:
    way = os.path.relpath(root, top)
    name = "%" if way == os.curdir else way.replace("%", "%25").replace(os.sep, "%2F")
    is_too_long = len(os.fsencode(name)) > _NAME_LIMIT
    return None if is_too_long else os.path.join(git_directory, COPIES, f"{name}.json")


def upwards(start: str) -> Iterator[str]:
    """Yield `start`, resolved, and the directories above it."""
    directory, above = "", os.path.realpath(start)
    while directory != above:
        directory, above = above, os.path.dirname(above)
        yield directory


def _holds_state(directory: str) -> bool:
    """Return whether `directory` has the list or, if it was lost, what says where to restore it from."""
    state = os.path.join(directory, STATE_FILE)
    if os.path.isfile(state) or os.path.islink(state):
        # A link is not skipped: whoever opens the list refuses it.
        return True
    private = os.path.join(directory, PRIVATE_DIR)
    try:
        with os.scandir(os.path.join(private, GENERATIONS)) as entries:
            is_kept = any(entry.is_file(follow_symlinks=False) for entry in entries)
    except OSError:
        # Usually missing; a directory that cannot be read belongs to another user.
        is_kept = False
    return is_kept or os.path.isfile(os.path.join(private, LINK))


def _original(root: str, data: str) -> str | None:
    """Return the root at the place of `root`, a copy, in the work tree with the root that was noted.

    That one need not be the same: a repository may have a list in each of several directories.
    """
    here = _repository(root)
    noted = _remembered(root, here, data)
    there = _repository(noted) if noted else None
    if not here or not there:
        return None
    original = os.path.normpath(os.path.join(there[0], os.path.relpath(root, here[0])))
    return original if _holds_state(original) and is_ours(original) else None


def is_ours(directory: str) -> bool:
    """Return whether this user owns it: the list of another one (in `/tmp`) would run foreign commands."""
    user = os.geteuid()
    try:
        return user in (0, os.stat(directory).st_uid)
    except OSError:
        return False


def worker(data: str, start: str) -> str | None:
    """Return the work tree of a worker of a run that `start` is in; `data` is the data directory."""
    home, place = os.path.join(os.path.realpath(data), WORKERS, ""), os.path.realpath(start)
    parts = place[len(home) :].split(os.sep) if place.startswith(home) else []
    return os.path.join(home, *parts[:_WORKER_DEPTH]) if len(parts) >= _WORKER_DEPTH else None


def _remembered(start: str, found: tuple[str, str] | None, data: str) -> str | None:
    """Return the root that is noted for `start`, which is in the repository `found`."""
    top = worker(data, start)
    # The `.git` of a worker is a repository of its own; the project's is named beside it.
    if top is not None:
        git_directory = pointed(f"{top}.git", "gitdir: ", top)
    else:
        # Only of a linked work tree: there `.git` is a file, which git never checks out.
        is_linked = found is not None and found[1] != os.path.join(found[0], ".git")
        git_directory = found[1] if found and is_linked else None
    common = git_directory and pointed(os.path.join(git_directory, "commondir"), "", git_directory)
    noted = common and pointed(os.path.join(common, NOTE), "", common)
    if not common or not noted or not is_ours(common):
        return None
    return noted if _holds_state(noted) and is_ours(noted) else None


def git_dir(directory: str) -> str | None:
    """Return the git directory of the work tree whose top is `directory`; None if there is none.

    Git passes over a `.git` that is empty, or has files of harness only.
    """
    dot_git = os.path.join(directory, ".git")
    if os.path.isdir(dot_git):
        return dot_git if any(os.path.lexists(os.path.join(dot_git, name)) for name in GIT_HAS) else None
    return pointed(dot_git, "gitdir: ", directory) if os.path.isfile(dot_git) else None


def pointed(file: str, prefix: str, base: str) -> str | None:
    """Return the path in the only line of `file`, resolved against `base`; None if there is none."""
    try:
        with open(file, "rb") as stream:
            text = os.fsdecode(stream.read(8192)).rstrip("\r\n")
    except OSError:
        return None
    if not text.startswith(prefix) or not text[len(prefix) :] or "\0" in text:
        return None
    return os.path.realpath(os.path.join(base, text[len(prefix) :]))

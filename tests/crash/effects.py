"""The effects that a verb has on the world, each with a name that is the same in every run.

An effect is an audit event, or a write to a file. Its name says what and where, never when: temporary names
and object ids are left out, and a point is a name and how often that name has come up.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness_lib.system import mkdir_lock

# How a process ends at a point:
#   before  the effect has not begun
#   half    the first half of a write has come through
#   killed  its whole process group is killed as soon as git has been started
#   locked  git was killed with its lock files made and nothing else done
#   ended   git did its work and was killed before it could remove the last lock
How = Literal["before", "half", "killed", "locked", "ended"]

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS = {"os.remove": 1, "os.mkdir": 1, "os.rmdir": 1, "os.chmod": 1, "os.truncate": 1, "os.rename": 2}
_PATHS |= {"os.link": 2, "os.symlink": 2}
_RANDOM = (
    (re.compile(r"\b[0-9a-f]{40}\b"), "OID"),
    (re.compile(r"\.[0-9a-f]{16}\b"), ".RANDOM"),
    (re.compile(r"harness-scratch-[0-9a-f]{16}"), "harness-scratch-RANDOM"),
)
_REAL_LOCKS = {"update-ref", "symbolic-ref", "read-tree", "update-index", "checkout"}
# How the names of directories begin that no survivor reads, or only by way of others.
_UNREAD = ("harness-scratch-", "objects")


@dataclass(frozen=True)
class Place:
    """The directories that a test watches: the project, and the legacy lock directory beside it."""

    project: Path

    @property
    def git_dir(self) -> Path:
        return self.project / ".git"

    @property
    def seed_lock(self) -> Path:
        return mkdir_lock.path_for(self.project)

    def name(self, path: object) -> str | None:
        """Return a name for `path` that does not change from run to run; None if nobody watches there."""
        text = text_of(path)
        # A check may be over before there is anything to note of it: that file is not made in every run.
        if text is None or ".running" in text:
            return None
        if text.startswith(str(self.seed_lock)):
            text = "LOCKDIR" + text.removeprefix(str(self.seed_lock))
        elif text == str(self.project) or text.startswith(f"{self.project}/"):
            text = os.path.relpath(text, self.project)
        elif text.startswith("/"):
            return None
        return _stable(text)

    def fingerprint(self) -> str:
        """Return a digest of everything a survivor could find: names, sizes, times.

        Without what no survivor reads: who holds the state lock, unfinished scratch directories, and git's
        objects, which are found only through the refs and files that are in it.
        """
        digest = hashlib.sha256()
        for top in (self.project, *sorted(self.seed_lock.parent.glob(f"{self.seed_lock.name}*"))):
            for directory, names, files in os.walk(top):
                names[:] = sorted(name for name in names if not name.startswith(_UNREAD))
                for name in sorted((*names, *files)):
                    if name not in {"state.lock", "harness-git.lock"} and ".running" not in name:
                        digest.update(_looks(directory, name))
        return digest.hexdigest()


def _looks(directory: str, name: str) -> bytes:
    if name.endswith(".tmp"):
        # It is known by its name and never read.
        return os.fsencode(f"{directory}/.tmp")
    path = f"{directory}/{name}"
    facts = os.lstat(path)
    # A directory's time changes with the names in it, which are looked at themselves.
    times = () if stat.S_ISDIR(facts.st_mode) else (facts.st_size, facts.st_mtime_ns)
    return repr((path, facts.st_mode, facts.st_ino, *times)).encode(errors="surrogateescape")


def text_of(path: object) -> str | None:
    """Return the path that an argument of an audit event names, by itself or by its descriptor."""
    if isinstance(path, int):
        try:
            return str(Path(f"/proc/self/fd/{path}").readlink())
        except OSError:
            # No /proc here: such an effect has a neighbour that names its path.
            return None
    return os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else None


def _stable(text: str) -> str:
    for pattern, word in _RANDOM:
        text = pattern.sub(word, text)
    return text


def of_event(place: Place, event: str, args: Sequence[object]) -> str | None:
    """Return the name of the effect that `event` announces; None if it changes nothing we watch."""
    if event == "open":
        flags = args[2]
        if isinstance(args[0], int) or not isinstance(flags, int) or not flags & _WRITING:
            return None
        return _named(place, event, args[:1])
    if event in _PATHS:
        return _named(place, event, args[: _PATHS[event]])
    if event == "subprocess.Popen":
        argv = args[1]
        assert isinstance(argv, (list, tuple))
        return "run " + _stable(" ".join(_without_settings([str(word) for word in argv])).replace("\n", " "))
    if event == "fcntl.flock":
        return _named(place, event, args[:1])
    return None


def of_write(place: Place, descriptor: int) -> str | None:
    """Return the name of a write to `descriptor`; None if it is no file we watch."""
    text = text_of(descriptor)
    return _named(place, "write", [descriptor]) if text is not None and text.startswith("/") else None


def _named(place: Place, event: str, paths: Sequence[object]) -> str | None:
    names = [place.name(path) for path in paths]
    known = [name for name in names if name is not None]
    return f"{event} {' -> '.join(known)}" if known else None


def _without_settings(argv: list[str]) -> list[str]:
    words = argv[:1]
    rest = iter(argv[1:])
    for word in rest:
        if word == "-c":
            next(rest)
        elif word != "--no-pager":
            words.append(word.replace("\0", " "))
    return [re.sub(r"/\S*harness-scratch-[0-9a-f]{16}", "SCRATCH", word) for word in words]


def git_locks(argv: Sequence[str], env: object, tree: str, common_dir: Path) -> list[Path]:
    """Return the lock files that this git command holds while it works in the work tree `tree`."""
    words = _without_settings(list(argv))
    private = isinstance(env, dict) and "GIT_INDEX_FILE" in env
    if len(words) < 2 or words[0] != "git" or words[1] not in _REAL_LOCKS or private:
        return []
    git_dir = _git_dir(tree)
    if words[1] in {"read-tree", "update-index"}:
        return [git_dir / "index.lock"]
    head = git_dir / "HEAD.lock"
    if words[1] == "checkout":
        return [git_dir / "index.lock", head]
    if words[1] == "symbolic-ref":
        return [head] if len(words) > 3 and "--quiet" not in words else []
    names = [word for word in words[2:] if word.startswith("refs/")]
    deleting = [common_dir / "packed-refs.lock"] if "-d" in words else []
    if names:
        return [common_dir / f"{names[0]}.lock", *deleting]
    branch = (git_dir / "HEAD").read_text().strip().partition("ref: ")[2]
    return [*([common_dir / f"{branch}.lock"] if branch else []), head]


def _git_dir(tree: str) -> Path:
    """Return the directory with index and HEAD of the work tree, which may be a linked one."""
    top = Path(os.fsdecode(tree))
    # That of a worker of a run is named beside its work tree.
    inside = link if (link := top.with_name(f"{top.name}.git")).is_file() else top / ".git"
    return inside if inside.is_dir() else Path(inside.read_text().removeprefix("gitdir: ").strip())

"""Run git: in a clean environment, with errors that say what failed, and with caches ignored.

Names are read with `-z`, and paths are `str` in the encoding of the file system with surrogateescape, so that
any name on a disk survives.
Hooks, fsmonitor, signing and background maintenance are off for these calls: a user's hook must not run
inside a rollback, and a detached `git gc` must not outlive harness while it holds its lock. Source:
docs/design.md, "On the user's machine".
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from harness_lib import sha256
from harness_lib.errors import AwayError, EnvSetupError, HeldError
from harness_lib.system import fs
from harness_lib.text import Strings, cut

SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.safecrlf=false",
    "color.ui=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "i18n.commitEncoding=UTF-8",
    "log.showSignature=false",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "advice.addEmbeddedRepo=false",
)
PREFIX = ("git", "--no-pager", *(word for setting in SETTINGS for word in ("-c", setting)))
# Kept: identity, network access and the choice of configuration. Every other GIT_* variable names the
# repository or options of a calling git; in a hook or an alias those are of another repository.
_KEPT = """
    GIT_AUTHOR_ GIT_COMMITTER_ GIT_ASKPASS GIT_SSH GIT_SSL_ GIT_HTTP_ GIT_LFS_ GIT_EXEC_PATH
    GIT_CONFIG_NOSYSTEM GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_COUNT GIT_CONFIG_KEY_ GIT_CONFIG_VALUE_
    GIT_DISCOVERY_ACROSS_FILESYSTEM
"""
KEPT = tuple(_KEPT.split())
# Gemini CLI hides the user's settings from what its agent types: who commits, what is ignored, the filters.
_HIDDEN = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
FORCED = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
STDERR_TAIL = 2000
SHOWN = 100
# By whom memory is short, by whom the machine is shut down, and what a full disk does to a mapped file.
_KILLED = (signal.SIGKILL, signal.SIGTERM, signal.SIGBUS)
# Where git leaves out the cause, it is a write that failed: what may not be written cannot be opened.
_NO_ROOM = (
    rb"(?i)no space left on device|disk quota exceeded|cannot allocate memory|out of diskspace"
    rb"|unable to write file|failed to write new configuration|couldn't write '|couldn't close '"
)

# The lock on a repository that this thread holds: each git process that it starts inherits it.
_held: dict[tuple[str, int, int], int] = {}
OLDEST = (2, 25)
# `git merge-tree --write-tree`, with which the work of several is merged.
OLDEST_FOR_RUNS = (2, 38)
FOR_RUNS = "`harness run` and `harness demo` need git {}.{}".format(*OLDEST_FOR_RUNS)
CURE_FOR_RUNS = "Install a newer git; every other verb works with {}.{} or newer.".format(*OLDEST)


class GitError(EnvSetupError):
    """A git command failed that never fails in a sound repository."""

    cure = "See that git works here (`git status`), then try again."

    def __init__(self, argv: Sequence[str], returncode: int, stderr: bytes) -> None:
        self.argv = tuple(argv)
        self.returncode = returncode
        self.stderr = os.fsdecode(stderr).strip()[-STDERR_TAIL:]
        # Without the settings that harness gives it: they say nothing about a failure.
        words = list(argv)
        while words[:1] == ["-c"]:
            del words[:2]
        shown = cut(" ".join(words), SHOWN)
        super().__init__(
            f"`git {shown}` failed with {returncode}: {self.stderr or 'no message'}",
            self.cure,
        )


class GitFailedByMachineError(GitError, AwayError):
    """A git command was killed, or found no room on the disk or in memory; the repository may be sound."""

    cure = "See that there is room on the disk and in memory (`df`, `free`), then try again."


class GitLockedError(GitError, HeldError):
    """A git command found the lock file of another one."""

    kind = HeldError.kind
    exit_code = HeldError.exit_code


def failure(argv: Sequence[str], returncode: int, stderr: bytes) -> GitError:
    """Return the error for a failed command."""
    if -returncode in _KILLED or re.search(_NO_ROOM, stderr):
        return GitFailedByMachineError(argv, returncode, stderr)
    locked = b".lock" in stderr and b"File exists" in stderr
    return (GitLockedError if locked else GitError)(argv, returncode, stderr)


def clean_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` for a git child: locations stripped, identity kept, no prompt, English messages."""
    kept = {key: value for key, value in env.items() if not key.startswith("GIT_") or key.startswith(KEPT)}
    if env.get("GEMINI_CLI") and env.get("GIT_CONFIG_GLOBAL") == os.devnull:
        for name in _HIDDEN:
            kept.pop(name, None)
    return {**kept, **FORCED}


def covers(names: Collection[str], path: str) -> bool:
    """Return whether `names` has `path` or a directory above it; pass a set if there are many."""
    at = path
    while at and at not in names:
        at = at.rpartition("/")[0]
    return bool(at)


def decode(output: bytes) -> list[str]:
    """Return the entries of NUL-separated `output`."""
    return [os.fsdecode(part) for part in output.split(b"\0") if part]


def encode(entries: Sequence[str]) -> bytes:
    """Return `entries` NUL-terminated, for a command that reads them with -z."""
    return b"".join(os.fsencode(entry) + b"\0" for entry in entries)


def call(
    args: Sequence[str],
    cwd: Path,
    *,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    fds: tuple[int, ...] = (),
) -> subprocess.CompletedProcess[bytes]:
    """Run git in `cwd`, with `env` added to the clean one; `fds` stay open in it.

    A failing git is a result; raises EnvSetupError only if it cannot be started.
    """
    try:
        return subprocess.run(
            [*PREFIX, *args],
            cwd=cwd,
            env={**clean_env(os.environ), **(env or {})},
            input=b"" if stdin is None else stdin,
            capture_output=True,
            check=False,
            pass_fds=fds,
        )
    except FileNotFoundError:
        if not cwd.is_dir():
            raise EnvSetupError(f"{cwd} no longer exists", "change to a directory that exists") from None
        raise EnvSetupError("git is not installed, or not on PATH", "install git 2.25 or newer") from None
    except NotADirectoryError:
        raise EnvSetupError(f"{cwd} is not a directory", "name a directory") from None


def reported(directory: Path) -> str:
    """Return the output of `git --version`, run in `directory`. Raises EnvSetupError without git."""
    return os.fsdecode(call(("--version",), directory).stdout).strip()


def is_older(named: str, least: tuple[int, int]) -> bool:
    """Return whether the git with the version text `named` is older than `least`."""
    match = re.search(r"(\d+)\.(\d+)", named)
    return not match or (int(match[1]), int(match[2])) < least


def require_for_runs(directory: Path) -> None:
    """Raise EnvSetupError if git is missing or cannot do what an unattended run needs."""
    named = reported(directory)
    if is_older(named, OLDEST_FOR_RUNS):
        raise EnvSetupError(f"{named} is too old: {FOR_RUNS}.", CURE_FOR_RUNS)


def descriptors(git_dir: Path) -> tuple[int, ...]:
    """Return the descriptor that git children of this thread must inherit, if it holds `git_dir`."""
    fd = _held.get((str(git_dir), os.getpid(), threading.get_ident()))
    return () if fd is None else (fd,)


@contextmanager
def inherited(git_dir: Path, fd: int) -> Iterator[None]:
    """Let the git children of this thread inherit `fd` inside the block."""
    # With the pid: a fork inherits this table, but not the lock.
    key = str(git_dir), os.getpid(), threading.get_ident()
    _held[key] = fd
    try:
        yield
    finally:
        _held.pop(key)


# With a slash only a directory: a program may be called `venv`, and `.venv` is often a link.
PATTERNS = (
    "__pycache__/",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".tox/",
    "node_modules",
    ".venv",
    "venv/",
    ".gradle/",
    ".DS_Store",
)
NAMES = frozenset(pattern.rstrip("/") for pattern in PATTERNS)
CRATE, BUILT = "Cargo.toml", "target"

# The commands that ask what is ignored. `checkout` is not one of them: it overwrites ignored files.
_ASKING = frozenset(("add", "status", "clean", "check-ignore", "--exclude-standard"))
# Settings that may name the user's file of rules.
_MAY_NAME = rb"(?i)exclude|include|worktreeconfig"
_SPECIAL, _ESCAPED = r"([\\*?\[ ])", r"\\\1"


def cache_settings(args: Sequence[str], top: Path, git_dir: Path, common_dir: Path) -> Strings:
    """Return the options that let git ignore caches in the work tree `top`; none if `args` do not ask."""
    if _ASKING.isdisjoint(args):
        return ()
    try:
        content = os.fsencode("\n".join((*PATTERNS, *_built(top, git_dir), "")))
        content += read(_users_file(top, common_dir))
        # Named by its content, as another work tree may write another one at the same time.
        path = common_dir / "harness" / f"ignored-{sha256.digest(content)[:16]}"
        if not path.exists():
            fs.write(path, content, durable=False, make=True)
    except OSError:
        # A submodule that is only readable; if the project's own repository is, the command fails anyway.
        return ()
    return ("-c", f"core.excludesFile={path}")


def _built(top: Path, git_dir: Path) -> list[str]:
    """Return the patterns of the directories in which Cargo builds: each beside a `Cargo.toml`.

    One that git does not track yet is found at the top and one directory below it.
    """
    tracked: list[str] = []
    # Asking git takes a process. In an index a name may lack the prefix of the one before.
    if CRATE[1:6].encode() in read(git_dir / "index"):
        place = {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(top)}
        paths = decode(call(("ls-files", "-z", "--", f":(top,glob)**/{CRATE}"), top, env=place).stdout)
        tracked = [path.removesuffix(CRATE) for path in paths]
    with os.scandir(top) as entries:
        below = [f"{entry.name}/" for entry in entries if entry.is_dir(follow_symlinks=False)]
    new = (crate for crate in ("", *below) if Path(top, crate, CRATE).exists())
    crates = {crate for crate in (*tracked, *new) if not crate or crate.isprintable()}
    return [f"/{re.sub(_SPECIAL, _ESCAPED, crate)}{BUILT}/" for crate in sorted(crates)]


def _users_file(top: Path, common_dir: Path) -> Path:
    """Return the path of the user's rules for all repositories, whether it exists or not."""
    env = clean_env(os.environ)
    home, shared = Path("~").expanduser(), env.get("XDG_CONFIG_HOME")
    own = (Path(shared) if shared else home / ".config") / "git"
    everywhere = env.get("GIT_CONFIG_GLOBAL")
    files = [Path(everywhere)] if everywhere else [own / "config", home / ".gitconfig"]
    files += [common_dir / "config", Path(env.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"))]
    configured = b"\n".join(map(read, files))
    told = tuple(sorted(each for each in env.items() if each[0].startswith("GIT_CONFIG_")))
    # Asking git would take a process in every verb.
    may_name = re.search(_MAY_NAME, configured + repr(told).encode())
    asked = _asked_file(top, common_dir, configured, told) if may_name else ""
    return top / asked if asked else own / "ignore"


@lru_cache(maxsize=8)
def _asked_file(top: Path, common_dir: Path, _configured: bytes, _told: object) -> str:
    question = ("config", "--type=path", "--get", "core.excludesFile")
    return os.fsdecode(call(question, top, env={"GIT_DIR": str(common_dir)}).stdout).rstrip("\n")


def read(path: Path) -> bytes:
    """Return the content of a file of git; nothing if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""

"""One git process: with an environment of our own making, and an error that says what failed.

Real git only, `-z` wherever names come out, and `str` paths in the file system's encoding with
surrogateescape, so that any name a disk can hold survives the trip.
Hooks, fsmonitor, signing and background maintenance are off for our calls: a person's hook must not run
inside a rollback, and a detached `git gc` must not outlive us while it holds our lock.
Source: docs/design.md, "On the user's machine".
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from harness_lib import sha256
from harness_lib.errors import EnvSetupError, HeldError
from harness_lib.system.files import atomic

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
# Who commits, how to reach a network, and which configuration a person chose. Every other GIT_* variable
# says where the repository is or how a calling git wants its own children to behave; in a hook or an alias
# those name another repository than the one asked about.
KEPT = (
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "GIT_ASKPASS",
    "GIT_SSH",
    "GIT_SSL_",
    "GIT_HTTP_",
    "GIT_LFS_",
    "GIT_EXEC_PATH",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_",
    "GIT_CONFIG_VALUE_",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
)
FORCED = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
STDERR_TAIL = 2000

_Key = tuple[str, int, int]
# Which lock on a repository this thread holds, so that each git that it starts inherits it.
_held: dict[_Key, int] = {}
OLDEST = (2, 25)
# `git merge-tree --write-tree`, with which the work of several is merged.
OLDEST_FOR_RUNS = (2, 38)
FOR_RUNS = "`harness run` and `harness demo` need git {}.{}".format(*OLDEST_FOR_RUNS)
CURE_FOR_RUNS = "Install a newer git; every other verb works with this one."


class GitError(EnvSetupError):
    """A git command failed that never fails on a healthy repository."""

    def __init__(self, argv: Sequence[str], returncode: int, stderr: bytes) -> None:
        self.argv = tuple(argv)
        self.returncode = returncode
        self.stderr = os.fsdecode(stderr).strip()[-STDERR_TAIL:]
        words = " ".join(argv)[:200]
        super().__init__(
            f"`git {words}` failed with {returncode}: {self.stderr or 'no message'}",
            "see that git works here (`git status`), then try again",
        )


class GitLockedError(GitError, HeldError):
    """A git command found a lock file of another one."""

    kind = HeldError.kind
    exit_code = HeldError.exit_code


def failure(argv: Sequence[str], returncode: int, stderr: bytes) -> GitError:
    """Return the error of a command that has failed."""
    locked = b".lock" in stderr and b"File exists" in stderr
    return (GitLockedError if locked else GitError)(argv, returncode, stderr)


def clean_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` for a git child: locations stripped, identity kept, no prompt, English messages."""
    kept = {key: value for key, value in env.items() if not key.startswith("GIT_") or key.startswith(KEPT)}
    return {**kept, **FORCED}


def covers(names: Collection[str], path: str) -> bool:
    """Say whether `names` has `path` or a directory above it; hand over a set where there are many."""
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

    A failing git is an answer; EnvSetupError only where it cannot even be started.
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
            raise EnvSetupError(f"{cwd} is not there any more", "change to a directory that exists") from None
        raise EnvSetupError("git is not installed, or not on PATH", "install git 2.25 or newer") from None
    except NotADirectoryError:
        raise EnvSetupError(f"{cwd} is not a directory", "name a directory") from None


def reported(directory: Path) -> str:
    """Return what git calls itself in `directory`. Raises EnvSetupError where there is none."""
    return os.fsdecode(call(("--version",), directory).stdout).strip()


def is_older(named: str, least: tuple[int, int]) -> bool:
    """Return whether the git that calls itself `named` came before the version `least`."""
    match = re.search(r"(\d+)\.(\d+)", named)
    return match is None or (int(match[1]), int(match[2])) < least


def require_for_runs(directory: Path) -> None:
    """Raise EnvSetupError if git is missing or cannot do what an unattended run needs."""
    named = reported(directory)
    if is_older(named, OLDEST_FOR_RUNS):
        raise EnvSetupError(f"{named} is too old: {FOR_RUNS}.", CURE_FOR_RUNS)


def descriptors(git_dir: Path) -> tuple[int, ...]:
    """Return the descriptor that a git child of this thread must inherit, if it holds `git_dir`."""
    fd = _held.get(_key(git_dir))
    return () if fd is None else (fd,)


def inherit(git_dir: Path, fd: int) -> None:
    """Let the git children of this thread inherit `fd` from now on."""
    _held[_key(git_dir)] = fd


def disinherit(git_dir: Path) -> None:
    """Let them inherit nothing any more."""
    _held.pop(_key(git_dir), None)


def _key(git_dir: Path) -> _Key:
    # With the process: a fork inherits this table, but not the right to move anything.
    return str(git_dir), os.getpid(), threading.get_ident()


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
# What in a configuration may say where the person's file is.
_MAY_NAME = re.compile(rb"exclude|include|worktreeconfig", re.IGNORECASE)
_SPECIAL, _ESCAPED = re.compile(r"([\\*?\[ ])"), r"\\\1"


def cache_settings(args: Sequence[str], top: Path, git_dir: Path, common_dir: Path) -> tuple[str, ...]:
    """Return the options that let git ignore caches in the work tree `top`; none if `args` do not ask."""
    if _ASKING.isdisjoint(args):
        return ()
    try:
        content = os.fsencode("\n".join((*PATTERNS, *_built(top, git_dir), "")))
        content += _read(_persons_file(top, common_dir))
        # Named by its content, so that nobody reads what another work tree has just replaced.
        path = common_dir / "harness" / f"ignored-{sha256.digest(content)[:16]}"
        if not path.exists():
            atomic.write(path, content, durable=False, make=True)
    except OSError:
        # Of a submodule that we may only read; where our own repository cannot be written nothing else can.
        return ()
    return ("-c", f"core.excludesFile={path}")


def _built(top: Path, git_dir: Path) -> list[str]:
    """Return the patterns of the directories in which Cargo builds: each beside a `Cargo.toml`.

    One that git does not track yet is found at the top and one directory below it.
    """
    tracked = _tracked_crates(top, git_dir)
    with os.scandir(top) as entries:
        below = [f"{entry.name}/" for entry in entries if entry.is_dir(follow_symlinks=False)]
    new = (crate for crate in ("", *below) if Path(top, crate, CRATE).exists())
    crates = {crate for crate in (*tracked, *new) if not crate or crate.isprintable()}
    return [f"/{_SPECIAL.sub(_ESCAPED, crate)}{BUILT}/" for crate in sorted(crates)]


def _tracked_crates(top: Path, git_dir: Path) -> list[str]:
    # To ask git takes a process; git may leave out of a name what the one before begins with.
    if CRATE[1:6].encode() not in _read(git_dir / "index"):
        return []
    asked = ("ls-files", "-z", "--", f":(top,glob)**/{CRATE}")
    paths = decode(call(asked, top, env={"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(top)}).stdout)
    return [path.removesuffix(CRATE) for path in paths]


def _persons_file(top: Path, common_dir: Path) -> Path:
    """Return the file of rules that the person has for every repository, there or not."""
    home, shared = Path("~").expanduser(), os.environ.get("XDG_CONFIG_HOME")
    own = (Path(shared) if shared else home / ".config") / "git"
    everywhere = os.environ.get("GIT_CONFIG_GLOBAL")
    files = [Path(everywhere)] if everywhere else [own / "config", home / ".gitconfig"]
    files += [common_dir / "config", Path(os.environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"))]
    configured = b"\n".join(map(_read, files))
    told = tuple(sorted(item for item in os.environ.items() if item[0].startswith("GIT_CONFIG_")))
    # To ask git takes a process, in every verb.
    may_name = _MAY_NAME.search(configured + repr(told).encode())
    asked = _asked_file(top, common_dir, configured, told) if may_name else ""
    return top / asked if asked else own / "ignore"


@lru_cache(maxsize=8)
def _asked_file(top: Path, common_dir: Path, _configured: bytes, _told: object) -> str:
    question = ("config", "--type=path", "--get", "core.excludesFile")
    return os.fsdecode(call(question, top, env={"GIT_DIR": str(common_dir)}).stdout).rstrip("\n")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""

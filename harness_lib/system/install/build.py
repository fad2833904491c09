"""Make the private environment: one process at a time, and completely or not at all.

Crash model: the process may be killed at any line, and its pip may continue as an orphan. Then a directory
with a unique name is left that is never read; the next process that makes an environment removes it. Standard
library only. Source: docs/design.md, "On the user's machine".
"""

from __future__ import annotations

import errno
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from harness_lib import typed
from harness_lib.errors import EnvSetupError
from harness_lib.system import flock
from harness_lib.system.install import private_env
from harness_lib.system.place import data_home

_TIMEOUT_SECONDS = 900
_AGAIN_SECONDS = 3600
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
# For an installer that is to fail soon where no registry is in reach.
_ONCE = {"PIP_RETRIES": "0", "PIP_TIMEOUT": "5", "UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "5"}
_PART = "part-"
_LOCK = "lock"
# Messages of pip and uv if no registry can be reached.
_UNREACHED = (
    "from versions: none",
    "not found in the package registry",
    "connect",
    "network",
    "name resolution",
    "timed out",
    "unreachable",
)
# How pip and uv name an error of the system, in any language.
_FULL = re.compile(rf"\b(?:Errno|os error) (?:{errno.ENOSPC}|{errno.EDQUOT})\b")


def try_once(data: Path, env: Path, launcher: str, recipe: str) -> None:
    """Make `env` as `make` does, but ask the registry once only, and not again for an hour if that fails.

    Raises EnvSetupError.
    """
    failed = data / f"unfetched-{env.name}"
    age = time.time() - failed.stat().st_mtime if failed.exists() else math.inf
    if 0 <= age < _AGAIN_SECONDS:
        since = f"{age // 60:.0f} minutes ago"
        raise EnvSetupError(f"It could not be fetched {since}; to try again: rm {typed.word(failed)}")
    try:
        make(data, env, launcher, recipe, more=_ONCE)
    except EnvSetupError:
        with suppress(OSError):
            failed.touch()
        raise
    failed.unlink(missing_ok=True)


def make(data: Path, env: Path, launcher: str, recipe: str, more: Mapping[str, str] = NO_SETTINGS) -> None:
    """Make `env` in `data` by `recipe`, or wait for the process that is making it.

    `more` are settings for the installer, in its environment.
    Raises EnvSetupError: no installer, no registry in reach, or the directory cannot be used.
    """
    try:
        _make_private(data)
        with _alone(data):
            # The previous holder of the lock may have made it.
            if not private_env.is_ready(env, recipe):
                _say("preparing its own Python environment (once) ...")
                # What killed processes left: the lock proves that no living one owns it.
                for part in data.glob(f"{_PART}*"):
                    # An orphaned pip may still write there; that is removed next time.
                    shutil.rmtree(part, ignore_errors=True)
                _build(data, env, launcher, recipe, more)
    except OSError as error:
        message = f"The Python environment of harness cannot be made in {data}: {error}."
        raise EnvSetupError(message, "Free space or allow writing there, or set HARNESS_HOME.") from error


def _say(text: str) -> None:
    sys.stderr.write(f"harness: {text}\n")
    sys.stderr.flush()


def _make_private(data: Path) -> None:
    data.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        data.mkdir(mode=0o700)
    except FileExistsError:
        if problem := data_home.problem(data.lstat()):
            message = f"The data directory {data} {problem}; harness runs no code from there."
            raise EnvSetupError(message, private_env.ELSEWHERE) from None


@contextmanager
def _alone(data: Path) -> Iterator[None]:
    """Hold the lock of `data`; the kernel releases it when this process ends."""
    descriptor = flock.opened(data / _LOCK)
    try:
        if not flock.take_now(descriptor):
            _say("waiting for another process that prepares the Python environment ...")
            flock.take(descriptor)
        yield
    finally:
        os.close(descriptor)


def _build(data: Path, env: Path, launcher: str, recipe: str, more: Mapping[str, str]) -> None:
    part = Path(tempfile.mkdtemp(prefix=_PART, dir=data))
    try:
        _install(part, launcher, recipe, more)
        (part / private_env.READY).write_text(recipe, encoding="utf-8")
        # After a power cut the name must not exist without the content.
        os.sync()
        if env.exists():
            # It is not ready: it was emptied, or its checksum collides.
            env.rename(part / "replaced")
        part.rename(env)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(env / "replaced", ignore_errors=True)


def _install(part: Path, launcher: str, recipe: str, more: Mapping[str, str]) -> None:
    """Install the pinned packages with the first installer that succeeds, else raise EnvSetupError."""
    requirements = part / "requirements.txt"
    requirements.write_text(recipe.partition("\n")[2], encoding="utf-8")
    arguments = [
        "--quiet",
        "--no-deps",
        "--target",
        str(part / private_env.PACKAGES),
        "-r",
        str(requirements),
    ]
    complaint = None
    for installer in _installers(part):
        complaint = _complaint([*installer, *arguments], part, more)
        if complaint is None:
            return
    if complaint is None:
        message = (
            f"harness needs pip, venv or uv to install its Python packages, and {sys.executable} has none."
        )
        raise EnvSetupError(message, "Install one of them (Debian, Ubuntu: the package python3-venv).")
    message = f"The Python packages that harness needs could not be installed ({complaint})."
    hint = f"When a package registry is in reach, run: {typed.harness('--help', program=launcher)}"
    raise EnvSetupError(message, hint)


def _installers(part: Path) -> Iterator[list[str]]:
    """Yield the commands that can install packages into a directory here, the fastest first.

    After a failed pip the pip of a new venv is not tried: it would fail in the same way.
    """
    uv = shutil.which("uv")
    # A relative entry of the PATH is in the user's project.
    if uv and Path(uv).is_absolute():
        yield [uv, "pip", "install", "--python", sys.executable]
    pip = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-compile"]
    if _complaint([sys.executable, "-c", "import pip"], part) is None:
        yield [sys.executable, *pip]
    # Debian packages them separately: pip may be missing without venv, and the other way round.
    elif _complaint([sys.executable, "-m", "venv", str(part / "venv")], part) is None:
        yield [str(part / "venv" / "bin" / "python"), *pip]


def _complaint(command: list[str], part: Path, more: Mapping[str, str] = NO_SETTINGS) -> str | None:
    """Run `command` in `part`, with `more` in its environment.

    Return None if it succeeded, else one line with the reason. Raises OSError if the disk is full.
    """
    try:
        done = subprocess.run(
            command,
            cwd=part,
            env={**_installer_environment(), **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{Path(command[0]).name} did not end within {_TIMEOUT_SECONDS} seconds"
    if done.returncode == 0:
        return None
    if _FULL.search(done.stderr):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    last = (errors or lines or [f"{Path(command[0]).name}: exit {done.returncode}"])[-1]
    unreached = any(words in done.stderr.lower() for words in _UNREACHED)
    return f"no package registry could be reached: {last}" if unreached else last


def _installer_environment() -> dict[str, str]:
    """Return the environment of an installer: with the user's registry and proxy settings.

    PYTHON*: the user's project. PIP_USER and PIP_REQUIRE_VIRTUALENV contradict a target directory.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"):
        kept.pop(name, None)
    return {**kept, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}

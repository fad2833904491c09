"""Make the private environment: one at a time, finished or not there.

Crash model: a run may be killed at any line, and its pip may go on as an orphan. What is left is a directory
with a name of its own that nobody reads; the next run that makes something removes it.
Standard library only. Source: docs/design.md, "On the user's machine".
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness_lib import typed
from harness_lib.errors import EnvSetupError
from harness_lib.system import flock
from harness_lib.system.install import private_env

_TIMEOUT_SECONDS = 900
_PART = "part-"
_LOCK = "lock"
# How pip and uv say that they have come to no registry.
_UNREACHED = (
    "from versions: none",
    "not found in the package registry",
    "connect",
    "network",
    "name resolution",
    "timed out",
    "unreachable",
)


def make(data: Path, env: Path, launcher: str, requirements: Path) -> None:
    """Make `env` in `data` from the pins in `requirements`, or wait for the process that is making it.

    Raises EnvSetupError: no installer, no registry in reach, or the directory cannot be used.
    """
    try:
        _make_private(data)
        with _alone(data):
            # Whoever held the lock may have done it.
            if not private_env.is_ready(env, requirements):
                _say("preparing its own Python environment (once) ...")
                _remove_leftovers(data)
                _build(data, env, launcher, private_env.recipe(requirements))
    except OSError as error:
        message = f"The Python environment of harness cannot be made in {data}: {error}."
        raise EnvSetupError(message, "Make room or permission there, or set HARNESS_HOME.") from error


def _say(text: str) -> None:
    sys.stderr.write(f"harness: {text}\n")
    sys.stderr.flush()


def _make_private(data: Path) -> None:
    data.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        data.mkdir(mode=0o700)
    except FileExistsError:
        # Whatever it is that stands there now, a race included, is looked at.
        private_env.is_safe(data)


@contextmanager
def _alone(data: Path) -> Iterator[None]:
    """Hold the lock of `data`; the kernel lets go of it when we die, so the file is never removed."""
    descriptor = flock.opened(data / _LOCK)
    try:
        if not flock.take_now(descriptor):
            _say("waiting for another process that prepares the Python environment ...")
            flock.take(descriptor)
        yield
    finally:
        os.close(descriptor)


def _remove_leftovers(data: Path) -> None:
    """Remove what killed runs left. Our lock says that no living run owns it."""
    for part in data.glob(f"{_PART}*"):
        # An orphaned pip may still be writing there; what it adds goes next time.
        shutil.rmtree(part, ignore_errors=True)


def _build(data: Path, env: Path, launcher: str, recipe: str) -> None:
    part = Path(tempfile.mkdtemp(prefix=_PART, dir=data))
    try:
        _install(part, launcher, recipe)
        (part / private_env.READY).write_text(recipe, encoding="utf-8")
        # A power cut must not leave the name without the content.
        os.sync()
        if env.exists():
            # Not ready, or we would not be here: somebody emptied it, or its checksum collides.
            env.rename(part / "replaced")
        part.rename(env)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(env / "replaced", ignore_errors=True)


def _install(part: Path, launcher: str, recipe: str) -> None:
    """Install the pinned packages with the first installer that can; raise EnvSetupError when none can."""
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
        complaint = _complaint([*installer, *arguments], part)
        if complaint is None:
            return
    if complaint is None:
        message = (
            f"harness needs pip, venv or uv to install its Python packages, and {sys.executable} has none."
        )
        raise EnvSetupError(message, "Install one of them (Debian, Ubuntu: the package python3-venv).")
    message = f"The Python packages that harness needs could not be installed ({complaint})."
    hint = f"When a package registry is in reach, run: {typed.harness('--version', program=launcher)}"
    raise EnvSetupError(message, hint)


def _installers(part: Path) -> Iterator[list[str]]:
    """Yield the commands that can install packages into a directory here, the fastest first.

    A pip that failed is not followed by the pip of a new venv: that would say the same again.
    """
    uv = shutil.which("uv")
    # A relative entry of the PATH leads into the user's project.
    if uv and Path(uv).is_absolute():
        yield [uv, "pip", "install", "--python", sys.executable]
    pip = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-compile"]
    if _complaint([sys.executable, "-c", "import pip"], part) is None:
        yield [sys.executable, *pip]
    # Debian splits both off: pip may be missing with venv there, and the other way round.
    elif _complaint([sys.executable, "-m", "venv", str(part / "venv")], part) is None:
        yield [str(part / "venv" / "bin" / "python"), *pip]


def _complaint(command: list[str], part: Path) -> str | None:
    """Run `command` in `part`; return None when it succeeded, else one line that says why not."""
    try:
        done = subprocess.run(
            command,
            cwd=part,
            env=_installer_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{Path(command[0]).name}: no end after {_TIMEOUT_SECONDS} seconds"
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    last = (errors or lines or [f"{Path(command[0]).name}: exit {done.returncode}"])[-1]
    unreached = any(words in done.stderr.lower() for words in _UNREACHED)
    return f"no package registry could be reached: {last}" if unreached else last


def _installer_environment() -> dict[str, str]:
    """Keep the user's registry and proxy settings; drop what would lead the installer elsewhere.

    PYTHON*: the user's project. PIP_USER and PIP_REQUIRE_VIRTUALENV contradict a target directory.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"):
        kept.pop(name, None)
    return {**kept, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}

"""A checkout whose launcher is real, and the places that it may install into.

Real installs from the package registry that pip is configured for; most tests share one data directory.
The command line is a small stand-in that shows what it was started with, and needs two packages, of which one
is compiled: this is about the launcher.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import filelock
import pytest

from harness_lib.system.install.private_env import REQUIREMENTS, environment, recipe
from tests.hosts.npm import Cache
from tests.launcher.launching import CHECKOUT, NONO, REAL_ENVIRON, run

CACHE = Cache.of(REAL_ENVIRON)

STAND_IN = """\
import json, os, sys

def entry():
    import filelock, rpds
    print(json.dumps({
        "argv": sys.argv[1:],
        "path": sys.path,
        "stdin": sys.stdin.read(),
        "cwd": os.getcwd(),
        "pid": os.getpid(),
        "python": sys.executable,
        "modules": [module.__file__ for module in (json, filelock, rpds)],
    }))
    print("talk", file=sys.stderr)
    sys.exit(9)
"""


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the checkout whose command line is the stand-in, in a path with a space.

    What puts off to load modules is the real one: the launcher calls it first.
    """
    copy = tmp_path_factory.mktemp("of") / "check out"
    shutil.copytree(CHECKOUT / "bin", copy / "bin")
    ignored = shutil.ignore_patterns("__pycache__", "cli")
    shutil.copytree(CHECKOUT / "harness_lib", copy / "harness_lib", ignore=ignored)
    (copy / "harness_lib/cli").mkdir()
    (copy / "harness_lib/cli/__init__.py").touch()
    shutil.copy(CHECKOUT / "harness_lib/cli/lazily.py", copy / "harness_lib/cli")
    (copy / "harness_lib/cli/main.py").write_text(STAND_IN)
    requirements = copy / "harness_lib/system/install/requirements.txt"
    lines = requirements.read_text().splitlines()
    needed = [line for line in lines if line.startswith(("filelock==", "rpds-py=="))]
    requirements.write_text("\n".join(needed) + "\n")
    return copy


@pytest.fixture(scope="session")
def launcher(checkout: Path) -> Path:
    return checkout / "bin/harness"


@pytest.fixture(scope="session")
def for_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory for the tests of all xdist workers."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def shared(for_all: Path) -> dict[str, str]:
    """Return the environment of one data directory for all tests, of all xdist workers: that it must bear.

    What this checkout needs is installed once for the machine, and again when it needs something else; it is
    also where `hs` looks whose XDG_DATA_HOME this directory is.
    """
    home, kept = for_all / "shared-harness-home", CACHE.place / "harness-home"
    with filelock.FileLock(for_all / "shared.lock"):
        if not home.exists():
            CACHE.place.mkdir(parents=True, exist_ok=True)
            for program, word in (("harness", "--version"), ("hs", "help")):
                done = run(CHECKOUT / "bin" / program, word, env={"HARNESS_HOME": str(kept)})
                assert done.code == 0, done.err
            # The engine of a sandbox, as far as it can be had: half a minute of the first run otherwise.
            run(sys.executable, "-I", "-S", "-c", NONO, CHECKOUT, env={"HARNESS_HOME": str(kept)})
            files = (REQUIREMENTS, REQUIREMENTS.with_name("requirements-sandbox.txt"))
            needed = [environment(kept, recipe(file)) for file in files]
            for data, found in ((home, filter(Path.exists, needed)), (home / "harness", kept.glob("env-*"))):
                data.mkdir(mode=0o700)
                for packages in found:
                    (data / packages.name).symlink_to(packages)
    return {"HARNESS_HOME": str(home)}


@pytest.fixture(scope="session")
def installed(for_all: Path) -> Path:
    """Return a virtual environment into which pip has installed this checkout; it is never activated."""
    place = for_all / "installed"
    with filelock.FileLock(for_all / "installed.lock"):
        return place / "venv" if place.exists() else _install(place)


def _install(place: Path) -> Path:
    place.mkdir()
    # A copy, as a build leaves its traces in the folder it builds.
    source = place / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, source)
    for name in ("harness_lib", "schemas"):
        shutil.copytree(CHECKOUT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    # What an older harness has left there, whose builds took such files along.
    stale = source / "build/lib/harness_lib/verbs/gone.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    venv = place / "venv"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    made = (sys.executable, "-m", "venv", "--without-pip", venv)
    for command in (made, (*pip, "--python", venv, "install", "--quiet", "--no-compile", source)):
        done = run(*command, env={})
        assert done.code == 0, done.err
    return venv


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which every registry and every cache is out of reach."""
    return {
        "HARNESS_HOME": str(tmp_path / "data"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": "",
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_RETRIES": "0",
        "PIP_CACHE_DIR": str(tmp_path / "pip-cache"),
        "UV_OFFLINE": "1",
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"),
    }

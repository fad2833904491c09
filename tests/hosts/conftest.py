"""The rig of the host tests: real clients on a machine of their own, and a model that plays a script.

Where npm cannot be reached, these tests are skipped with one line that says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest

from harness_lib.errors import Exit
from tests.conftest import CHECKOUT
from tests.hosts import model as models
from tests.hosts.claude import Claude
from tests.hosts.codex import Codex
from tests.hosts.copilot import Copilot
from tests.hosts.gemini import Gemini
from tests.hosts.machine import Machine
from tests.hosts.model import Model
from tests.hosts.npm import Cache, CannotInstallError

# Read when this file is loaded: later the guard of the tests has taken home and caches away.
CACHE = Cache.of(dict(os.environ))

Programs = Callable[[str], Path]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder time for several runs, and the first ones for installing the clients."""
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.timeout(400))


@pytest.fixture(scope="session")
def programs() -> Programs:
    """Return a callable that gives the directory with a client's programs; the test is skipped without."""
    known: dict[str, Path | CannotInstallError] = {}

    def find(client: str) -> Path:
        if client not in known:
            try:
                known[client] = CACHE.programs(client)
            except CannotInstallError as error:
                known[client] = error
        directory = known[client]
        if isinstance(directory, CannotInstallError):
            pytest.skip(str(directory))
        return directory

    return find


@pytest.fixture(scope="session")
def on_disk() -> Iterator[Path]:
    """Yield a directory that is not below `/dev`: the sandbox of Codex has a `/dev` of its own."""
    with TemporaryDirectory(prefix="hosts-", ignore_cleanup_errors=True) as place:
        yield Path(place).resolve()


@pytest.fixture(scope="session")
def harness_home(on_disk: Path) -> Path:
    """Return a data directory for the launcher with its packages in it, so that no run pays for them.

    The packages are kept; the byte code of the copies that tests install goes with the session.
    """
    kept = CACHE.place / "harness-home"
    CACHE.place.mkdir(parents=True, exist_ok=True)
    env = {**CACHE.environ, "HARNESS_HOME": str(kept)}
    for program in ("harness", "hs"):
        command = [str(CHECKOUT / "bin" / program), "--help"]
        done = subprocess.run(command, env=env, capture_output=True, encoding="utf-8", check=False)
        if done.returncode == Exit.ENV_SETUP:
            pytest.skip(f"the launcher cannot get its packages: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
    # The engine nono, as far as it can be had: without it its tests say so.
    fetch = "import os; from harness_lib.system.install import launcher; launcher.nono(os.environ)"
    isolated = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = [{str(CHECKOUT)!r}]; {fetch}"]
    subprocess.run(isolated, env=env, capture_output=True, check=False)
    home = on_disk / "harness-home"
    home.mkdir()
    for packages in kept.glob("env-*"):
        (home / packages.name).symlink_to(packages)
    return home


@pytest.fixture(scope="session")
def published(on_disk: Path) -> Path:
    """Return this checkout as a clone of it would be, with what is not committed yet."""
    place = on_disk / "published/harness"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=CHECKOUT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (CHECKOUT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, place / name, follow_symlinks=False)
    return place


@pytest.fixture
def model() -> Iterator[Model]:
    """Return the scripted model, and tell what went wrong inside it when the test is over."""
    with models.serve() as served:
        yield served
    served.check()


@pytest.fixture
def machine(on_disk: Path, harness_home: Path, programs: Programs) -> Iterator[Machine]:
    """Return a machine with Node.js and the `skills` CLI on it."""
    made = Machine.make(Path(mkdtemp(dir=on_disk)), harness_home)
    made.programs += [programs("node"), programs("skills")]
    yield made
    made.clear()


@pytest.fixture
def claude(machine: Machine, model: Model, programs: Programs) -> Claude:
    """Return Claude Code on `machine`, talking to `model`."""
    machine.programs.append(programs("claude"))
    return Claude(machine, model.address)


@pytest.fixture
def with_skill(machine: Machine, published: Path) -> None:
    """Put the skill where `skills add -g` puts it for Claude Code, without the copy."""
    machine.skills.mkdir(parents=True)
    (machine.skills / "harness").symlink_to(published)


@pytest.fixture
def codex(machine: Machine, model: Model, programs: Programs) -> Codex:
    """Return Codex on `machine`, talking to `model`."""
    machine.programs.append(programs("codex"))
    made = Codex(machine, model.address)
    made.settle()
    return made


@pytest.fixture
def gemini(machine: Machine, model: Model, programs: Programs) -> Gemini:
    """Return Gemini CLI on `machine`, talking to `model`."""
    machine.programs.append(programs("gemini"))
    made = Gemini(machine, model.address)
    made.settle()
    return made


@pytest.fixture
def copilot(machine: Machine, model: Model, programs: Programs) -> Copilot:
    """Return Copilot CLI on `machine`, talking to `model`."""
    machine.programs.append(programs("copilot"))
    return Copilot(machine, model.address)

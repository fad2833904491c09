"""Engines, and projects with secrets; they are on a disk, as a sandbox may write to `/dev/shm`."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from harness_lib.system.processes import engines, sandbox
from tests.conftest import for_release
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put

# That none starts is a failure then, not a reason to skip.
REQUIRED = os.environ.get("HARNESS_TEST_SANDBOX") == "require"


@pytest.fixture(scope="session")
def tmp_path_factory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.TempPathFactory]:
    """Yield one that makes its directories where temporary files are."""
    with TemporaryDirectory(prefix="sandbox-", ignore_cleanup_errors=True) as place:
        on_disk = copy.copy(tmp_path_factory)
        on_disk._basetemp = Path(place).resolve()
        yield on_disk


@pytest.fixture(params=engines.ENGINES)
def each_engine(request: pytest.FixtureRequest) -> str:
    """Return an engine; the test is skipped where it cannot start."""
    found, why = sandbox.find(os.environ, [request.param])
    if found is None:
        assert not REQUIRED or sandbox.find(os.environ)[0], why
        pytest.skip(f"it does not start here: {why}")
    return str(request.param)


@pytest.fixture(params=["first", *for_release("second")])
def engine(request: pytest.FixtureRequest) -> str:
    """Return the first engine that starts: what is told or done about a sandbox is the same with each."""
    start = [name for name in engines.ENGINES if sandbox.find(os.environ, [name])[0]]
    if len(start) <= (request.param == "second"):
        assert not REQUIRED or start
        pytest.skip("none, or no other one, starts here")
    return str(start[request.param == "second"])


@pytest.fixture
def workshop(tmp_path: Path, home: Path) -> Iterator[Workshop]:
    """Return a project in a home with secrets."""
    put(home / ".ssh/id_ed25519", "a key")
    put(home / ".config/gh/hosts.yml", "a token")
    put(home / ".config/other.ini", "no secret")
    made = Workshop.make(tmp_path)
    yield made
    made.close()


def without_bubblewrap(place: Path) -> str:
    """Return a PATH on which every program is but bwrap."""
    (place / "programs").mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for program in Path(directory).glob("*"):
            link = place / "programs" / program.name
            if program.name != "bwrap" and not link.is_symlink():
                link.symlink_to(program)
    return str(place / "programs")

"""The house rules of every test: a home of its own, git repositories of its own, and nobody else's session.

The guard itself is tested in `tests/test_guard.py`.
"""

from __future__ import annotations

import gc
import itertools
import os
import shlex
import shutil
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from hypothesis import HealthCheck, Phase, settings

from harness_lib.system import mkdir_lock
from tests import forked
from tests.run_to_end import Said
from tests.system.git.gitrepo import World

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

CHECKOUT = Path(__file__).resolve().parent.parent

# How a program for this Python begins: no path with a blank can follow `#!`.
PROGRAM = f"""#!/bin/sh
'''exec' {shlex.quote(sys.executable)} "$0" "$@"
' '''
"""

# Under nohup it is ignored, and so it would be by every program that a test starts and then hangs up on.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# What would tell the code under test about the developer's own agent, repository, harness or terminal.
FOREIGN_PREFIXES = (
    *("AI_AGENT", "CLAUDE", "CODEX", "COPILOT", "CURSOR", "GEMINI", "HS_", "OPENCODE"),
    *("HARNESS", "GIT_", "XDG_"),
)
FOREIGN_NAMES = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH")

# Of the homes: pytest would look through all of them for the next.
_NUMBERS = itertools.count()

# Fixtures that make a repository or start processes.
SLOW = frozenset({"repo", "make_repo", "harness", "project", "shared", "ring"})

GIT_CONFIG = """\
[user]
\tname = Test Person
\temail = test@example.invalid
[init]
\tdefaultBranch = main
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""

# A slow shared machine is not a bug; pytest-timeout ends what really hangs.
# The same examples each time: what fails fails again, and a change that did not cause it is not blamed.
settings.register_profile("house", deadline=None, derandomize=True, max_examples=40)
# With --release: other examples each time, and more of them.
settings.register_profile("release", deadline=None, max_examples=500)
# For tests/mutation/run.py: few examples, always the same, and no search for smaller ones.
settings.register_profile(
    "mutation",
    deadline=None,
    max_examples=25,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("house")

# Who starts the tests in the background of a script lets them ignore Ctrl-C, and all that they start, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Harness(Protocol):
    """Run `harness ARGS` in the test's repository (see `forked`); a non-zero exit is an answer too."""

    def __call__(
        self,
        *args: str,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        stdin: str | None = None,
    ) -> Said: ...


class MakeRepo(Protocol):
    """Make a repository in `tmp_path / name` with one commit (README.md) on main, and return its path."""

    def __call__(self, name: str = "repo") -> Path: ...


def for_release(*cases: Any) -> list[ParameterSet]:
    """Return cases, tuples for several parameters, marked release: another case keeps the promise."""
    several = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=pytest.mark.release) for case in several]


def needs(program: str) -> pytest.MarkDecorator:
    """Return the mark that leaves a test out where `program` is not installed."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that bin/test --release passes on."""
    parser.addoption("--release", action="store_true", help="run the tests that are marked release, too")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many tests run at once with `-n auto`: most of them wait for a process or for the disk."""
    return min(16, 2 * (os.cpu_count() or 1))


def pytest_configure(config: pytest.Config) -> None:
    """Let properties try more where everything is tried."""
    if config.getoption("release"):
        settings.load_profile("release")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Make no item of what is marked release, unless --release is given: a third of all cases."""
    marks = getattr(obj, "pytestmark", ()) if callable(obj) else ()
    left_out = not collector.config.getoption("release") and any(mark.name == "release" for mark in marks)
    return [] if left_out else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked release unless --release is given.

    Where a mutant must only be noticed by one test, begin with those that need no repository.
    """
    if not config.getoption("release"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("release")])
        items[:] = [item for item in items if not item.get_closest_marker("release")]
    if "MUTANT_UNDER_TEST" in os.environ:
        items.sort(key=lambda item: not SLOW.isdisjoint(getattr(item, "fixturenames", ())))


def pytest_collection_finish() -> None:
    """Let the garbage collection pass over what stays to the end."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds that the tests of each room took, all processes together, the longest first."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for each in reports:
            if isinstance(each, pytest.TestReport):
                seconds[_room(each.nodeid.partition("::")[0])] += each.duration
    total = sum(seconds.values())
    longest = sorted(seconds.items(), key=lambda pair: pair[1], reverse=True)
    rooms = ", ".join(f"{room} {spent:.0f}" for room, spent in longest if spent >= total / 100)
    terminalreporter.write_line(f"seconds of each room (of {total:.0f}): {rooms}")


def _room(file: str) -> str:
    """Return the directory below `tests/` that `file` is in."""
    parts = Path(file).parts
    return parts[1] if len(parts) > 2 else "tests"


@pytest.fixture(autouse=True)
def home(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Give each test an empty home and a working directory outside of every repository; yield the home."""
    for name in list(os.environ):
        if name.startswith(FOREIGN_PREFIXES) or name in FOREIGN_NAMES:
            monkeypatch.delenv(name)
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(_NUMBERS))
    home.mkdir(parents=True)
    config = home / ".gitconfig"
    config.write_text(GIT_CONFIG)
    monkeypatch.setenv("HOME", str(home))
    for name, folder in [("CONFIG", "config"), ("CACHE", "cache"), ("DATA", "data"), ("STATE", "state")]:
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / folder))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    # A test directory is never inside a repository, whatever the temporary directory lies in.
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.resolve().parent))
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "0")
    # A check that runs pytest needs none of our plugins, which take four fifths of its start.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # The agents of the tests write outside of their work trees; tests/sandbox types which sandbox it wants.
    monkeypatch.setenv("HARNESS_SANDBOX", "off")
    # Child processes of a test import this checkout, from wherever they are started.
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.chdir(tmp_path)
    yield home
    # What a test left open in /tmp: nobody else has these roots.
    for below in ("", "*/", "*/*/", "*/*/*/"):
        for found in tmp_path.glob(f"{below}harness-tasks.json"):
            shutil.rmtree(mkdir_lock.path_for(found.parent), ignore_errors=True)


@pytest.fixture
def make_repo(tmp_path: Path) -> MakeRepo:
    """Return a callable that makes as many repositories as a test needs."""

    def make(name: str = "repo") -> Path:
        return World.make(tmp_path / name, {"README.md": "# Project\n"}).top

    return make


@pytest.fixture
def repo(make_repo: MakeRepo) -> Path:
    """Return a real repository with one commit on main."""
    return make_repo()


@pytest.fixture
def harness(repo: Path) -> Harness:
    """Return a callable that runs the command line of this checkout in `repo`."""

    def run(
        *args: str,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        stdin: str | None = None,
    ) -> Said:
        variables = {**os.environ, **(env or {})}
        set_ones = {name: value for name, value in variables.items() if value is not None}
        done = forked.run("harness_lib", args, cwd or repo, set_ones, stdin or "")
        return Said(done.returncode, done.stdout, done.stderr)

    return run

"""A check that cannot run on this machine is told from one that fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.checks import Checked, ShellCheck, Worktree
from harness_lib.system.clock import SYSTEM
from tests.conftest import for_release, needs
from tests.system.git.gitrepo import put, sh


@pytest.fixture
def top(repo: Path) -> Path:
    put(repo / ".gitignore", "installed/\n")
    return repo


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """Return the directory of a Python that has no packages, as another one than the project's has none."""
    place = tmp_path / "a bare one"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    return place / "bin"


def _run(top: Path, command: str, path: str | None = None, cwd: str | None = None) -> Checked:
    env = {**os.environ, **({"PATH": path} if path else {})}
    worktree = Worktree(top, env, top.parent / "log", SYSTEM)
    return ShellCheck("task-001", command, cwd, 60).run(worktree)


@pytest.mark.parametrize(
    "command",
    [
        "no-such-tool",
        "true && no-such-tool",
        "exit 127",
        "make test",
        "installed/tool",
        "sh -c installed/tool",
    ],
)
def test_what_the_machine_lacks_is_the_environment(top: Path, command: str) -> None:
    put(top / "Makefile", "test:\n\tno-such-tool --all\n")

    assert _run(top, command).verdict == "ENV_SETUP"


@pytest.mark.parametrize(
    ("command", "how"),
    [("kill -9 $$", "signal 9"), ("kill -SEGV $$", "signal 11"), ("./tool", "exit code 126")],
)
def test_a_check_that_ends_by_a_signal_or_may_not_run_has_failed_and_names_it(
    top: Path, command: str, how: str
) -> None:
    """The system ends one that takes too much memory so; 126 is the shell's word: no command is missing."""
    put(top / "tool", "#!/bin/sh\n")

    checked = _run(top, command)

    assert (checked.verdict, how in checked.message) == ("TEST_FAIL", True), checked.message


@pytest.mark.parametrize(
    "command",
    [
        *(
            "./check.sh",
            "tests/check.sh && true",
            "bash tests/check.sh",
            "sh -c tests/check.sh",
            pytest.param("make missing", marks=needs("make")),
        ),
        *("python3 -m unittest tests.to_come", "python3 tests/to_come.py", "python3 -m of_the_project"),
        *("echo No module named pytest; false", "python3 -c 'import of_the_project'"),
    ],
)
def test_what_the_attempt_may_still_write_is_a_failed_check(top: Path, command: str) -> None:
    put(top / "Makefile", "missing:\n\t./to/come.sh\n")

    assert _run(top, command).verdict == "TEST_FAIL"


@pytest.mark.parametrize(
    "command",
    [
        *("python3 -m pytest -q", "python3 -c 'import pytest_timeout'"),
        *for_release("make test", "python3 -c 'import pytest'"),
    ],
)
def test_a_runner_that_another_python_has_names_both(top: Path, bare_python: Path, command: str) -> None:
    put(top / "Makefile", "test:\n\t@python3 -m pytest -q\n")

    own = Path(sys.executable).parent
    checked = _run(top, command, f"{bare_python}:{own}:{os.environ['PATH']}")

    assert checked.verdict == "ENV_SETUP"
    assert "No module named pytest" in checked.message
    assert " has no module pytest" in checked.message
    assert f"{own}/python" in checked.message


def test_a_runner_of_the_project_itself_is_a_failed_check(top: Path, bare_python: Path) -> None:
    put(top / "src/pytest/x.txt", "to be written")

    assert _run(top, "python3 -m pytest", f"{bare_python}:{os.environ['PATH']}").verdict == "TEST_FAIL"


def test_a_file_that_is_there_and_not_its_interpreter_is_the_environment(top: Path) -> None:
    put(top / "check.sh", "#!/no/such/interpreter\n", executable=True)
    sh(top, "add", "check.sh")

    assert _run(top, "sh -c ./check.sh").verdict == "ENV_SETUP"


def test_a_runner_may_be_made_quiet_by_settings_above_the_directory_of_its_check(
    top: Path, tmp_path: Path
) -> None:
    place = put(tmp_path / "bin/pytest", "#!/bin/sh\n", executable=True).parent
    put(top / "sub/test_x.py", "")

    def verdict() -> str:
        return _run(top, "pytest", f"{place}:{os.environ['PATH']}", "sub").verdict

    assert verdict() == "TEST_FAIL", "it has reported nothing"
    put(top / "pytest.ini", "[pytest]\naddopts = -q\n")
    assert verdict() == "pass"

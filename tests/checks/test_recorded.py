"""What an earlier harness has written of a check fits it still; one that cannot run is no failed one."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.checks import check_of
from harness_lib.checks.protocol import Checked, Worktree
from harness_lib.checks.shell import ShellCheck
from harness_lib.core import trust
from harness_lib.state import codec
from harness_lib.state.api import TaskCommands
from harness_lib.system.clock import SYSTEM
from harness_lib.task import OnFailure, State, Task, Validation
from tests.conftest import for_release
from tests.system.git.gitrepo import put, sh

CHECKS = (
    Validation("make test", cwd="app"),
    Validation("make test"),
    Validation(None, cwd="app"),
    Validation(),
    Validation(""),
)
TASKS = [
    Task(
        f"task-00{number}",
        "t",
        status="completed",
        validation=check,
        completed_commit="c" * 40,
        on_failure=OnFailure(cleanup="rm -f x" if number == 1 else None),
    )
    for number, check in enumerate(CHECKS, 1)
]
# Each written by the harness of before there was more than one way to ask for a check.
GATES = (
    "sha256:ffd07911d6f9a60f0c9be7f90de5c3f53ab5bb4f16f4c14b740f444cfa182359",
    "sha256:7ac431333efc3a52e33765e3e0b2d4d942c781ed8c8af64cf8c8e86d282f6e48",
    "sha256:0e9261c30b7c52ca544ae9b933d6e8edbe73981e104646de1871f66ca3f3a8a7",
    "sha256:6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "sha256:6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
)
PROOFS = (
    "sha256:9d74fa7389964d0c91919c9a91f24f7302cc476e5c6ccb3af1785101bbd1d37b",
    "sha256:895ceafe12a57e97fbd9c03cc70540343ae7be0e586461092679be21362d8491",
    "sha256:f5185641fd01947340668b0e7e04706463fa4038e95e6442409dae62c5b2e9de",
    "sha256:b53cadfec1a1663d4d54cc61bffba36bc41d581b441d7de0684e6f829755e75e",
    "sha256:8a249c5286147c1cd32303fbcc8cdcedda2f42c762891b85901d2a59b9db7af9",
)
TRUSTED = "63bf46de6c9a146f7b82d28c73109e009251877b925c3719e01099fc90e4a946"


@pytest.mark.parametrize(("task", "recorded"), list(zip(TASKS, GATES, strict=True)))
def test_a_gate_on_disk_fits_the_check_that_it_was_made_of(task: Task, recorded: str) -> None:
    assert check_of(task).fingerprint() == recorded


@pytest.mark.parametrize(("task", "recorded"), list(zip(TASKS, PROOFS, strict=True)))
def test_a_proof_on_disk_fits_its_task(task: Task, recorded: str) -> None:
    state = State(tasks=(task._replace(proof=recorded),), proofs=True)

    assert not codec.unproven(codec.examined(state))


def test_a_note_of_trust_on_disk_covers_the_commands_that_it_was_made_for() -> None:
    commands = [row for task in TASKS for row in TaskCommands.of(task)]

    assert trust.Runs(commands, None).fingerprint == TRUSTED


def test_a_hash_is_of_every_part_of_a_check_and_understood_by_every_later_version() -> None:
    """Command and directory cannot be shifted into one another; any text will do that JSON can carry."""
    parts = {(command, cwd) for command in ("a", "b", "ab", None, "\udc80 é") for cwd in ("a", "b", None)}

    assert len({_hash(*each) for each in parts}) == len(parts)
    for command, cwd in parts:
        data = f"{command or ''}\0{cwd or ''}".encode("utf-8", "surrogatepass")
        assert _hash(command, cwd) == "sha256:" + hashlib.sha256(data).hexdigest()


def _hash(command: str | None, cwd: str | None) -> str:
    return ShellCheck("task-001", command, cwd, 60).fingerprint()


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


def _run(top: Path, command: str, path: str | None = None) -> Checked:
    env = {**os.environ, **({"PATH": path} if path else {})}
    worktree = Worktree(top, env, top.parent / "log", SYSTEM, {})
    return ShellCheck("task-001", command, None, 60).run(worktree)


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


def test_a_check_that_a_signal_has_ended_names_the_signal(top: Path) -> None:
    """As the system does with one that takes too much memory."""
    checked = _run(top, "kill -9 $$")

    assert (checked.verdict, checked.message[:26]) == ("TEST_FAIL", "The check failed: signal 9")


@pytest.mark.parametrize(
    "command",
    [
        *(
            "./check.sh",
            "tests/check.sh && true",
            "bash tests/check.sh",
            "sh -c tests/check.sh",
            "make missing",
        ),
        *("python3 -m unittest tests.to_come", "python3 tests/to_come.py", "python3 -m of_the_project"),
        *("echo No module named pytest; false", "python3 -c 'import of_the_project'"),
    ],
)
def test_what_the_attempt_may_still_write_is_a_failed_check(top: Path, command: str) -> None:
    put(top / "Makefile", "missing:\n\t./to/come.sh\n")

    assert _run(top, command).verdict == "TEST_FAIL"


@pytest.mark.parametrize(
    "command", ["python3 -m pytest -q", *for_release("make test", "python3 -c 'import pytest'")]
)
def test_a_runner_that_another_python_has_names_both(top: Path, bare_python: Path, command: str) -> None:
    put(top / "Makefile", "test:\n\t@python3 -m pytest -q\n")

    own = Path(sys.executable).parent
    checked = _run(top, command, f"{bare_python}:{own}:{os.environ['PATH']}")

    assert checked.verdict == "ENV_SETUP"
    assert "No module named pytest: " in checked.message
    assert " which has no module pytest" in checked.message
    assert f"{own}/python" in checked.message


def test_a_runner_of_the_project_itself_is_a_failed_check(top: Path, bare_python: Path) -> None:
    put(top / "src" / "pytest" / "x.txt", "to be written")

    assert _run(top, "python3 -m pytest", f"{bare_python}:{os.environ['PATH']}").verdict == "TEST_FAIL"


def test_a_file_that_is_there_and_not_its_interpreter_is_the_environment(top: Path) -> None:
    put(top / "check.sh", "#!/no/such/interpreter\n", executable=True)
    sh(top, "add", "check.sh")

    assert _run(top, "sh -c ./check.sh").verdict == "ENV_SETUP"

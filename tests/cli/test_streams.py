"""A stream that is closed, full or read by nobody changes neither what a verb does nor how it exits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.errors import Exit
from tests.verbs.project import Project

FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is full")


def typed(project: Project, words: str, program: str = "harness_lib") -> subprocess.CompletedProcess[str]:
    """Run `words` behind the program's name through a shell, which can close and redirect streams."""
    return subprocess.run(
        ["sh", "-c", f'"$0" -m {program} {words}', sys.executable],
        cwd=project.top,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_closed_stdout_is_no_failure(filled: Project) -> None:
    done = typed(filled, "status >&-")
    assert (done.returncode, done.stderr) == (Exit.DONE, "")


def test_a_closed_stderr_is_no_failure(filled: Project) -> None:
    done = typed(filled, "nonsense 2>&-")
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")


def test_what_is_written_to_a_closed_stream_lands_in_no_file(filled: Project) -> None:
    """The first file that is opened would get the number of a closed stream, and what children print."""
    assert typed(filled, "note task-001 'the cache is cold' <&- >&- 2>&-").returncode == Exit.DONE
    assert [task["id"] for task in filled.state["tasks"]] == ["task-001", "task-002", "task-003"]
    assert "the cache is cold" in typed(filled, "show task-001").stdout


@FULL
def test_the_exit_code_tells_of_a_full_stdout(filled: Project) -> None:
    done = typed(filled, "status >/dev/full")
    assert done.returncode == Exit.ENV_SETUP
    assert "No space left on device" in done.stderr
    assert "Exception ignored" not in done.stderr


@FULL
def test_the_agent_loop_tells_of_a_full_stdout_as_well(filled: Project) -> None:
    done = typed(filled, "help >/dev/full", "harness_lib.hs")
    assert (done.returncode, done.stderr) == (
        Exit.ENV_SETUP,
        "hs: The system said: No space left on device.\n",
    )


@FULL
def test_a_full_stderr_does_not_change_the_exit_code(filled: Project) -> None:
    assert typed(filled, "nonsense 2>/dev/full").returncode == Exit.USAGE


def test_a_reader_that_is_gone_does_not_change_the_exit_code(filled: Project) -> None:
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as reader:
        assert reader.stdin is not None
        reader.wait(60)
        done = subprocess.run(
            [sys.executable, "-m", "harness_lib", "nonsense"],
            cwd=filled.top,
            stdout=reader.stdin,
            stderr=reader.stdin,
            check=False,
        )
    assert done.returncode == Exit.USAGE


def test_a_reader_that_has_gone_makes_no_failed_check_a_success(
    filled: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under pipefail `harness finish | head -1` says what the check said, and not who has read it."""
    monkeypatch.setenv("HARNESS_WORKER_ID", "w")
    typed(filled, "edit task-001 --validate false")
    assert typed(filled, "claim").returncode == Exit.DONE
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as reader:
        assert reader.stdin is not None
        reader.wait(60)
        done = subprocess.run(
            [sys.executable, "-m", "harness_lib", "finish"],
            cwd=filled.top,
            stdout=reader.stdin,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    assert done.returncode == Exit.CHECK_FAILED

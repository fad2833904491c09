"""A stream that is closed, full or read by nobody changes neither what a verb does nor how it exits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.errors import Exit
from tests.run_to_end import run_to_end
from tests.verbs.project import Project, begin

FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is full")


def typed(project: Project, words: str, program: str = "harness_lib") -> subprocess.CompletedProcess[str]:
    """Run `words` behind the program's name through a shell, which can close and redirect streams."""
    return run_to_end(["sh", "-c", f'"$0" -m {program} {words}', sys.executable], cwd=project.top)


def read_by_nobody(project: Project, *words: str, also_errors: bool = False) -> tuple[int, bytes]:
    """Type it into a pipe whose reader has gone; return the exit code and what is said elsewhere."""
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as reader:
        assert reader.stdin is not None
        reader.wait()
        done = subprocess.run(
            [sys.executable, "-m", "harness_lib", *words],
            cwd=project.top,
            stdout=reader.stdin,
            stderr=reader.stdin if also_errors else subprocess.PIPE,
            check=False,
        )
    return done.returncode, done.stderr


def test_a_closed_stdout_and_a_closed_stderr_are_no_failure(filled: Project) -> None:
    done = typed(filled, "status >&-")
    assert (done.returncode, done.stderr) == (Exit.DONE, "")
    done = typed(filled, "nonsense 2>&-")
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")


def test_what_is_written_to_a_closed_stream_lands_in_no_file(filled: Project) -> None:
    """The first file that is opened would get the number of a closed stream, and what children print."""
    assert typed(filled, "note task-001 'the cache is cold' <&- >&- 2>&-").returncode == Exit.DONE
    assert [task["id"] for task in filled.state["tasks"]] == ["task-001", "task-002", "task-003"]
    assert filled.task()["notes"] == ["the cache is cold"]


@FULL
def test_the_exit_code_tells_of_a_full_stdout_and_of_no_full_stderr(filled: Project) -> None:
    done = typed(filled, "status >/dev/full")
    assert done.returncode == Exit.ENV_SETUP
    assert "No space left on device" in done.stderr
    assert "Exception ignored" not in done.stderr
    assert typed(filled, "nonsense 2>/dev/full").returncode == Exit.USAGE
    done = typed(filled, "help >/dev/full", "harness_lib.hs")
    said = "hs: The system said: No space left on device.\n"
    assert (done.returncode, done.stderr) == (Exit.ENV_SETUP, said)


@FULL
def test_an_answer_that_cannot_be_printed_is_told_from_work_that_was_not_done(filled: Project) -> None:
    for verb, more in (("add", "A"), ("add", "B --json"), ("note", "task-001 'the cache is cold'")):
        done = typed(filled, f"{verb} {more} >/dev/full")
        assert done.returncode == Exit.ENV_SETUP
        assert f"harness {verb} was carried out; only its answer could not be printed" in done.stderr
        assert done.stderr.endswith("; see what was done: harness status\n")
    assert [task["title"] for task in filled.state["tasks"]][3:] == ["A", "B"]


@FULL
def test_a_help_that_cannot_be_printed_is_a_failure_with_a_message(filled: Project) -> None:
    for words in ("--help", "run --help", "--version", "help add"):
        done = typed(filled, f"{words} >/dev/full")
        assert (done.returncode, "No space left" in done.stderr) == (Exit.ENV_SETUP, True)
        assert "Exception ignored" not in done.stderr
    assert read_by_nobody(filled, "run", "--help") == (Exit.DONE, b"")


@FULL
def test_a_full_stderr_stops_no_work(filled: Project) -> None:
    """The warning that a task has no check cannot be printed; the answer can."""
    done = typed(filled, "add A 2>/dev/full")
    assert (done.returncode, done.stdout.splitlines()[0]) == (Exit.DONE, "added task-004 [P1]: A")
    done = typed(filled, "nonsense --json >/dev/full")
    assert (done.returncode, "There is no verb" in done.stderr) == (Exit.USAGE, True)


def test_a_reader_that_is_gone_changes_no_exit_code(filled: Project) -> None:
    """`harness status | head -1`: nobody complains; `harness finish | head -1` says what the check said."""
    assert read_by_nobody(filled, "status") == (Exit.DONE, b"")
    assert read_by_nobody(filled, "nonsense", also_errors=True)[0] == Exit.USAGE


def test_a_gone_reader_makes_no_failure_a_success(filled: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under pipefail `harness finish | head -1` says what the check said, and not who has read it."""
    agent = filled.agent("w")
    begin(agent, "false", "--priority", "P0")
    monkeypatch.setenv("HARNESS_WORKER_ID", agent.name)
    monkeypatch.setenv("CLAUDE_PID", str(agent.process.pid))
    assert read_by_nobody(filled, "finish")[0] == Exit.CHECK_FAILED

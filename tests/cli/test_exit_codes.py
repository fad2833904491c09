"""How a command ends: each exit code is reached, whatever becomes of its streams, and by a signal."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, get_args

import pytest

from harness_lib.core.context import Context
from harness_lib.errors import Exit
from harness_lib.state import schema
from harness_lib.system.processes import process
from harness_lib.task import RunStop, StopReason
from harness_lib.verbs import status
from tests.cli.conftest import keeps_the_contract
from tests.verbs.project import Project, Said, begin
from tests.waiting import number_in

if TYPE_CHECKING:
    from tests.conftest import Harness


def _config(project: Project) -> Said:
    project.edit_task(priority="P9")
    return project.agent()("status", "--json")


def _check_failed(project: Project) -> Said:
    project.edit(tasks=[{"id": "a", "status": "pending", "depends_on": ["a"]}])
    return project.agent()("check", "--json")


def _unreadable(project: Project) -> Said:
    for path in [*project.generations, project.top / "harness-tasks.json.bak"]:
        path.unlink()
    project.file.write_text("{", encoding="utf-8")
    return project.agent()("status", "--json")


def _held(project: Project) -> Said:
    project.agent("first").ok("start")
    return project.agent("second")("claim", "--json")


def _lease_lost(project: Project) -> Said:
    project.agent("person").ok("edit", "--mode", "concurrent")
    first = project.agent("first")
    first.ok("claim")
    project.agent("person").ok("stop", "--session", "1")
    project.agent("second").ok("recover")
    return first("finish", "task-001", "--json")


def _no_root(project: Project) -> Said:
    return project.agent(HARNESS_STATE_ROOT=str(project.top / "nowhere"))("status", "--json")


def _refused(project: Project) -> Said:
    project.put("tracked.txt", "the user's work\n")
    return project.agent()("claim", "--json")


def _stop(project: Project) -> Said:
    project.edit(tasks=[])
    return project.agent()("start", "--json")


STORIES: dict[Exit, Callable[[Project], Said]] = {
    Exit.DONE: lambda project: project.agent()("status", "--json"),
    Exit.CHECK_FAILED: _check_failed,
    Exit.USAGE: lambda project: project.agent()("show", "nobody", "--json"),
    Exit.CONFIG: _config,
    Exit.STATE_UNREADABLE: _unreadable,
    Exit.HELD: _held,
    Exit.LEASE_LOST: _lease_lost,
    Exit.ENV_SETUP: _no_root,
    Exit.REFUSED: _refused,
    Exit.STOP: _stop,
}


@pytest.mark.parametrize("code", STORIES, ids=lambda code: code.name)
def test_each_exit_code_is_reached_and_says_what_to_do(filled: Project, code: Exit) -> None:
    said = STORIES[code](filled)
    reply = keeps_the_contract(said)
    assert said.code == code, said.text
    if reply["error"]:
        assert reply["error"]["kind"] == code.name
        assert reply["error"]["hint"]


def test_the_schema_knows_every_reason_to_stop_and_exactly_these_exit_codes() -> None:
    """`stuck` is no reason of a reply: it is an error that says what the user must do."""
    fields = schema.load(schema.REPLY)["properties"]
    reasons = fields["stop"]["properties"]["reason"]["enum"]
    assert set(reasons) == {*get_args(StopReason), *get_args(RunStop)} - {"stuck"}
    assert fields["exit"]["enum"] == [int(code) for code in Exit]
    assert set(STORIES) == set(Exit) - {Exit.BUG}


@pytest.fixture
def bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `harness status` have a bug, which also takes an empty directory away that it is in."""

    def broken(ctx: Context, **_options: object) -> NoReturn:
        if not any(ctx.cwd.iterdir()):
            ctx.cwd.rmdir()
        raise ZeroDivisionError("a number of ours")

    monkeypatch.setattr(status, "run", broken)


@pytest.mark.usefixtures("bug")
def test_a_bug_is_reported_in_a_file_and_not_as_a_traceback(filled: Project) -> None:
    said = filled.agent()("status", "--json")
    reply = keeps_the_contract(said)
    assert (said.code, reply["error"]["kind"]) == (Exit.BUG, "BUG")
    assert "a number of ours" in reply["message"]
    (report,) = (filled.top / ".harness").glob("bug-*.txt")
    assert str(report) in reply["error"]["hint"]
    assert "ZeroDivisionError" in report.read_text(encoding="utf-8")
    assert "Traceback" not in filled.agent()("status").text


def _no_cwd(project: Project) -> Said:
    gone = project.top / "gone"
    gone.mkdir()
    return project.agent(cwd=gone)("status", "--json")


def _no_room(project: Project) -> Said:
    # A directory in the way of the report, as a missing right to write stops everybody but root.
    project.put(f".harness/bug-{os.getpid()}.txt/in-the-way")
    return project.agent()("status", "--json")


@pytest.mark.usefixtures("bug")
@pytest.mark.parametrize("story", [_no_root, _no_cwd, _no_room])
def test_a_bug_without_a_report_is_no_failed_check(filled: Project, story: Callable[[Project], Said]) -> None:
    said = story(filled)
    assert schema.reply_problems(said.json) == []
    assert (said.code, said.json["error"]["kind"]) == (Exit.BUG, "BUG")
    assert "Traceback" in said.err
    assert "lines above" in said.json["error"]["hint"]


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


# It tells its pid, ignores TERM, and would run for a minute.
CHECK = "trap '' TERM; echo $$ > {file}; sleep 60"


def test_a_terminated_finish_takes_its_check_with_it(harness: Harness, repo: Path, tmp_path: Path) -> None:
    """The time-out of an agent's tool ends `finish`; its check ends too, and the task is still held."""
    pid_file = tmp_path / "check-pid"
    me = {"HARNESS_WORKER_ID": "w"}
    harness("init")
    harness("add", "Wait", "--validate", CHECK.format(file=shlex.quote(str(pid_file))))
    harness("claim", env=me)
    with subprocess.Popen(
        [sys.executable, "-m", "harness_lib", "finish"],
        cwd=repo,
        env={**os.environ, **me},
        stderr=subprocess.PIPE,
        text=True,
    ) as finish:
        check = number_in(pid_file)
        finish.send_signal(signal.SIGTERM)
        _out, err = finish.communicate(timeout=200)

    assert finish.returncode == 128 + signal.SIGTERM
    assert "harness recover" in err
    assert not process.alive(check)
    assert harness("status", "--json", env=me).json["counts"]["in_progress"] == 1

"""Each exit code is reached, and a command that a signal ends leaves nothing running."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, get_args

import pytest

from harness_lib.cli import main
from harness_lib.core.context import Context
from harness_lib.errors import Exit
from harness_lib.state import schema
from harness_lib.system.processes import process
from harness_lib.task import RunStop, StopReason
from harness_lib.verbs import status
from tests.cli.conftest import keeps_the_contract
from tests.conftest import Harness
from tests.run_to_end import Said
from tests.verbs.project import Project
from tests.waiting import number_in


def _config(project: Project) -> Said:
    project.edit_task(priority="P9")
    return project.agent()("status", "--json")


def _check_failed(project: Project) -> Said:
    project.edit(tasks=[{"id": "a", "status": "pending", "depends_on": ["a"]}])
    return project.agent()("check", "--json")


def _unreadable(project: Project) -> Said:
    for path in [*project.generations, project.top / "harness-tasks.json.bak"]:
        path.unlink()
    project.file.write_text("{")
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
    assert "ZeroDivisionError" in report.read_text()
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
    assert schema.problems(said.json, "reply") == []
    assert (said.code, said.json["error"]["kind"]) == (Exit.BUG, "BUG")
    assert "Traceback" in said.err
    assert "lines above" in said.json["error"]["hint"]


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


@pytest.mark.parametrize("words", ["run -j 2", "trust", "demo", "hooks install --agent codex"])
def test_what_is_interrupted_before_it_has_begun_is_typed_again(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where a run waits for room on a disk, and where the user is asked something."""

    def interrupted(_screen: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_context", interrupted)
    assert main.main(words.split()) == 128 + signal.SIGINT
    assert f"Go on with: harness {words}\n" in capsys.readouterr().err


def test_what_only_looks_is_typed_again(
    harness: Harness, repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    harness("init")

    def interrupted(ctx: Context, *_: object) -> NoReturn:
        ctx.store.ask()
        raise KeyboardInterrupt

    monkeypatch.chdir(repo)
    monkeypatch.setattr(status, "answer", interrupted)
    assert main.main(["status", "--all"]) == 128 + signal.SIGINT
    assert "Go on with: harness status --all\n" in capsys.readouterr().err

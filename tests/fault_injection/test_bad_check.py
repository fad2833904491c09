"""A check that misbehaves is ended, judged, and takes nothing with it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.system.processes import process, runner
from tests.conftest import for_release
from tests.verbs.project import Agent, Project, begin, python


def gone(file: Path) -> bool:
    return not process.alive(int(file.read_text(encoding="ascii")))


def test_one_that_prints_without_end_is_stopped_and_fails(project: Project, agent: Agent) -> None:
    begin(agent, "while :; do echo too much; done")
    project.put("work.txt", "work\n")

    reply = agent.fails(1, "finish", HARNESS_LOG_LIMIT_BYTES="1000")

    assert "printed too much" in reply["message"]
    assert len(reply["message"]) < 4000
    assert project.task()["error_log"][0].startswith("[TEST_FAIL]")
    assert project.git("show", f"{reply['rescue']}:work.txt") == "work"


def test_a_limit_that_is_no_number_is_said_before_anything_runs(project: Project, agent: Agent) -> None:
    begin(agent, "touch ran")

    error = agent.fails(7, "finish", HARNESS_LOG_LIMIT_BYTES="lots")["error"]

    assert "HARNESS_LOG_LIMIT_BYTES" in error["message"]
    assert not (project.top / "ran").exists()
    assert project.task()["attempts"] == 0


def test_its_output_may_be_anything(project: Project, agent: Agent) -> None:
    noise = 'os.write(1, bytes(range(256)) * 50 + b"\\n\\x1b[31m[CONFIG] red\\n")'
    begin(agent, python(f"import os; {noise}; os._exit(1)"))

    reply = agent.fails(1, "finish")

    assert reply["tail"].endswith("[CONFIG] red")
    assert "\x1b" not in project.task()["error_log"][0]
    assert project.task()["error_log"][0].startswith("[TEST_FAIL]")
    assert agent.ok("claim")["task"]["id"] == "task-001"


# The newest list lies in the git directory, too.
CRIMES = (
    "rm harness-tasks.json",
    "echo oops > harness-tasks.json",
    "rm -rf .harness",
    "rm -rf harness-* .harness*",
)


@pytest.mark.parametrize("crime", CRIMES)
@pytest.mark.parametrize("passes", [False, *for_release(True)])
def test_one_that_spoils_it_loses_nothing(project: Project, agent: Agent, crime: str, passes: bool) -> None:
    begin(agent, f"{crime}; test -f done" if passes else f"{crime}; false")
    agent.ok("add", "Two", "--validate", "true")
    project.put("done")

    said = agent("finish", "--json")

    assert said.code == (0 if passes else 1), said.text
    assert project.task()["status"] == ("completed" if passes else "failed")
    assert project.task("task-002")["title"] == "Two"
    assert len(project.log) > 3


def test_a_torn_note_of_a_killed_check_does_not_stop_recovery(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    notes = [project.put(f".harness/logs/task-001/{n}.running", text) for n, text in enumerate(("", "x y"))]
    agent.die()

    project.agent("next").ok("start")

    assert project.task()["status"] == "failed"
    assert not any(note.exists() for note in notes)


def test_one_that_deletes_that_copy_too_is_exit_4_and_the_work_stands(project: Project, agent: Agent) -> None:
    begin(agent, "rm -rf harness-* .harness* .git/harness")
    project.put("work.txt", "work\n")
    base = project.head

    agent.fails(4, "finish")

    assert project.read("work.txt") == "work\n"
    assert project.head == base


def test_one_that_takes_away_its_directory(project: Project, agent: Agent) -> None:
    project.commit(files={"sub/file.txt": "file\n"})
    begin(agent, "cd ..; rm -rf sub; false", "--cwd", "sub")

    agent.fails(1, "finish")

    assert project.read("sub/file.txt") == "file\n"


def test_ctrl_c_ends_the_check_and_counts_nothing(project: Project, agent: Agent) -> None:
    # Not before it is noted that the check runs: in the middle of its start nobody holds it yet.
    noted = "while ! test -s .harness/logs/task-001/1.running; do :; done"
    begin(agent, f"echo $$ > pid; {noted}; kill -INT {os.getpid()}; sleep 600")
    project.put("work.txt", "work\n")

    said = agent("finish")

    assert said.code == 130
    assert "nothing is lost" in said.err
    assert gone(project.top / "pid")
    assert project.task()["status"] == "in_progress"
    assert project.task()["attempts"] == 0
    assert project.read("work.txt") == "work\n"


@pytest.mark.parametrize("name", ["1", "1-verdict", "final"])
def test_what_a_killed_command_has_left_running_is_ended(project: Project, agent: Agent, name: str) -> None:
    begin(agent, "true")
    log = project.put(f".harness/logs/task-001/{name}.log")
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as left:
        runner.note(log, left.pid)
        agent.finishes({"work.txt": "x\n"})
        if name == "final":
            agent.ok("validate", "--all", "--committed")
        assert left.poll() == -signal.SIGKILL


def test_one_that_finishes_its_own_task_does_not_go_round_in_circles(project: Project, agent: Agent) -> None:
    """A check that calls `harness finish` is told no, and so says no itself."""
    begin(agent, f"HARNESS_WORKER_ID={agent.name} {shlex.quote(sys.executable)} -m harness_lib finish")

    reply = agent.fails(1, "finish")

    assert "calls harness to end its own task" in reply["message"]
    assert project.task()["attempts"] == 1

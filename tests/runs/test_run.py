"""What an unattended run promises, with scripted agents on real git."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.runs.conftest import Make
from tests.runs.workshop import COMMAND, HURRIED, Workshop, descendants, signal_all
from tests.verbs.project import Agent, Time


def test_it_goes_on_until_every_task_is_done(workshop: Workshop) -> None:
    """Started as the user starts it; the first attempt at the last task fails, and is tried again."""
    one = workshop.file_task("one")
    two = workshop.file_task("two", "--depends-on", one)
    workshop.add("Three", "grep -q done one && grep -q done two", "--depends-on", two, do="write three x")
    workshop.add("Right", "grep -q right f", do="first write f wrong\nthen write f right")

    said = workshop.interpreted("run", "--agent-command", COMMAND, "-j", "2")

    assert said.returncode == 0, said.stdout + said.stderr
    assert said.stdout.index("prepares: a new work tree") < said.stdout.index("task-001 attempt 1: ")
    assert set(workshop.statuses().values()) == {"completed"}
    assert [task["attempts"] for task in workshop.state["tasks"]] == [0, 0, 0, 1]
    workshop.failures_are_kept()
    assert workshop.sh("show", "refs/harness/rescue/task-004/1:f") == "wrong"
    workshop.all_is_well()


def test_workers_begin_no_more_tasks_than_their_run_may(workshop: Workshop) -> None:
    """And no check runs once more where the user wants none."""
    for name in ("a", "b", "c"):
        workshop.file_task(name)

    said = workshop.ends(9, "-j", "2", "--max-tasks", "1", "--final-check", "none")

    assert sorted(workshop.statuses().values()) == ["completed", "pending", "pending"]
    assert re.findall("final tree|left out", said.stdout) == []


def test_a_task_that_never_passes_blocks_what_waits_for_it_and_nothing_else(workshop: Workshop) -> None:
    """An agent that crashes is followed by one that goes on with its work, and no attempt is counted."""
    bad = workshop.add("Never", "false", "--max-attempts", "2", do="write never x")
    workshop.file_task("after", "--depends-on", bad)
    for name, how in (("killed", "kill"), ("ended", "exit 3")):
        check, do = f"grep -q half {name} && grep -q done {name}", f"write {name} half\nonce {how}"
        workshop.add(f"Two lives: {name}", check, do=f"{do}\nwrite {name} done")

    said = workshop.run("-j", "2", "--json", **HURRIED)

    answer = json.loads(said.stdout.splitlines()[-1])
    assert (said.returncode, answer["stop"]) == (9, {"reason": "blocked"})
    assert list(workshop.statuses().values()) == ["failed", "failed", "completed", "completed"]
    assert [task["attempts"] for task in workshop.state["tasks"][2:]] == [0, 0]
    workshop.all_is_well()


@pytest.mark.release
def test_one_suite_for_two_tasks_is_named_and_what_was_red_before(workshop: Workshop) -> None:
    named = "for t in a b; do test -f $t || echo FAILED t.py::$t; done"
    check = f"echo === short test summary info ===; {named}; test -f b"
    for name in "ab":
        workshop.add(name, f"{check} -a -f a", "--max-attempts", "1", do=f"write {name} x")

    dry = workshop.run("--dry-run").stderr
    bare = str(workshop.ok("add", "Bare")["task"]["id"])
    assert f"Without a check, so they cannot be completed: {bare}" in workshop.run("--dry-run").stderr
    workshop.ok("remove", bare)
    said = workshop.ends(9)

    assert all("2 open tasks have the same check" in each for each in (dry, said.stdout))
    assert "harness edit task-002 --validate 'COMMAND'" in said.stdout
    blame = workshop.task("task-001")["error_log"][0]
    assert "Every test that fails was red before this attempt: t.py::b." in blame


def test_an_agent_makes_the_directory_of_its_check(workshop: Workshop) -> None:
    """An attempt that leaves that out has failed, and the next agent is told."""
    workshop.add("New package", "grep -q done f", "--cwd", "api", do="first say no ;; then write api/f done")
    said = workshop.ends(0)
    assert "failed: [TEST_FAIL] Task task-001: validation.cwd 'api' is not a directory" in said.stdout
    assert workshop.sh("show", "main:api/f") == "done"

    workshop.add("Mistyped", "grep -q done f", "--cwd", "apii", do="write g done")
    workshop.add("Green", "true", "--red-first")
    said = workshop.ends(9)
    edit = "harness edit task-003 --validate 'COMMAND'"
    assert workshop.task("task-003")["halt"].endswith(f" It needs a check that fails now. Then type: {edit}")
    task = workshop.task("task-002")
    assert (task["status"], task["attempts"], task["halt_kind"]) == ("pending", 1, "CONFIG")
    assert "harness edit task-002 --cwd DIRECTORY" in said.stdout


@pytest.mark.release
def test_a_check_that_others_have_taken_away_sends_the_work_back(workshop: Workshop) -> None:
    workshop.put("check.sh", "#!/bin/sh\ntest -f b\n", executable=True)
    workshop.commits("A check")
    workshop.add("Away", "test ! -e check.sh", "--protect", "none", do="sh rm -f check.sh")
    mend = "test -e check.sh || { echo test -f b > check.sh; chmod +x check.sh; }"
    merged = "while git -C $HARNESS_STATE_ROOT cat-file -e main:check.sh 2>/dev/null; do sleep 0.02; done"
    workshop.add("Uses it", "./check.sh", do=f"write b x\nonce sh {merged}\nsh {mend}")

    said = workshop.ends(0, "-j", "2")

    assert [task["attempts"] for task in workshop.state["tasks"]] == [0, 0]
    assert "with what was merged meanwhile it does not. The check failed with exit code 127" in said.stdout
    assert set(workshop.statuses().values()) == {"completed"}
    workshop.nothing_is_left_over()


def test_ctrl_c_once_finishes_what_runs_and_starts_nothing_new(workshop: Workshop) -> None:
    """Whoever is held up by the run is told to end it so, not by closing its session behind its back."""
    go, run, hint = workshop.at_work(), workshop.runs[0], ""
    workshop.file_task("next")
    second = workshop.run()
    assert (second.returncode, f"pid {run.pid}" in second.stderr) == (5, True)
    for argv in (["start"], ["stop", "--session", "1"], ["edit", "--mode", "concurrent"]):
        held = workshop.harness(*argv)
        assert held.returncode == 5, held.stdout + held.stderr
        hint = held.stderr
        assert f": Ctrl-C in its terminal, or kill -INT {run.pid}\n" in hint
        assert "harness stop --session" not in hint
    assert [session["number"] for session in workshop.state["sessions"]] == [1]

    subprocess.run(hint.rpartition(" or ")[2].split(), check=True)
    workshop.wait_for("it says so", lambda: "starting nothing new" in workshop.printed)
    go.touch()

    assert run.wait() == 9
    assert workshop.statuses() == {"task-001": "completed", "task-002": "pending"}
    workshop.nothing_is_left_over()
    workshop.ends(0)


def test_ctrl_c_twice_stops_now_and_the_next_run_goes_on(workshop: Workshop) -> None:
    """Nothing is checked again before it ends; it says how to do that."""
    workshop.file_task("first")
    workshop.at_work()
    run = workshop.runs[0]

    run.send_signal(signal.SIGINT)
    workshop.wait_for("it says so", lambda: "starting nothing new" in workshop.printed)
    run.send_signal(signal.SIGINT)

    assert run.wait() == 9
    assert "every check runs once more" not in workshop.printed
    assert "not re-checked: 1 completed task" in workshop.printed
    assert workshop.statuses() == {"task-001": "completed", "task-002": "pending"}
    assert workshop.task("task-002")["attempts"] == 0
    workshop.nothing_is_left_over()
    workshop.ends(0)
    assert workshop.read("f").split() == ["half", "done"]


def test_the_list_changes_hands_between_a_run_and_a_chat(workshop: Workshop, tmp_path: Path) -> None:
    started = tmp_path / "started"
    workshop.add("Slow", "grep -q done f && grep -q half f", do=f"write f half\ntouch {started}\nsleep 600")
    workshop.file_task("next")
    workshop.start(until=started)
    workshop.cut_power()

    chat = Agent("chat", workshop.top, Time(), {"HARNESS_HOME": str(workshop.home)})
    reply = chat.ok("start")
    assert "recovered task-001" in reply["message"]
    assert len(workshop.sh("worktree", "list").splitlines()) == 1
    assert workshop.task("task-001")["attempts"] == 0
    assert "harness rescue show task-001/1" in chat.ok("claim", "task-001")["brief"]
    assert workshop.read("f") == "half\n"
    workshop.put("f", "half\ndone\n")
    chat.ok("finish")
    chat.ok("stop")
    chat.die()

    workshop.ends(0)
    workshop.all_is_well()


def test_what_stops_a_run_before_it_begins_says_what_to_type(workshop: Workshop) -> None:
    """The caller's own session, whose end a run would wait for in vain, and a command without a word."""
    workshop.file_task("one")
    empty = workshop.ends(2, agent=" ")
    assert "The agent's command is empty." in empty.stderr
    # The owner of the session lives as long as this process.
    mine = {"HARNESS_WORKER_ID": "me", "CLAUDE_PID": str(os.getpid())}
    workshop.harness("start", **mine).check_returncode()

    held = workshop.ends(5, **mine)

    assert "it is your own." in held.stderr
    assert held.stderr.splitlines()[-1].endswith(": harness stop")
    workshop.harness("stop", **mine).check_returncode()
    workshop.ends(0, **mine)


def test_a_worker_that_slept_past_its_lease_merges_nothing(make_workshop: Make, tmp_path: Path) -> None:
    workshop = make_workshop(mode="concurrent")
    started, go = tmp_path / "started", tmp_path / "go"
    waits = f"once sh touch {started}; while [ ! -f {go} ]; do sleep 0.02; done"
    workshop.add("Slow", "grep -q done f", do=f"{waits}\nwrite f done")
    sleeper = workshop.start(HARNESS_LEASE_SECONDS="1", until=started)
    asleep = [sleeper.pid, *descendants(sleeper.pid)]
    # It renews its lease all the time, and asleep with the lock of the list it would hold up everybody.
    with workshop.context().store.transaction("tasks"):
        signal_all(asleep, signal.SIGSTOP)

    workshop.wait_for("another one has it done", lambda: workshop.run().returncode == 0)
    done = workshop.sh("rev-parse", "main")
    go.touch()
    signal_all(asleep, signal.SIGCONT)

    sleeper.wait()
    assert workshop.sh("rev-parse", "main") == done
    workshop.all_is_well()


@pytest.mark.release
def test_what_a_run_that_was_killed_at_its_end_has_left_goes_with_the_next(workshop: Workshop) -> None:
    workshop.add("Wrong", "false", "--max-attempts", "1", do="write g x")
    workshop.ends(9)
    workshop.sh("worktree", "add", "-q", "--detach", str(workshop.work_tree()))
    workshop.sh("update-ref", "refs/harness/seen/main", "HEAD")
    old = sorted((workshop.top / ".harness/logs/task-001").iterdir())
    for log in old:
        os.utime(log, (0, 0))
    workshop.file_task("f")

    said = workshop.run()

    assert f"{len(old)} logs of 0.0 MB were removed: older than 30 days" in said.stdout, said.stdout
    assert not [log for log in old if log.exists()]
    assert list((workshop.top / ".harness/logs/task-002").iterdir())
    assert workshop.sh("for-each-ref", "refs/harness/seen") == "", "as 0.1.0 has left it"
    workshop.failures_are_kept()
    workshop.nothing_is_left_over()

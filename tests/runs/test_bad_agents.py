"""Agents that fail, lie, hang, or tear down what they stand on: said plainly, and nothing lost."""

from __future__ import annotations

import json
import resource
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness_lib.state import schema
from tests.runs.workshop import Workshop, descendants
from tests.system.git.gitrepo import sh

SOON = 3.0


def test_an_agent_that_is_not_installed_is_named_before_anything_begins(workshop: Workshop) -> None:
    workshop.file_task("f")

    said = workshop.harness("run", "--agent", "claude", PATH="/usr/bin:/bin")

    assert said.returncode == 7
    assert "there is no 'claude' on the PATH" in said.stderr
    assert workshop.state["session_count"] == 0


def test_an_agent_that_cannot_start_ends_the_run_and_costs_nothing(workshop: Workshop) -> None:
    workshop.file_task("f")

    said = workshop.run(agent="no-such-agent --yes")

    assert said.returncode == 7, said.stdout + said.stderr
    assert "no-such-agent" in said.stderr
    assert (workshop.statuses(), workshop.task("task-001")["attempts"]) == ({"task-001": "pending"}, 0)
    workshop.nothing_is_left_over()


def test_an_agent_that_cannot_start_for_one_task_does_not_keep_the_others(workshop: Workshop) -> None:
    workshop.add("Too long", "test -f f")
    workshop.file_task("g")

    said = workshop.run(
        agent='[ "$HARNESS_TASK_ID" = task-002 ] || { echo too long; exit 1; }; echo done > g'
    )

    assert said.returncode == 9
    assert workshop.statuses() == {"task-001": "pending", "task-002": "completed"}
    assert workshop.task("task-001")["attempts"] == 0
    status = workshop.harness("status").stdout
    assert "the agent cannot start: the agent ended with 1: too long" in status
    assert "harness retry task-001" in status
    workshop.nothing_is_left_over()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_agent_that_starts_for_no_task_ends_the_run_and_halts_none(
    workshop: Workshop, workers: str
) -> None:
    workshop.file_task("f")
    workshop.file_task("g")

    said = workshop.run("-j", workers, agent="no-such-agent --yes")

    assert said.returncode == 7, said.stdout + said.stderr
    assert [task.get("halt") for task in workshop.state["tasks"]] == [None, None]
    assert "ERROR [ENV_SETUP] the run ended: the agent cannot start" in workshop.harness("status").stdout
    workshop.ok("retry", "task-001")


def test_a_command_that_has_finished_may_end_with_any_code(workshop: Workshop, tmp_path: Path) -> None:
    workshop.file_task("f")

    said = workshop.run(agent=f"echo started >> {tmp_path / 'log'}; echo done > f; exit 3")

    assert said.returncode == 0, said.stdout + said.stderr
    assert (tmp_path / "log").read_text().split() == ["started"]
    workshop.done_is_done()


def test_what_a_check_leaves_before_the_next_agent_is_taken_back(workshop: Workshop) -> None:
    workshop.add(
        "Two lives",
        "touch trace; echo spoilt > README.md; grep -q done f",
        do="write f half\nonce exit 3\nsh test ! -f trace\nwrite f done",
    )

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert workshop.task("task-001")["attempts"] == 0
    assert (workshop.top / "README.md").read_text() == "hello\n"
    workshop.nothing_is_left_over()


def test_an_agent_that_does_nothing_fails_by_its_check(workshop: Workshop) -> None:
    workshop.add("Something", "test -f f", "--max-attempts", "2")

    said = workshop.run(agent="true")

    assert said.returncode == 9
    assert workshop.task("task-001")["attempts"] == 2
    workshop.nothing_is_left_over()


def test_an_agent_that_prints_without_end_is_stopped(workshop: Workshop) -> None:
    workshop.add("Loud", "test -f f", "--max-attempts", "1")

    said = workshop.run(agent="yes", HARNESS_LOG_LIMIT_BYTES="1000000")

    assert said.returncode == 9
    assert "[TIMEOUT] the agent printed without end" in workshop.task("task-001")["error_log"][0]


def test_an_agent_that_is_silent_for_too_long_is_stopped(workshop: Workshop) -> None:
    workshop.add("Quiet", "test -f f", "--max-attempts", "1", do="write g x\nsleep 600")

    said = workshop.run("--silence", "0.02")

    assert said.returncode == 9
    assert "[TIMEOUT] the agent has said nothing" in workshop.task("task-001")["error_log"][0]
    workshop.failures_are_kept()
    workshop.nothing_is_left_over()


def test_an_agent_that_goes_round_in_circles_is_stopped(workshop: Workshop) -> None:
    workshop.add("Round", "test -f f", "--max-attempts", "1")
    loop = 'while :; do echo \'{"action": "ls"}\'; sleep 0.02; done'

    said = workshop.run(agent=loop)

    assert said.returncode == 9
    assert "[TIMEOUT] the agent repeats itself" in workshop.task("task-001")["error_log"][0]


def test_an_agent_that_costs_too_much_is_stopped(workshop: Workshop) -> None:
    workshop.add("Dear", "test -f f", "--max-attempts", "1")

    said = workshop.run("--task-cost", "1", agent="echo '{\"cost_usd\": 1.5}'; sleep 600")

    assert said.returncode == 9
    assert "[TASK_EXEC] the limit of one task is reached (cost: $1.50 of $1.00)" in str(workshop.state)


def test_a_budget_of_the_run_ends_it_after_what_runs(workshop: Workshop) -> None:
    for name in ("one", "two", "three"):
        workshop.file_task(name)

    said = workshop.run("--max-cost", "1", "--json", agent="echo '{\"cost_usd\": 1.5}'; echo done > one")

    answer = json.loads(said.stdout.splitlines()[-1])
    assert (said.returncode, answer["stop"]) == (9, {"reason": "limit"})
    assert schema.reply_problems(answer) == []
    assert answer["spent"]["cost_usd"] == pytest.approx(1.5)
    told = "A limit of this run is reached (cost: $1.50 of $1.00). Go on with a higher one:"
    assert answer["message"].splitlines()[0] == f"{told} harness run --help"
    assert workshop.statuses() == {"task-001": "completed", "task-002": "pending", "task-003": "pending"}


def test_a_limit_that_the_last_task_reaches_ends_nothing(workshop: Workshop) -> None:
    workshop.file_task("one")

    said = workshop.run("--max-cost", "1", agent="echo '{\"cost_usd\": 1.5}'; echo done > one")

    assert said.returncode == 0, said.stdout + said.stderr
    assert "every check runs once more" in said.stdout
    assert "run=done cost_usd=1.50" in workshop.harness("log").stdout


def test_a_usage_limit_is_waited_out_and_costs_no_attempt(workshop: Workshop, tmp_path: Path) -> None:
    workshop.add("Limited", "grep -q done f")
    resets = (datetime.now(timezone.utc) + timedelta(seconds=SOON)).isoformat()
    seen = tmp_path / "seen"
    agent = (
        f"if [ -f {seen} ]; then echo done >> f; else touch {seen}; echo half > f; "
        f"echo '{json.dumps({'limit_resets_at': resets})}'; exit 1; fi"
    )
    began = time.monotonic()

    said = workshop.run(agent=agent)

    assert said.returncode == 0, said.stdout + said.stderr
    assert time.monotonic() - began > SOON
    assert workshop.task("task-001")["attempts"] == 0
    assert (workshop.top / "f").read_text().split() == ["half", "done"]


def test_trouble_of_the_providers_is_tried_again(workshop: Workshop, tmp_path: Path) -> None:
    workshop.add("Shaky", "grep -q done f")
    seen = tmp_path / "seen"
    trouble = json.dumps({"transient": "529 overloaded"})
    agent = f"if [ -f {seen} ]; then echo done >> f; else touch {seen}; echo '{trouble}'; exit 1; fi"

    said = workshop.run(agent=agent)

    assert said.returncode == 0, said.stdout + said.stderr
    assert workshop.task("task-001")["attempts"] == 0
    assert "529 overloaded" in said.stdout


def test_an_agent_that_is_not_logged_in_ends_the_run(workshop: Workshop) -> None:
    workshop.file_task("f")

    said = workshop.run(agent=f"echo '{json.dumps({'login': 'no key'})}'; exit 1")

    assert said.returncode == 7
    assert "no key" in said.stderr
    assert workshop.task("task-001")["attempts"] == 0
    workshop.nothing_is_left_over()


@pytest.mark.parametrize(
    "harm",
    [
        "sh git checkout -q -b elsewhere && git commit -q --allow-empty -m mine",
        "sh git stash -q; true",
        "sh rm .git",
        "sh touch $(git rev-parse --git-dir)/index.lock",
    ],
)
def test_whatever_an_agent_does_to_git_its_work_arrives_once(workshop: Workshop, harm: str) -> None:
    workshop.file_task("first")
    assert workshop.run().returncode == 0
    workshop.add("Harm", "grep -q done f", do=f"{harm}\nwrite f done")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert (workshop.top / "first").exists()
    assert len(sh(workshop.top, "worktree", "list").splitlines()) == 1
    workshop.done_is_done()


@pytest.mark.parametrize(
    "harm",
    [
        "sh git reset -q --hard HEAD~1 && git commit -q --allow-empty -m mine",
        "sh git commit -q --allow-empty -m mine && git rebase -q --root -f",
        "sh git checkout -q --orphan o && git commit -qm mine && git checkout -q --detach; git branch -qD o",
    ],
)
def test_work_that_takes_away_what_it_began_with_is_kept_and_done_anew(workshop: Workshop, harm: str) -> None:
    """Nobody can tell which of the commits that it has left out it meant to: the next agent is told."""
    workshop.file_task("first")
    assert workshop.run().returncode == 0
    base = sh(workshop.top, "rev-parse", "main")
    workshop.add("Harm", "grep -q done f", do=f"first {harm}\nwrite f done")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    (blame,) = workshop.task("task-002")["error_log"]
    assert f"no longer has the commit {base[:12]}" in blame
    assert (workshop.top / "first").exists()
    assert workshop.git.is_ancestor(base, "refs/heads/main")
    rescue = "refs/harness/rescue/task-002/1"
    assert sh(workshop.top, "show", f"{rescue}:f") == "done"
    assert "mine" in sh(workshop.top, "log", "--format=%s", rescue).splitlines()
    workshop.done_is_done()
    workshop.failures_are_kept()
    workshop.nothing_is_left_over()


def test_an_agent_that_deletes_its_work_tree_has_failed(workshop: Workshop) -> None:
    workshop.add("Gone", "grep -q done f", do='first sh rm -rf "$PWD"\nwrite f done')

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert workshop.task("task-001")["attempts"] == 1
    assert "work tree" in workshop.task("task-001")["error_log"][0]
    workshop.done_is_done()
    workshop.nothing_is_left_over()


@pytest.mark.parametrize(
    ("harm", "made"),
    [("sh rm .git && git init -q", "f"), ("sh mkdir n && git -C n init -q && echo x > n/f", "n/f")],
)
def test_what_no_commit_can_hold_is_moved_aside_and_not_deleted(
    workshop: Workshop, harm: str, made: str
) -> None:
    """An agent makes a repository of its own, in the place of the work tree or inside it."""
    workshop.add("Own", "false", "--max-attempts", "1", do=f"{harm}\nwrite f precious")

    said = workshop.run()

    assert said.returncode == 9, said.stdout + said.stderr
    (kept,) = (workshop.home / "set-aside").glob("*/*")
    assert (kept / made).exists()
    assert str(kept) in said.stdout
    workshop.nothing_is_left_over()


def test_what_an_agent_leaves_running_is_ended(workshop: Workshop) -> None:
    workshop.add("Daemon", "grep -q done f", do="sh setsid sleep 600 & \nwrite f done")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    workshop.nothing_is_left_over()


CHEAT = """
import json, os, pathlib
p = pathlib.Path(os.environ["HARNESS_STATE_ROOT"], "harness-tasks.json")
d = json.loads(p.read_text())
d["tasks"][0]["status"] = STATUS
d["tasks"][0]["title"] = "never mind"
p.write_text(json.dumps(d))
"""


def test_an_agent_that_marks_its_own_task_as_done_is_asked_for_the_check_all_the_same(
    workshop: Workshop,
) -> None:
    workshop.add("Honest work", "grep -q done f")
    cheat = workshop.top.parent / "cheat.py"
    cheat.write_text(CHEAT.replace("STATUS", '"completed"'))

    said = workshop.run(agent=f"if [ -f {cheat} ]; then python3 {cheat}; rm {cheat}; else echo done > f; fi")

    assert said.returncode == 0, said.stdout + said.stderr
    (blame,) = workshop.task("task-001")["error_log"]
    assert "The check failed" in blame
    assert workshop.task("task-001")["proof"]
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_a_list_that_an_agent_has_broken_stops_the_run_and_names_the_field(workshop: Workshop) -> None:
    workshop.add("Vandal", "grep -q done f")
    cheat = workshop.top.parent / "cheat.py"
    cheat.write_text(CHEAT.replace("STATUS", '"mostly done"'))

    said = workshop.run(agent=f"python3 {cheat}; echo done > f; sleep 1")

    assert said.returncode == 3, said.stdout + said.stderr
    assert "tasks[0].status" in said.stderr
    listing = workshop.top / "harness-tasks.json"
    listing.write_text(listing.read_text().replace("mostly done", "in_progress"))
    assert workshop.run().returncode == 0
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_a_task_without_a_check_waits_for_a_person_and_the_others_go_on(workshop: Workshop) -> None:
    workshop.ok("add", "No check")
    workshop.file_task("f")

    said = workshop.run()

    assert said.returncode == 9, said.stdout + said.stderr
    assert workshop.statuses() == {"task-001": "pending", "task-002": "completed"}
    assert "Missing validation.command" in workshop.task("task-001")["halt"]
    workshop.nothing_is_left_over()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits a process that runs")
def test_a_disk_that_is_full_stops_the_run_and_the_next_one_goes_on(
    workshop: Workshop, tmp_path: Path
) -> None:
    """No process of the run can write more than a few bytes to a file, as where the disk is full."""
    started, go = tmp_path / "started", tmp_path / "go"
    # The list is larger than what can still be written, the lines that are printed are not.
    workshop.add("x" * 900, "grep -q done f", do=f"write f done\ntouch {started}\nonce wait {go}")
    workshop.add("y" * 900, "grep -q done g", do="write g done")
    run = workshop.start()
    workshop.wait_for("the agent starts", started.exists)

    for pid in (run.pid, *descendants(run.pid)):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (2500, 2500))
    go.touch()

    assert run.wait(90) == 7, workshop.printed
    assert workshop.task("task-001")["attempts"] == 0
    assert workshop.run().returncode == 0
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_an_agent_that_stops_itself_at_its_cost_is_followed_by_no_other(workshop: Workshop) -> None:
    workshop.add("Dear", "test -f f", "--max-attempts", "1")

    said = workshop.run("--task-cost", "1", agent="echo '{\"cost_usd\": 1.5}'; exit 1")

    assert said.returncode == 9, said.stdout + said.stderr
    assert "[TASK_EXEC] the limit of one task is reached (cost: $1.50 of $1.00)" in str(workshop.state)
    assert "pauses" not in said.stdout


GIT_DIR = "$(git rev-parse --git-dir)"
LOGS = "$HARNESS_STATE_ROOT/.harness/logs/$HARNESS_TASK_ID"


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (f"printf broken > {GIT_DIR}/index", "index file"),
        (f"rm {GIT_DIR}/index; mkdir {GIT_DIR}/index", "index file"),
        (f"rm -r {LOGS}; touch {LOGS}", "logs/task-001"),
    ],
    ids=["a broken index", "no index", "a file in place of its logs"],
)
def test_an_agent_that_breaks_what_its_own_task_needs_stops_no_other(
    workshop: Workshop, workers: str, harm: str, told: str
) -> None:
    """Nobody is blamed; after some tries the task is halted with its work kept, and the others are done."""
    workshop.add("Breaks", "grep -q done a", do=f"write a done\nsh {harm}")
    workshop.file_task("b")
    workshop.file_task("c")

    said = workshop.run("-j", workers)

    assert said.returncode == 9, said.stdout + said.stderr
    assert workshop.statuses() == {"task-001": "pending", "task-002": "completed", "task-003": "completed"}
    broken = workshop.task("task-001")
    assert (broken["attempts"], told in broken["halt"]) == (0, True), broken
    assert "harness retry task-001" in broken["halt"]
    assert "space" not in said.stdout + said.stderr
    assert not [line for line in said.stdout.splitlines() if "rescue show /" in line], said.stdout
    aside = [path.read_text() for path in (workshop.home / "set-aside").rglob("a")]
    refs = sh(workshop.top, "for-each-ref", "--format=%(refname)", "refs/harness/rescue").split()
    kept = [sh(workshop.top, "show", f"{ref}:a") for ref in refs]
    assert "done" in "".join(aside + kept)

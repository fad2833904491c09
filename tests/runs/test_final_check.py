"""When the list is done every check runs once more on the final tree, and what fails there is not done."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness_lib.attempts import recheck, worker_worktrees
from harness_lib.rules import rechecks
from harness_lib.runs import ending, final_check, scheduler
from harness_lib.runs.options import Options
from harness_lib.state.answers import Answers
from harness_lib.system.clock import SYSTEM
from harness_lib.task import State, Task, Validation
from tests.attempts.rechecking import context, done
from tests.runs.workshop import Workshop
from tests.verbs.project import Agent, Project


def test_a_night_in_which_three_fail_and_one_breaks_another_names_the_broken_one(workshop: Workshop) -> None:
    """The fourth of six takes away what the first has made, and the agent cannot repair it."""
    for number in range(1, 7):
        check, do = f"test -f f{number}", f"write f{number} done"
        if number in (2, 3, 5):
            do = "write other x"
        if number == 4:
            do += "\nsh git rm -q f1"
        workshop.add(f"Task {number}", check, "--max-attempts", "1", "--red-first", do=do)

    said = workshop.run("--final-check", "all")

    assert said.returncode == 9
    assert "task-001 is broken on the final tree" in said.stdout
    assert re.search(r"\n  task-001 Task 1 +red since task-004 changed f1 ", said.stdout)
    red = "red: task-001 Task 1: its check fails at "
    assert said.stdout.splitlines()[-1] == "next: harness retry task-001"
    (repair,) = workshop.state["tasks"][6:]
    assert repair["title"] == "Repair what a later task broke: Task 1"
    assert (repair["status"], repair["priority"], repair["depends_on"]) == ("failed", "P0", ["task-001"])
    assert "red_first" not in repair["validation"], "the user may have put it right by then"
    next_day = workshop.harness("status")
    assert red in next_day.stdout
    assert "100 %" not in next_day.stdout
    assert workshop.harness("check").returncode == 1
    assert (workshop.top / ".harness-active").exists()
    workshop.nothing_is_left_over()


def test_what_broke_a_red_task_is_found_in_work_that_waits_beside_the_branch(workshop: Workshop) -> None:
    workshop.add("One", "grep -q good f", do="sh echo good > f")
    workshop.add("Two", "test -f f", "--depends-on", "task-001", do="sh echo bad > f")
    workshop.put("README.md", "the user is writing\n")

    said = workshop.run("--final-check", "all", "--max-tasks", "2")

    assert re.search(r"\n  task-001 One +red since task-002 changed f ", said.stdout), said.stdout


@pytest.mark.release
def test_after_a_limit_what_was_broken_is_said_and_nobody_repairs_it(workshop: Workshop) -> None:
    workshop.add("One", "test -f one", do="write one x")
    workshop.add("Two", "test -f two", do="write two x\nsh git rm -q one")
    workshop.add("Three", "test -f three", do="write three x")

    said = workshop.run("--max-tasks", "2", "--json", "--final-check", "all")

    assert said.returncode == 9
    answer = json.loads(said.stdout.splitlines()[-1])
    assert (answer["stop"], answer["next"]) == ({"reason": "recheck_failed"}, "harness retry task-001")
    limit, but, *_ = answer["message"].splitlines()
    assert limit.startswith("A limit of this run is reached (attempts: 2 of 2).")
    assert limit.endswith(": harness run --help")
    assert but == "Checks of completed tasks fail on a clean checkout of what is committed."
    assert len(workshop.state["tasks"]) == 3
    assert workshop.task("task-002")["recheck"]["passed"]
    next_day = workshop.harness("status").stdout
    assert next_day.splitlines()[-1] == "next: harness retry task-001", "before what is pending"


def test_a_repair_that_another_run_takes_needs_no_retry(workshop: Workshop) -> None:
    workshop.add("One", "test -f one", do="write one x")
    workshop.add("Two", "test -f two", do="write two x\nsh git rm -q one")

    said = workshop.run("--max-tasks", "3", "--final-check", "all")

    assert workshop.task("task-003")["repairs"] == "task-001"
    assert said.stdout.splitlines()[-1].startswith("next: harness run ")
    assert workshop.harness("status").stdout.splitlines()[-1] == "next: harness start"


def test_of_changed_files_only_the_checks_run_the_rest_is_counted(workshop: Workshop, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    for name in ("one", "two"):
        workshop.add(name, f"echo {name} >> {ran}; test -f {name}", do=f"write {name} x")
    workshop.add("three", f"echo three >> {ran}; test -f three", do="write three x\nwrite two y")

    said = workshop.ends(0, "--no-precheck", "--final-check", "changed")

    assert ran.read_text().split() == ["one", "two", "three", "two"]
    left_out = "2 tasks left out, as no file that their checks go by has changed"
    assert f"final check: {left_out}" in said.stdout
    assert "recheck" not in workshop.task("task-001")


# -- the final check of a run: which task is a repair, and what a limit leaves of it


DONE = Task("task-001", "Do it", status="completed", validation=Validation("true"), completed_at="2025-07-01")


@pytest.mark.parametrize(
    ("other", "is_repaired"),
    [
        pytest.param(
            {"status": "failed", "attempts": 3, "repairs": "task-001"}, True, id="one that has failed"
        ),
        pytest.param({"title": "Repair what a later task broke: Do it"}, False, id="only a title says so"),
        pytest.param({"title": "Put it right", "repairs": "task-001"}, True, id="it is done"),
    ],
)
def test_what_has_been_repaired_is_not_repaired_again(other: dict[str, Any], is_repaired: bool) -> None:
    repair = DONE._replace(**{"id": "task-002", "completed_at": "2025-07-02", **other})
    questions = Answers(State(tasks=(DONE, repair)), SYSTEM.now())

    assert final_check._is_repaired(questions, (("true", None), "")) is is_repaired


@pytest.mark.parametrize(("seconds", "is_found"), [(0.0, False), (900.0, True)])
def test_after_a_limit_the_final_check_ends_in_time_and_adds_no_task(
    project: Project,
    agent: Agent,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    *,
    is_found: bool,
) -> None:
    ctx = context(project, tmp_path / "home")
    ctx.target = "refs/heads/main"
    run = scheduler.Scheduler(ctx, Options(), lambda _event, _state: None)
    done(project, agent, "test -f a", "a")
    project.git("rm", "-q", "a")
    project.commit("by hand")
    run.why = "limit"
    monkeypatch.setattr(scheduler, "FINAL_SECONDS", seconds)

    run.check_at_the_end(worker_worktrees.directory_of(ctx, "run-1"))

    assert ("recheck" in project.task()) is is_found
    assert len(project.state["tasks"]) == 1
    left = "" if is_found else "it ended before 1 task: harness validate --all --committed"
    assert run.left_out == left


def test_a_check_that_failed_here_runs_again(project: Project, agent: Agent, tmp_path: Path) -> None:
    ctx = context(project, tmp_path / "home")
    ctx.target = "refs/heads/main"
    there, once = tmp_path / "there", tmp_path / "once"
    done(project, agent, f"test -f a || test -f '{there}' && ! rm '{once}'", "a")
    project.git("rm", "-q", "a")
    project.commit("by hand")
    place = worker_worktrees.directory_of(ctx, "run-1")
    told: list[str] = []

    def checked() -> str | None:
        return final_check.run(ctx, place, "all", told.append, lambda: True, repairs=False).tip

    assert checked() is None
    # A red task counts more than any reason but what the user knows, or must settle first.
    outcomes = [ending._outcome(ctx, why) for why in ("limit", "interrupted", "stuck")]
    assert outcomes == ["recheck_failed", "interrupted", "stuck"]
    there.touch()
    assert checked() == project.head
    once.touch()
    project.commit(files={"b": "other content\n"})
    assert checked() == project.head
    assert told[-1].startswith("task-001 is flaky: "), told
    assert ending._outcome(ctx, "recheck_failed") == "done"
    agent.ok("add", "More", "--validate", "false")
    assert ending._outcome(ctx, "recheck_failed") == "blocked"


def test_of_more_than_200_tasks_those_are_checked_whose_files_have_changed(
    project: Project, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = context(project, tmp_path / "home")
    done(project, agent, "test -f a", "a")
    due = recheck.due(ctx, project.head)

    assert rechecks.MOST == 200
    for most, kept in ((1, ["task-001"]), (0, [])):
        monkeypatch.setattr(rechecks, "MOST", most)
        assert [task.id for task in final_check._within(ctx, None, due, project.head)] == kept
    ctx.target = "refs/heads/main"
    place = worker_worktrees.directory_of(ctx, "run-1")
    passed = final_check.run(ctx, place, None, lambda _line: None, lambda: True)
    assert (passed.tip, passed.left[:15]) == (None, "1 task left out"), "not every check has passed"

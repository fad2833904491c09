"""The final check of a run: which task is a repair, and what a limit leaves of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.attempts import recheck, worker_worktrees
from harness_lib.rules import rechecks
from harness_lib.runs import final_check, scheduler
from harness_lib.runs.options import Options
from harness_lib.system.clock import SYSTEM
from harness_lib.task import Task, Validation
from tests.attempts.rechecking import context, done
from tests.state.memorystore.rows import Rows, RowsAnswers
from tests.verbs.project import Agent, Project

DONE = Task("task-001", "Do it", status="completed", validation=Validation("true"), completed_at="2025-07-01")


def test_a_repair_that_has_failed_is_not_tried_by_another_one() -> None:
    failed = DONE._replace(id="task-002", status="failed", attempts=3, repairs="task-001")
    rows = Rows()
    for task in (DONE, failed):
        rows.put(task)

    assert final_check._is_repaired(RowsAnswers(rows, SYSTEM.now()), (("true", None), ""))


@pytest.mark.parametrize(
    ("title", "repairs", "is_repaired"),
    [
        ("Repair what a later task broke: Do it", None, False),
        ("Put it right", "task-001", True),
    ],
)
def test_a_title_makes_no_repair(title: str, repairs: str | None, is_repaired: bool) -> None:
    other = DONE._replace(id="task-002", title=title, repairs=repairs, completed_at="2025-07-02")
    rows = Rows()
    for task in (DONE, other):
        rows.put(task)
    questions = RowsAnswers(rows, SYSTEM.now())
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
    left = "" if is_found else "the final check ended before 1 task: harness validate --all --committed"
    assert run.left_out == left


def test_of_more_than_200_tasks_those_are_checked_whose_files_have_changed(
    project: Project, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = context(project, tmp_path / "home")
    done(project, agent, "test -f a", "a")
    due = recheck.due(ctx, project.head)

    assert rechecks.MOST == 200
    assert [task.id for task in final_check._within(ctx, None, due, project.head)] == ["task-001"]
    monkeypatch.setattr(rechecks, "MOST", 0)
    assert final_check._within(ctx, None, due, project.head) == []

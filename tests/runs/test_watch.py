"""`harness status --watch` in a pipe: a line when something has changed, and an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from harness_lib.core.context import Context
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.verbs import status
from tests.verbs.project import Agent, Project


@dataclass
class Story(Clock):
    """Nobody sleeps: each wait is the moment at which the next thing happens."""

    events: Iterator[Callable[[], object]]
    seconds: float = field(default=0.0)

    def now(self) -> datetime:
        return SYSTEM.now()

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        next(self.events, lambda: None)()


def lines_about(project: Project, *events: Callable[[], object]) -> list[str | None]:
    """Return what is said about each view until nothing is left to do."""
    ctx = Context(env={}, cwd=project.top, clock=Story(iter(events)))
    views = list(status.follow(ctx, 20))
    return [status.difference(before, after) for before, after in pairwise(views)]


def test_each_change_is_one_line_and_the_end_comes_by_itself(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    said = lines_about(project, lambda: agent.ok("claim"), lambda: None, lambda: agent("finish"))
    assert [line and line.partition("; ")[2] for line in said] == [
        "[in_progress] task-001: One (0/3)",
        "[completed] task-001: One (0/3)",
    ]


def test_an_empty_list_is_finished_at_once(project: Project) -> None:
    assert lines_about(project) == []


def test_a_new_task_is_seen(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    said = lines_about(
        project,
        lambda: agent.ok("add", "Two", "--validate", "true"),
        lambda: (agent("claim"), agent("finish"), agent("claim"), agent("finish")),
    )
    assert said[0] is not None
    assert "[pending] task-002: Two" in said[0]


def test_a_list_that_the_user_is_editing_is_a_warning_and_not_the_end(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    project.without_proofs()
    good = project.file.read_text(encoding="utf-8")
    said = lines_about(
        project,
        lambda: project.file.write_text(good.replace('"pending"', '"pnding"'), encoding="utf-8"),
        lambda: project.file.write_text(good.replace('"pending"', '"completed"'), encoding="utf-8"),
    )
    assert said[0] is not None
    assert said[0].startswith("warning: harness-tasks.json: tasks[0].status")
    assert said[1] is not None
    assert "100 %" in said[1]


def test_a_log_line_alone_is_no_line_in_a_pipe(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")

    def note() -> None:
        with (project.top / "harness-progress.txt").open("a", encoding="utf-8") as log:
            log.write("[2025-07-01T10:00:00Z] [SESSION-1] WARN a word\n")

    said = lines_about(project, note, lambda: (agent("claim"), agent("finish")))
    assert said[0] is None
    assert said[-1] is not None

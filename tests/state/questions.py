"""Every question that a store can be asked, asked; and a clock that moves when a test says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone

from harness_lib.state.api import Questions
from harness_lib.system.clock import Clock
from harness_lib.task import Task
from harness_lib.text import folded

WORKERS = ("one", "one#2", "two")
COMMITS = ("a" * 40, "b" * 40)
BEGAN = datetime(2025, 7, 1, 10, tzinfo=timezone.utc)


class Hands(Clock):
    """A clock whose hands are moved."""

    def __init__(self) -> None:
        self.at = BEGAN

    def now(self) -> datetime:
        return self.at

    def move(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


def answers(questions: Questions) -> dict[str, object]:
    """Return the answer to each question, by its name; those about one thing are asked about each.

    What stores look up, or ask each other, must be what a walk through the tasks finds.
    """
    tasks = questions.search()
    found = _asked(questions, tasks)
    assert found | _walked(tasks) == found
    return found


def _asked(questions: Questions, tasks: Sequence[Task]) -> dict[str, object]:
    ids = [task.id for task in tasks]
    titles = [task.title for task in tasks]
    return {
        "now": questions.now,
        "warnings": tuple(questions.warnings),
        "concurrent": questions.concurrent,
        "settings": questions.settings(),
        "counts": questions.counts(),
        "ahead": questions.ahead(),
        "work_remains": questions.work_remains(),
        "holds_agents": questions.holds_agents(),
        "no_work": questions.no_work(),
        "awaits_user": questions.awaits_user(),
        "task": [questions.task(name) for name in (*ids, "nobody")],
        "tasks": questions.tasks((*ids[::-2], "nobody")),
        "position": [questions.position(name) for name in ids],
        "why": [questions.why(name) for name in ids],
        "dependents": [questions.dependents(name) for name in ids],
        "blocked_through": [questions.blocked_through(name) for name in ids],
        "search": [
            tasks,
            questions.search("pending", "failed"),
            questions.search("completed", limit=2),
            *(questions.search(after=name, limit=2) for name in (*ids, "nobody")),
        ],
        "interesting": [questions.interesting(), questions.interesting(2)],
        "claimable": questions.claimable(),
        "next_ready": [questions.next_ready(), *(questions.next_ready(ids[::step]) for step in (1, 2, 3))],
        "held_by": [questions.held_by(worker) for worker in (*WORKERS, "")],
        "in_progress": questions.in_progress(),
        "expired": questions.expired(),
        "halted": questions.halted(),
        "unproven": questions.unproven(),
        "provable": questions.provable(),
        "noted": [questions.noted(name, 2) for name in ids],
        "made": [questions.made(commit) for commit in COMMITS],
        "worked_on_since": [
            questions.worked_on_since(BEGAN),
            questions.worked_on_since(questions.now - timedelta(minutes=5)),
        ],
        "titled": [questions.titled(title.upper()) for title in (*titles, "no such title")],
        "highest_number": questions.highest_number(),
        "rings": dict(questions.rings()),
        "cycles": questions.cycles(),
        "unreachable": questions.unreachable(),
        "commands": questions.commands(),
        "commands_mark": questions.commands_mark(),
        "passed": [
            questions.passed(task._replace(started_at_commit=commit))
            for task in tasks
            for commit in (None, *COMMITS)
        ],
        "plan_header": [questions.plan_header(plan) for plan in ("docs/plan.md", "no such plan")],
        "proposals": questions.proposals(),
        "session_count": questions.session_count,
        "last_session": questions.last_session,
        "has_had_sessions": questions.has_had_sessions,
        "sessions": questions.sessions(),
        "session": [questions.session(worker) for worker in WORKERS],
        "session_spent": [questions.session_spent(session) for session in questions.sessions()],
        "sessions_spent": questions.sessions_spent(),
    }


def _walked(tasks: Sequence[Task]) -> dict[str, object]:
    """Return the answers that need neither rules nor an index."""
    ids = [task.id for task in tasks]
    completed = [task for task in tasks if task.status == "completed"]
    behind = [*(tasks[place : place + 2] for place in range(1, len(tasks) + 1)), ()]
    numbers = [name.removeprefix("task-") for name in ids if name.startswith("task-")]
    titles = [*(task.title for task in tasks), "no such title"]
    return {
        "task": [*tasks, None],
        "tasks": tuple(tasks[::-2]),
        "position": [*range(len(tasks))],
        "search": [
            tasks,
            tuple(task for task in tasks if task.status in ("pending", "failed")),
            tuple(completed[:2]),
            *behind,
        ],
        "provable": tuple(task for task in completed if task.unproven and task.intent is None),
        "made": [tuple(task.id for task in tasks if commit in _commits(task)) for commit in COMMITS],
        "titled": [
            tuple(task.id for task in tasks if folded(task.title) == folded(title)) for title in titles
        ],
        "highest_number": max((int(number) for number in numbers if number.isdecimal()), default=0),
    }


def _commits(task: Task) -> Iterator[str | None]:
    yield task.completed_commit
    if task.intent is not None and task.intent.action == "commit":
        yield task.intent.commit

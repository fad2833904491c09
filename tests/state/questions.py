"""Every question that a store can be asked, asked; and a clock that moves when a test says so."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from harness_lib.state.api import Questions
from harness_lib.system.clock import Clock

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
    """Return the answer to each question, by its name; those about one thing are asked about each."""
    tasks = questions.search()
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

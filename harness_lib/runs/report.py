"""Say what one run has done, for its JSON reply, and report on all runs at its end."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from harness_lib.attempts import target_branch
from harness_lib.core.context import Context
from harness_lib.rules import attempts
from harness_lib.runs import report_facts, report_text
from harness_lib.state.api import Questions
from harness_lib.task import Attempt, Task

Work = list[tuple[Task, tuple[Attempt, ...]]]


class Beginning(NamedTuple):
    """The beginning of a run: when, the commit of its branch, and which attempts had ended by then.

    `moment` has whole seconds, like all times on disk; `over` are (task, fence) of attempts ended in that
    second.
    """

    moment: datetime
    tip: str | None
    over: frozenset[tuple[str, int]]


def beginning(ctx: Context) -> Beginning:
    """Return the beginning of a run that starts now."""
    assert ctx.target is not None, "BUG: a run without a target."
    moment = ctx.clock.now().replace(microsecond=0)
    tasks = ctx.store.ask().worked_on_since(moment)
    over = frozenset((task.id, each.fence) for task in tasks for each in attempts.since(task, moment))
    return Beginning(moment, target_branch.tip(ctx.git, ctx.target), over)


def lines(ctx: Context, first: list[str]) -> list[str]:
    """Return the report on all runs in question, after the lines `first`."""
    return report_text.lines(report_facts.gather(ctx), first, width=report_text.columns())


def tasks(ctx: Context, began: Beginning) -> list[dict[str, object]]:
    """Return what a run that started at `began` did for each of its tasks, for JSON."""
    return [_told(task, own) for task, own in _work(ctx.store.ask(), began)]


def _told(task: Task, own: tuple[Attempt, ...]) -> dict[str, object]:
    cost, tokens, seconds = _total(own)
    return {
        "id": task.id,
        "outcome": own[-1].outcome,
        "commit": task.completed_commit,
        "cost_usd": round(cost, 4),
        "tokens": tokens,
        "seconds": round(seconds),
        "warnings": list(task.look_at),
    }


def _work(questions: Questions, began: Beginning) -> Work:
    """Return the tasks that the run has worked on."""
    work = []
    for task in questions.worked_on_since(began.moment):
        own = attempts.since(task, began.moment)
        own = tuple(each for each in own if (task.id, each.fence) not in began.over)
        if own:
            work.append((task, own))
    return work


def has_completed(questions: Questions, began: Beginning) -> bool:
    """Return whether a run that started at `began` has completed a task."""
    return any(_is_done(own[-1]) for _, own in _work(questions, began))


def _is_done(attempt: Attempt) -> bool:
    return attempt.outcome == "completed"


def _total(own: tuple[Attempt, ...]) -> tuple[float, int, float]:
    return (
        sum(each.cost_usd for each in own),
        sum(each.tokens for each in own),
        sum(map(attempts.seconds, own)),
    )

"""Write the report of a run that has ended: at most twenty lines, those that need the user first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import pending_merges, rescue_refs, target_branch, task_brief
from harness_lib.checks import check_of
from harness_lib.core import proposals, quoting, rechecked
from harness_lib.core.context import Context
from harness_lib.rules import attempts, failures, halting
from harness_lib.rules.budget import Spent
from harness_lib.runs import overview, progress
from harness_lib.state.api import Questions
from harness_lib.task import Attempt, Task

MOST_LINES = 20
LINE_LENGTH = 400
TITLE_LENGTH = 60
REASON_LENGTH = 160
ANSWERS_LENGTH = 320
FAILED = 6
HALTED = 4
DEAREST = 3
LOOK_AT = 4
SHORT = 12

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


def lines(ctx: Context, began: Beginning, first: list[str], spent: Spent) -> list[str]:
    """Return the report, after the line `first`, of a run that started at `began` and used up `spent`."""
    questions = ctx.store.ask()
    work = _work(questions, began)
    report = [*first, _counted(questions, work), *rechecked.lines(ctx, questions)]
    report += _some("failed", [_failed(ctx, task) for task in questions.search("failed")], FAILED)
    report += _some("halted", [_halted(task) for task in questions.halted() if _waits(task)], HALTED)
    report += _look_at(work)
    report += proposals.lines(questions)
    report += _dearest(work)
    if spent.tokens or spent.cost:
        report.append(f"spent: ${spent.cost:.2f}, {spent.tokens:,} tokens, {progress.span(spent.seconds)}")
    where = _where(ctx, work, began.tip)
    told = [quoting.one_line(line, LINE_LENGTH) for line in report if line]
    # Its length is bounded already, and it ends with a command.
    return [*told[: MOST_LINES - 1], where] if where else told[:MOST_LINES]


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


def _counted(questions: Questions, work: Work) -> str:
    n = questions.counts()
    in_run = sum(_is_done(own[-1]) for _, own in work)
    parts = [
        f"{n.completed} completed" + (f" ({in_run} in this run)" if in_run else ""),
        f"{n.permanent} failed for good" if n.permanent else "",
        f"{n.retryable} failed, to be tried again" if n.retryable else "",
        f"{n.pending} pending" + (f" ({n.blocked} wait for a failed one)" if n.blocked else "")
        if n.pending
        else "",
        f"{n.in_progress} in progress" if n.in_progress else "",
    ]
    return f"{n.total} tasks: {', '.join(filter(None, parts))}"


def has_completed(questions: Questions, began: Beginning) -> bool:
    """Return whether a run that started at `began` has completed a task."""
    return any(_is_done(own[-1]) for _, own in _work(questions, began))


def _is_done(attempt: Attempt) -> bool:
    return attempt.outcome == "completed"


def _failed(ctx: Context, task: Task) -> str:
    reason = quoting.one_line(
        task.error_log[-1] if task.error_log else "no reason is recorded", REASON_LENGTH
    )
    again = "" if failures.is_permanent(task) else " (to be tried again)"
    kept = task_brief.attempts_kept(task, ctx.git)
    where = f"; its work: {rescue_refs.show_command(kept[-1])}" if kept else ""
    return f"{_named(task)}{again}: {reason.removesuffix('.') if where else reason}{where}"


def _waits(task: Task) -> bool:
    return task.halt is not None and task.status in ("pending", "in_progress")


def _halted(task: Task) -> str:
    answered = halting.takes_an_answer(task.halt_kind)
    retry = typed.harness("retry", task.id) if check_of(task).is_given else typed.give_check(task.id)
    retry = typed.harness("accept", task.id) if halting.asks_a_person(task) else retry
    halt = task.halt or ""
    # The halt names the commands that answer it.
    shown = quoting.one_line(halt, ANSWERS_LENGTH if answered else REASON_LENGTH)
    if not answered and retry not in halt:
        then = f"; then: {retry}"
    else:
        then = (
            ""
            if shown == quoting.one_line(halt, len(halt))
            else f"; all of it: {typed.harness('show', task.id)}"
        )
    return f"{_named(task)}: {shown}{then}"


def _named(task: Task) -> str:
    return f"{task.id} {quoting.one_line(task.title, TITLE_LENGTH)}".strip()


def _some(label: str, rows: list[str], most: int) -> Iterator[str]:
    yield from (f"{label}: {row}" for row in rows[:most])
    if len(rows) > most:
        yield f"{label}: {len(rows) - most} more, see: {typed.harness('status')}"


def _look_at(work: Work) -> list[str]:
    lines = [line for task, _ in work for line in quoting.look_at(task)]
    rest = len(lines) - LOOK_AT
    return lines if rest <= 0 else [*lines[:LOOK_AT], f"look at: {rest} more, see: {overview.SHOW_ALL}"]


def _dearest(work: Work) -> list[str]:
    """Return a line with the most expensive tasks: by money if agents report it, else by tokens or time."""
    used = [(_total(own), task) for task, own in work]
    ranked = sorted(used, key=lambda pair: pair[0], reverse=True)
    rows = [f"{task.id} ({_used(total)})" for total, task in ranked[:DEAREST] if any(total)]
    return [f"dearest: {', '.join(rows)}"] if rows else []


def _total(own: tuple[Attempt, ...]) -> tuple[float, int, float]:
    return (
        sum(each.cost_usd for each in own),
        sum(each.tokens for each in own),
        sum(map(attempts.seconds, own)),
    )


def _used(total: tuple[float, int, float]) -> str:
    cost, tokens, seconds = total
    parts = (f"${cost:.2f}" if cost else "", f"{tokens:,} tokens" if tokens else "", progress.span(seconds))
    return ", ".join(filter(None, parts))


def _where(ctx: Context, work: Work, tip: str | None) -> str:
    """Return where the work is; `tip` is the commit of the branch before the run."""
    assert ctx.target is not None, "BUG: a run without a target."
    waits = pending_merges.describe(ctx, ctx.target)
    if waits:
        return waits
    if not any(_is_done(each) for _, own in work for each in own):
        return ""
    name = target_branch.short(ctx.target)
    return (
        f"the work is on {name}: {typed.git('log', '--oneline', f'{tip[:SHORT]}..{name}' if tip else name)}"
    )

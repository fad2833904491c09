"""End an unattended run: clean up, and make its reply."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from harness_lib.attempts import (
    claim,
    merge_queue,
    pending_merges,
    publish,
    rescue_refs,
    snapshots,
    target_branch,
    worker_worktrees,
)
from harness_lib.core import lifecycle, quoting, rechecked, stops
from harness_lib.core.context import Context, Reply, Say
from harness_lib.errors import ConfigError, EnvSetupError, Exit, HarnessError
from harness_lib.rules import attempts, stats
from harness_lib.rules.run_records import Closed
from harness_lib.rules.run_state import Spent
from harness_lib.runs import next_step, report_facts, report_text
from harness_lib.state.api import Questions
from harness_lib.system.processes import environment
from harness_lib.task import Attempt, RunStop, StopReason, Task
from harness_lib.text import Strings, some

Why = StopReason | RunStop
Work = list[tuple[Task, tuple[Attempt, ...]]]
# Notes about branches that runs of 0.1.0 have made.
SEEN = "refs/harness/seen/"


def target_of(ctx: Context) -> str:
    """Return the branch that the run merges into."""
    assert ctx.target is not None, "BUG: a run without a target."
    return ctx.target


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
    questions = ctx.ask()
    # Attempts end by the clock of the list, which is the database's for a list in one.
    moment = questions.now.replace(microsecond=0)
    tasks = questions.worked_on_since(moment)
    over = frozenset((task.id, each.fence) for task in tasks for each in attempts.since(task, moment))
    return Beginning(moment, ctx.git.ref(target_of(ctx)), over)


def tidy(ctx: Context, warn: Say) -> None:
    """Remove what killed runs have left, and merge what waits for the user's checkout."""
    for ref, _ in ctx.git.refs(SEEN):
        ctx.git.delete_ref(ref)
    for message in worker_worktrees.sweep(ctx, target_branch.tip(ctx.git, target_of(ctx))):
        warn(message)
    if gone := pending_merges.bring_over(ctx, target_of(ctx)):
        warn(gone)


def leave(
    ctx: Context,
    place: worker_worktrees.Place,
    warn: Say,
    checked: str | None = None,
    *,
    recorded: bool = False,
) -> None:
    """Remove the work trees of this run, merge what waits, and end the session.

    `checked`: the commit on which every check has passed; `recorded`: its numbers stand in the log already.
    The machine may have ended the run (a full disk): what cannot be done is reported and left to the next
    run.
    """
    refused = ""
    try:
        for where in worker_worktrees.teardown(ctx, place, target_branch.tip(ctx.git, target_of(ctx))):
            warn(f"Left-over work is kept: {where}")
        if gone := pending_merges.bring_over(ctx, target_of(ctx), checked):
            warn(gone)
        if refused := publish.bring(ctx):
            warn(refused)
        if message := rescue_refs.by_itself(ctx):
            warn(message)
        merge_queue.refresh(ctx)
        if ctx.shared:
            snapshots.sweep(ctx)
    except (HarnessError, OSError) as error:
        warn(f"Clean-up is incomplete: {error}")
    try:
        _close(ctx, refused, recorded=recorded)
    except (HarnessError, OSError) as error:
        # Its owner process ends now, and the session with it.
        warn(f"The session could not be closed: {error}")


def _close(ctx: Context, refused: str, *, recorded: bool) -> None:
    with ctx.transaction("tasks") as tx:
        mine = ctx.own_session(tx)
        if refused:
            tx.log("WARN", refused, mine and mine.number)
        if mine:
            lifecycle.close(tx, mine, stats_logged=recorded)
        lifecycle.disable_hooks_when_finished(tx, ctx)


def _outcome(ctx: Context, why: Why) -> Why:
    """Return the outcome of a run that ended because of `why`; a red task counts more than any other reason.

    Not so if the user stopped it, or must help first: they know.
    """
    if why in ("interrupted", "stuck"):
        return why
    questions = ctx.ask()
    if rechecked.red(ctx, questions.search("completed")):
        return "recheck_failed"
    if why != "recheck_failed":
        return why
    counts = questions.counts()
    return "done" if counts.completed == counts.total else "blocked"


def record(ctx: Context, why: Why, kind: str, message: str, spent: Spent) -> None:
    """Log that a run ended because of `why` (`message` has details, `kind` is that of an error)."""
    why = _outcome(ctx, why)
    if why == "recheck_failed":
        message = stops.answer(why).words
    with ctx.transaction("tasks") as tx:
        session = ctx.own_session(tx)
        number = session.number if session else tx.session_count
        if kind or why == "recheck_failed":
            trouble = quoting.one_line(f"{next_step.ENDED}{message}")
            tx.log("ERROR", f"[{kind or 'TEST_FAIL'}] {trouble}", number)
        elif why == "interrupted" and message:
            tx.log("WARN", f"{next_step.ENDED}{message}", number)
        used = f"run={why} cost_usd={spent.cost:.2f} tokens={spent.tokens} seconds={spent.seconds:.0f}"
        tx.log("STATS", f"{stats.render(tx.counts())} {used}", number)


def closed(ctx: Context, why: Why) -> Closed:
    """Return the end of a run, for its record, that ended because of `why`."""
    outcome, counts = _outcome(ctx, why), ctx.ask().counts()
    complete = outcome == "done" and counts.completed == counts.total
    return Closed(ctx.clock.time(), outcome, complete, ctx.git.ref(target_of(ctx)))


def without_work(ctx: Context, why: StopReason | None, recovered: Strings) -> Reply:
    """Return the reply of a run that had nothing to do; `recovered` is what recovery did."""
    answer = stops.reply(ctx.ask(), why)
    facts = report_facts.gather(ctx)
    code, stop = _stopped(why, _waits(ctx) or facts.gone)
    first = [*recovered, stops.of_list(ctx.ask(), why or "done").words, *_gone(facts)]
    extra = {**answer.extra, **_extra(ctx, beginning(ctx), Spent())}
    message = "\n".join(_lines(facts, first))
    return answer._replace(message=message, exit=code, stop=stop, extra=extra)


def _words(ctx: Context, why: Why, message: str) -> str:
    """Return why the run has ended; put the command last so that it can be copied."""
    match why:
        case "interrupted":
            if message:
                return f"Stopped: {message}"
            return "Stopped as you asked; nothing is lost."
        case "limit":
            return f"A limit of this run is reached ({message}). To go on, raise it: harness run --help"
        case "stuck":
            return f"The user must act first: {message}".rstrip(": ")
        case "waiting" if message:
            return message
        case _:
            # A session of the list itself is open: a second one is not possible.
            return f"{stops.of_list(ctx.ask(), why).words} {message}".strip()


def _waits(ctx: Context) -> object:
    return pending_merges.describe(ctx, target_of(ctx)) or publish.waits(ctx)


def _stopped(why: Why | None, unmerged: object) -> tuple[Exit, Why | None]:
    """Return exit code and stop reason of a run that ended by `why`: it is done when its work is merged."""
    if why == "done" and not unmerged:
        return Exit.DONE, None
    return Exit.STOP, "waiting" if why == "done" else why


def reply(ctx: Context, why: Why, message: str, began: Beginning, spent: Spent, left_out: str = "") -> Reply:
    """Return the reply of a run that ended because of `why`; `message` has details.

    `left_out` says which checks the final check did not run.
    """
    stop = _outcome(ctx, why)
    if why == "done":
        why = stop
    but = stops.answer("recheck_failed").words if stop == "recheck_failed" != why else ""
    away = rechecked.elsewhere(ctx.git, ctx.ask().search("completed"), target_of(ctx))
    facts = report_facts.gather(ctx)
    # What the last run lacked is said at once: it was this one.
    facts = facts._replace(decisions=tuple(each for each in facts.decisions if each.kind != "lacks"))
    first = [_words(ctx, why, message), but, *_gone(facts), *away, left_out and f"final check: {left_out}"]
    report = "\n".join(_lines(facts, first))
    code, reason = _stopped(stop, _waits(ctx) or facts.gone)
    questions = ctx.ask()
    if stop == "waiting" and not questions.in_progress() and claim.next_task(ctx, questions).untrusted:
        code = Exit.REFUSED
    return Reply(
        report,
        exit=code,
        stop=reason,
        next=_next(ctx, stop),
        extra=_extra(ctx, began, spent),
    )


def _extra(ctx: Context, began: Beginning, spent: Spent) -> dict[str, object]:
    used = {"cost_usd": round(spent.cost, 4), "tokens": spent.tokens, "seconds": round(spent.seconds)}
    return {"spent": used, "tasks": tasks(ctx, began)}


def _next(ctx: Context, stop: Why) -> str:
    if stop == "recheck_failed":
        return rechecked.next_command(ctx, ctx.ask(), next_step.RUN)
    return next_step.RUN if stop in ("interrupted", "limit") else "harness status"


def problem(kind: str, outcome: Reply, hint: str) -> HarnessError:
    """Return the error of a run that needs the user; `outcome` is how it has ended."""
    error = (ConfigError if kind == ConfigError.kind else EnvSetupError)(
        outcome.message, hint or "See: harness status"
    )
    error.extra.update(outcome.extra)
    return error


def _gone(facts: report_facts.Facts) -> list[str]:
    """Return the line about finished work that was taken off its branch behind the run."""
    return [f"The work of {some(facts.gone)} is on no branch any more."] if facts.gone else []


def _lines(facts: report_facts.Facts, first: list[str]) -> list[str]:
    """Return the report on all runs in question, after the lines `first`."""
    return report_text.lines(facts, first, width=environment.columns(report_text.WIDTH))


def tasks(ctx: Context, began: Beginning) -> list[dict[str, object]]:
    """Return what a run that started at `began` did for each of its tasks, for JSON."""
    return [
        {
            "id": task.id,
            "outcome": own[-1].outcome,
            "commit": task.completed_commit,
            "cost_usd": round(sum(each.cost_usd for each in own), 4),
            "tokens": sum(each.tokens for each in own),
            "seconds": round(sum(map(attempts.seconds, own))),
            "warnings": list(task.look_at),
        }
        for task, own in _work(ctx.ask(), began)
    ]


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
    return any(own[-1].outcome == "completed" for _, own in _work(questions, began))

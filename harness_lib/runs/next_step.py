"""Decide what somebody types next: for the whole list, for one task, and after a run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from harness_lib import typed
from harness_lib.attempts import claim, complete, target_branch
from harness_lib.checks import check_of
from harness_lib.core import lifecycle, ownership, rechecked, sessions, stops, trust
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, HarnessError
from harness_lib.rules import attempts, recovery, selection
from harness_lib.state import journal
from harness_lib.state.api import Questions
from harness_lib.task import Task
from harness_lib.text import Strings, counted

RUN = "harness run"
# What a run does where every task is completed.
TAKES_OVER = "takes over what waits, once nothing is in its way"
PUSHES = "--merge push pushes the finished work"
# What a run does, as the end of a sentence, and what to type for more than that.
Run = tuple[str, Strings]
LOG_READ = 50
NAMED = 5
# How the log says why a run has ended.
ENDED = "the run ended: "


def of_list(ctx: Context, questions: Questions, *, runs: bool = False) -> str | None:
    """Return the command that continues the list, or that watches the `runs` in progress."""
    if lifecycle.must_check(questions, ctx):
        return rechecked.COMMAND
    command = _onward(ctx, questions, runs=runs)
    if command in (sessions.START, sessions.STATUS) and sessions.are_used_up(questions, ctx):
        return "harness log"
    if command != sessions.START:
        return command
    if trust.doubt(ctx, questions):
        return "harness check"
    killed = any(sessions.was_killed_run(each, questions, ctx) for each in questions.sessions())
    return RUN if killed or lacked(questions, log_lines(ctx)) else command


def _onward(ctx: Context, questions: Questions, *, runs: bool) -> str | None:
    held = ctx.held(questions)
    if held:
        return ownership.finish_command(ctx, held, ctx.own_session(questions))
    if runs:
        return sessions.watching(ctx)
    if not questions.counts().total:
        return stops.ADD
    if questions.in_progress() and not ctx.own_session(questions):
        return sessions.unless_held(questions, ctx, sessions.START)
    found = _next_here(ctx, questions)
    if not found.task and not trust.known(ctx, questions.provable()):
        return _nothing_to_take(ctx, questions, found)
    is_red = rechecked.red(ctx, questions.search("completed"))
    begin = rechecked.next_command(ctx, questions, sessions.START) if is_red else sessions.START
    return sessions.unless_held(questions, ctx, sessions.CLAIM if ctx.own_session(questions) else begin)


def _next_here(ctx: Context, questions: Questions) -> claim.Here:
    try:
        return claim.next_task(ctx, questions)
    except EnvSetupError:
        # Without a repository the list is shown all the same.
        return claim.Here(questions.next_ready())


def _nothing_to_take(ctx: Context, questions: Questions, found: claim.Here) -> str | None:
    """Return the command that shows what the user must see to first, else what is waited for."""
    if found.untrusted:
        return "harness check"
    if questions.no_work() == "recheck_failed":
        return rechecked.next_command(ctx, questions)
    stuck = next((t for t in questions.interesting() if t.status == "failed" or t.halt), None)
    if stuck is not None and stuck.status != "completed":
        return typed.harness("show", stuck.id)
    if not questions.in_progress() and questions.rings():
        return "harness check"
    return sessions.watching(ctx) if questions.work_remains() else "harness log"


def of_run(ctx: Context, questions: Questions, red: Sequence[Task], *, goes_on: bool, beside: str) -> Run:
    """Return what another run would do, as the end of a sentence, and what to type for more than that.

    `red` are the tasks whose checks fail now. `goes_on`: a run is in progress. `beside`: what a
    run does for finished work.
    """
    if goes_on and questions.work_remains():
        return "this run goes on", (sessions.watching(ctx),)
    if not questions.counts().total:
        return "the list is empty", (stops.ADD,)
    if questions.work_remains() and not trust.is_trusted(ctx, questions):
        return f"{RUN} is refused until you have read the commands", (typed.harness("trust"),)
    if session := sessions.keeps_runs_out(questions, ctx):
        how = sessions.how_to_end(session)
        return f"{RUN} is refused while session {session.number} is open", (how,)
    if gone := _gone(ctx, questions):
        return f"{RUN} is refused: {gone.message.rstrip('.')}", (gone.command,)
    does, then = _begins(ctx, questions, red, beside)
    return f"{RUN} {does}", then


def _begins(ctx: Context, questions: Questions, red: Sequence[Task], beside: str) -> Run:
    then = retry = _retry(questions, red)
    match questions.no_work():
        case None:
            return _takes(ctx, questions, retry)
        case "waiting" if {task.halt_kind for task in questions.halted()} == {"MERGE"}:
            does = "looks whether others have merged what waits"
        case "waiting" if questions.awaits_user():
            does = "starts nothing before you have answered"
        case "waiting":
            does, then = "takes over what a killed run or another session holds", ()
        case "recheck_failed":
            does, then = "runs the checks again", retry if red else (rechecked.COMMAND, *retry)
        case "blocked":
            does = "starts nothing (the failed ones are used up)"
        case _:
            does, then = beside or "starts nothing: every task is completed", ()
    return does, then


def _takes(ctx: Context, questions: Questions, retry: Strings) -> Run:
    if questions.sessions_spent():
        return "starts nothing (no session is left)", (typed.harness("edit", rest="--max-sessions N"),)
    found = claim.next_task(ctx, questions)
    if found.leaves_some and found.untrusted:
        return "starts nothing before you have trusted the commands", (typed.harness("trust"), *retry)
    if found.leaves_some:
        return "leaves the rest to the machine that has its held-out check", retry
    begins = f", {found.task.id} first" if found.task else ""
    return f"goes on with {counted(questions.ahead().tasks, 'task')}{begins}", retry


def _retry(questions: Questions, red: Sequence[Task]) -> Strings:
    """Return the command that gives the tasks which failed for good, or are red now, another start."""
    lost = [task for task in questions.search("failed") if selection.is_permanent(task) and task.attempts]
    again = [task.id for task in (*red, *lost)][:NAMED]
    return (typed.harness("retry", *again),) if again else ()


def _gone(ctx: Context, questions: Questions) -> target_branch.Lost | None:
    """Return why a branch that unfinished work is for is gone or has another name."""
    targets = {task.gate.target for task in questions.in_progress() if task.gate and task.gate.target}
    with suppress(HarnessError):
        gone = next((each for each in sorted(targets) if ctx.main.ref(each) is None), None)
        return target_branch.why_lost(ctx.main, gone) if gone else None
    return None


def of_task(ctx: Context, questions: Questions, task: Task) -> str | None:
    """Return the command that brings `task` nearer to being completed, for somebody who sees it."""
    if task.status == "completed":
        if rechecked.red(ctx, [task]):
            return typed.harness("retry", task.id)
        return sessions.STATUS if task.is_done else sessions.unless_held(questions, ctx, sessions.START)
    if task.halt is not None:
        return _halted(ctx, task)
    return _in_progress(ctx, questions, task) if task.status == "in_progress" else _idle(ctx, questions, task)


def _halted(ctx: Context, task: Task) -> str:
    is_a_word = attempts.takes_an_answer(task.halt_kind) or attempts.asks_a_person(task)
    if not is_a_word and not check_of(task).is_given and ownership.decides_on_caller(ctx, task):
        return typed.harness("show", task.id)
    return complete.answers(task)[0]


def _in_progress(ctx: Context, questions: Questions, task: Task) -> str | None:
    if not check_of(task).is_given and not ownership.decides_on_caller(ctx, task):
        return typed.give_check(task.id)
    if ctx.holds(task):
        return ownership.finish_command(ctx, task, ctx.own_session(questions))
    if task.claimed_by is None:
        return sessions.unless_held(questions, ctx, sessions.START)
    if recovery.expired(task, questions.now):
        return sessions.unless_held(questions, ctx, "harness recover")
    return sessions.STATUS


def _idle(ctx: Context, questions: Questions, task: Task) -> str | None:
    rings = questions.rings()
    if task.id in rings:
        return typed.harness("edit", task.id, "--depends-on", "ID")
    cause = _root_cause(questions, task)
    if cause is not None:
        return typed.harness("show" if cause in rings else "retry", cause)
    awaited = next((other.id for other in questions.tasks(task.depends_on) if not other.is_done), None)
    return typed.harness("show", awaited) if awaited else _take(ctx, questions, task)


def _take(ctx: Context, questions: Questions, task: Task) -> str | None:
    """Return how the caller can claim `task`; a caller that holds another task ends that first."""
    held = ctx.held(questions)
    if held:
        return ownership.finish_command(ctx, held, ctx.own_session(questions))
    if not trust.knows(ctx, task):
        return "harness check"
    return sessions.unless_held(questions, ctx, typed.harness("claim", task.id))


def _root_cause(questions: Questions, task: Task) -> str | None:
    """Return the permanently failed task that keeps `task` from running: itself, or one it depends on.

    For a blocked task it is the one that blocks it: retrying that one helps both.
    """
    seen: set[str] = set()
    waiting = [task.id]
    cause: str | None = None
    while waiting:
        current = questions.task(waiting.pop())
        if not current or current.id in seen:
            continue
        seen.add(current.id)
        if selection.is_permanent(current):
            cause = current.id
            # Its dependencies that failed for good come before it.
            waiting = []
        waiting += [other.id for other in questions.tasks(current.depends_on) if not other.is_done]
    return cause


def log_lines(ctx: Context) -> list[str]:
    """Return the last lines of the log of a list that was just asked; none if it may not be read."""
    try:
        return ctx.store.log_tail(LOG_READ, asked=True)
    except PermissionError:
        return []


def lacked(questions: Questions, log: Sequence[str]) -> list[str]:
    """Return what the user must do before a run can go on, from the end of the `log`.

    Nothing if another session was opened since, or no work is left.
    """
    # Of sessions beside each other the one that ends last may have a lower number.
    news = [entry for entry in map(journal.parse, log) if _is_lack(entry) or _is_opened(entry)]
    if not news or _is_opened(news[-1]) or not questions.work_remains():
        return []
    return [f"the last run ended: {news[-1].message.removeprefix(ENDED).removesuffix('.')}; then: {RUN}"]


def _is_opened(entry: journal.Entry) -> bool:
    return entry.type == "LOCK" and entry.message.startswith("acquired (")


def _is_lack(entry: journal.Entry) -> bool:
    """Return whether a run has ended for want of something; what agents say has the name of their task."""
    is_of_run = entry.type == "ERROR" and not (entry.task and entry.category)
    return is_of_run and entry.category != "TEST_FAIL" and entry.message.startswith(ENDED)

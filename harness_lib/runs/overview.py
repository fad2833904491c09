"""Gather the state of the list without a lock, for `harness status`, its live view, and other replies."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from harness_lib import typed
from harness_lib.core import add_tasks, quoting, rechecked, sessions, stops, trust
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError
from harness_lib.rules import rechecks as rules
from harness_lib.rules import recovery, run_state, selection
from harness_lib.rules.stats import Ahead, Counts
from harness_lib.runs import next_step, run_files
from harness_lib.state import journal
from harness_lib.state.api import Questions
from harness_lib.system.place import find_root
from harness_lib.task import Session, Task
from harness_lib.text import Strings, counted, first, some, span

LOG_LINES = 5
LINE_LENGTH = 300
SHOWN = 15
PEOPLE = 5
LOOK_AT = 3
# Bytes of a run's record; its first line is shorter.
BEGINNING = 4096
NEXT_LENGTH = 40
SKIPS = "skips them until you trust them: codex, /hooks"
BAR_WIDTH = 20
SHOW_ALL = "harness status --all"
ROWS = 10
LAST_LENGTH = 120
STEPS = {"limit": "usage limit"}
IDLE = {"waiting": "for what others do", "closed": "for the end", "done": "for the end"}
_BOOKKEEPING = ("LOCK", "STATS")


class View(NamedTuple):
    """Everything that is shown of a list at one moment; equal views look the same.

    `shown` are the tasks that get a line, and `beside` says of some who works on them, why they failed, or
    that they are unproven; `people` are the open sessions, `halts` what the user must do and `look_at` what
    they should look at in completed work, all as sentences; `hooks` says whether agents are held; `runs` go
    on unattended, with so much `ahead` of them and `up_next` what they begin next.
    """

    counts: Counts
    shown: tuple[Task, ...]
    beside: dict[str, str]
    halts: Strings
    look_at: Strings
    hooks: str
    log: Strings
    people: Strings
    next: str | None
    is_finished: bool
    warnings: Strings
    sessions: str
    session_count: int
    last_session: str | None
    unproven: Strings
    runs: tuple[run_files.Seen, ...] = ()
    ahead: Ahead = Ahead()
    up_next: Strings = ()
    rechecks: Strings = ()
    # Those that wait until the user trusts their commands here.
    untrusted: Strings = ()
    # Completed on another branch only.
    lacking: frozenset[str] = frozenset()


def gather(ctx: Context, limit: int | None) -> View:
    """Return the view of the list now, with every task in its order, or the `limit` most interesting ones."""
    questions = ctx.ask()
    shown = questions.search() if limit is None else questions.interesting(limit)
    runs = tuple(run_files.running(ctx))
    log = [quoting.one_line(line, LINE_LENGTH) for line in next_step.log_lines(ctx)]
    untrusted = _untrusted(ctx, questions)
    told = trust.told(ctx, untrusted)
    # A session that cannot go on may say the same.
    halts = [line for line in _halts(questions) if not told or told not in line]
    acts = [*next_step.lacked(questions, log), *halts, *([told] if told else [])]
    acts += [*_waiting(ctx), *(_unpushed(ctx) if not runs else ()), *add_tasks.proposal_lines(questions)]
    following = trust.known(ctx, questions.claimable())[:3] if runs else ()
    at_work = [task for task in shown if task.status == "in_progress"]
    failed = [task for task in shown if task.status == "failed" and task.error_log]
    unproven = [task for task in shown if task.unproven]
    return View(
        counts=questions.counts()._replace(red=len(rechecked.red(ctx, questions.search("completed")))),
        shown=shown,
        beside={
            **{task.id: holder(task, questions.now) for task in at_work},
            **{task.id: f"why: {quoting.one_line(task.error_log[-1], LINE_LENGTH)}" for task in failed},
            **{task.id: f"{selection.UNPROVEN}; harness start has its check run" for task in unproven},
        },
        halts=tuple(first(acts, PEOPLE)),
        look_at=_look_at(questions, limit),
        rechecks=tuple(rechecked.lines(ctx, questions)),
        lacking=_lacking(ctx, questions),
        hooks=_hooks(ctx, questions),
        # For people: no locks, and no counts that are shown already.
        log=tuple([line for line in log if journal.parse(line).type not in _BOOKKEEPING][-LOG_LINES:]),
        people=tuple(first([_session(ctx, questions, session) for session in questions.sessions()], PEOPLE)),
        next=next_step.of_list(ctx, questions, runs=bool(runs)),
        is_finished=not questions.work_remains(),
        warnings=tuple(questions.warnings),
        sessions=_counted_sessions(questions),
        session_count=questions.session_count,
        last_session=questions.last_session,
        unproven=tuple(task.id for task in questions.unproven()[:SHOWN]),
        untrusted=untrusted,
        runs=runs,
        ahead=questions.ahead() if runs else Ahead(),
        up_next=tuple(quoting.one_line(f"{each.id} {each.title}", NEXT_LENGTH) for each in following),
    )


def _untrusted(ctx: Context, questions: Questions) -> Strings:
    """Return the tasks that wait for the user's trust; none without a repository."""
    try:
        return trust.waiting(ctx, questions)
    except EnvSetupError:
        return ()


def _look_at(questions: Questions, limit: int | None) -> Strings:
    """Return what to review in completed work, the newest first; with a `limit` only the first lines.

    Of tasks completed within one second, the last in the list counts as the newest.
    """
    tasks = sorted(questions.search("completed"), key=lambda task: task.completed_at or "")
    lines = [line for task in reversed(tasks) for line in quoting.look_at(task)]
    rest = 0 if limit is None else len(lines) - LOOK_AT
    if rest <= 0:
        return tuple(lines)
    return (*lines[:LOOK_AT], f"look at: {rest} more, see: {SHOW_ALL}")


def _lacking(ctx: Context, questions: Questions) -> frozenset[str]:
    """Return the ids of tasks that were completed on a branch that HEAD does not have."""
    moved = [*filter(rules.was_completed_elsewhere, questions.search("completed"))]
    try:
        return frozenset(task.id for task in rechecked.lacking(ctx.git, moved)) if moved else frozenset()
    except EnvSetupError:
        return frozenset()


def _waiting(ctx: Context) -> Iterator[str]:
    """Yield a sentence for each branch where finished work waits; none without a repository."""
    try:
        tips = [(ref.removeprefix(recovery.WAITING), oid) for ref, oid in ctx.git.refs(recovery.WAITING)]
    except EnvSetupError:
        return
    targets = [recovery.HEADS + name for name, oid in tips if ctx.git.ref(recovery.HEADS + name) != oid]
    if targets:
        from harness_lib.attempts import pending_merges  # noqa: PLC0415 (loads all of merging)

        yield from map(str, filter(None, (pending_merges.describe(ctx, each) for each in targets)))


def _unpushed(ctx: Context) -> Iterator[str]:
    """Yield a sentence if the remote lacks finished work that the last run was to push."""
    last = max(run_files.records(ctx, BEGINNING), key=lambda ran: ran.opened.at, default=None)
    if last is not None and last.opened.merge == "push":
        from harness_lib.runs import report_facts  # noqa: PLC0415 (loads all of merging)

        yield from map(str, filter(None, [report_facts.unpushed(ctx, [last])]))


class Line(NamedTuple):
    """A line of the status, and its style in a terminal; a `whole` line is never cut."""

    text: str
    style: str = ""
    whole: bool = False


def lines(view: View, now: float) -> Iterator[Line]:
    """Yield the status at the moment `now` (seconds since the epoch).

    What needs the user comes first, then what works, what comes next, and the rest.
    Lines that end with what the user must type are whole, however long.
    """
    elsewhere = f", {len(view.lacking)} of them on another branch only" if view.lacking else ""
    yield Line(f"[{bar(view.counts)}] {headline(view.counts)}{elsewhere}", "bold")
    for text in view.rechecks:
        yield Line(text, "bold red" if text.startswith(rechecked.RED) else "yellow", whole=True)
    yield from _section("the user must act:", view.halts, "yellow", whole=True)
    yield from (Line(text, "yellow", whole=True) for text in view.look_at)
    for seen in view.runs[:PEOPLE]:
        first, *rest = run_lines(seen, view.ahead, now)
        yield Line(first, "bold")
        yield from map(Line, rest)
    if view.up_next:
        yield Line(f"  then: {'; '.join(view.up_next)}")
    yield Line(view.hooks, "dim", whole=True)
    for task in view.shown:
        shown = one_line(task)
        if task.id in view.lacking:
            shown = shown.replace("[completed]", "[completed on another branch]", 1)
        yield Line(shown)
        if task.id in view.beside:
            yield Line(f"    {view.beside[task.id]}", "red" if task.status == "failed" else "cyan")
    if len(view.shown) < view.counts.total:
        yield Line(f"… and {view.counts.total - len(view.shown)} more ({SHOW_ALL})", "dim")
    yield from _section("log:", view.log, "dim", whole=False)
    yield Line(view.sessions, whole=True)
    yield from (Line(text, whole=True) for text in view.people)


def _section(title: str, rows: Strings, style: str, *, whole: bool) -> Iterator[Line]:
    if rows:
        yield Line(title, f"bold {style}", whole=True)
        yield from (Line(f"  {row}", style, whole) for row in rows)


class Cells(NamedTuple):
    """One worker as shown to the user; unknown values are empty."""

    worker: str
    task: str
    step: str
    time: str
    cost: str
    tokens: str
    last: str


def cells(row: run_state.Row, now: float) -> Cells:
    """Return `row` in words, at the moment `now` (seconds since the epoch)."""
    task = quoting.one_line(f"{row.task} {row.title}", quoting.TITLE_LENGTH) if row.task else ""
    if row.attempt > 1:
        task += f" (attempt {row.attempt})"
    step = STEPS.get(row.step, row.step)
    if row.until is not None:
        step += f", {span(row.until - now)} left"
    elif row.idle:
        step += f" {IDLE.get(row.idle, quoting.one_line(row.idle, LAST_LENGTH))}"
    return Cells(
        worker=str(row.worker),
        task=task,
        step=step,
        time=span(now - row.since),
        cost=f"${row.cost:.2f}" if row.cost else "",
        tokens=f"{row.tokens:,}" if row.tokens else "",
        last=quoting.one_line(row.last, LAST_LENGTH),
    )


def summary(now_board: run_state.RunState, ahead: Ahead, now: float) -> str:
    """Return the least time that the run still needs, then what it has used of its limits.

    The time stands first, as a narrow terminal cuts the end of the line.
    """
    used = ", ".join(run_state.usage(now_board.limits, now_board.spent(now))).replace(" (no limit)", "")
    if now_board.queued:
        used = f"{counted(len(now_board.queued), 'task')} waiting to be merged; {used}"
    seconds = run_state.estimate(now_board, ahead, len(now_board.rows))
    return used if not seconds else f"at least {span(seconds)} more; {used}"


def run_lines(seen: run_files.Seen, ahead: Ahead, now: float) -> Iterator[str]:
    """Yield the run as lines, the first ROWS workers at most."""
    yield f"run: {summary(seen.state, ahead, now)}; process {seen.pid}"
    rows = list(seen.state.rows.values())
    for row in rows[:ROWS]:
        shown = cells(row, now)
        tokens = shown.tokens and f"{shown.tokens} tokens"
        used = "".join(f", {each}" for each in (shown.cost, tokens) if each)
        task, last = (f" {shown.task}:" if shown.task else ""), (f" | {shown.last}" if shown.last else "")
        yield f"  [{shown.worker}]{task} {shown.step}, {shown.time}{used}{last}"
    if len(rows) > ROWS:
        yield f"  … and {len(rows) - ROWS} more workers"


def bar(counts: Counts) -> str:
    """Return the share of completed tasks as `####----`; full only when all are."""
    done = BAR_WIDTH * (counts.completed - counts.red) // counts.total if counts.total else 0
    return "#" * done + "-" * (BAR_WIDTH - done)


def headline(counts: Counts) -> str:
    """Return the protocol's counts as a sentence without zeros."""
    if not counts.total:
        return "no tasks yet"
    parts = [
        f"{counts.red} of them red" if counts.red else "",
        f"{counts.in_progress} in progress" if counts.in_progress else "",
        f"{counts.failed} failed{_of(counts.permanent, 'for good')}" if counts.failed else "",
        f"{counts.pending} pending{_of(counts.blocked, 'blocked')}" if counts.pending else "",
    ]
    percent = 100 * (counts.completed - counts.red) // counts.total
    return ", ".join([f"{percent} %: {counts.completed} of {counts.total} completed", *filter(None, parts)])


def _of(number: int, state: str) -> str:
    return f" ({number} {state})" if number else ""


def _counted_sessions(questions: Questions) -> str:
    """Return how many sessions there were, their limit, and when the last one ended."""
    limit = questions.settings().max_sessions
    most = f" of at most {limit}" if limit else ""
    counted = f"sessions: {questions.session_count}{most}, last {questions.last_session or 'none'}"
    if not questions.sessions_spent() or questions.sessions() or not questions.work_remains():
        return counted
    return f"{counted}\n  {stops.answer('max_sessions').words}"


def one_line(task: Task) -> str:
    """Return the protocol's line: `[status] task-id: title (attempts/max_attempts)`."""
    return f"[{word(task)}] {task.id}: {quoting.title(task)} ({task.attempts}/{task.max_attempts})"


def word(task: Task) -> str:
    """Return the status of `task` as shown: `unproven` if only an external edit completed it."""
    return "unproven" if task.status == "completed" and task.unproven else task.status


def holder(task: Task, now: datetime) -> str:
    """Return who works on `task`, since when, until when by lease, and the last checkpoint."""
    where = f" on {_name(task.machine)}" if task.machine else ""
    parts = [f"by {_name(task.claimed_by)}{where} since {task.claimed_at or 'an unknown time'}"]
    if task.lease_expires_at:
        ended = recovery.expired(task, now)
        parts.append(f"{'its lease ended at' if ended else 'leased until'} {task.lease_expires_at}")
    if task.checkpoints:
        last = task.checkpoints[-1]
        parts.append(f'at {last.step}/{last.total} "{quoting.one_line(last.description, 80)}"')
    if task.step == "merge":
        parts.append("checked, waits to be merged")
    elif task.intent:
        parts.append(f"a {task.intent.action} is under way")
    return ", ".join(parts)


def _name(worker: str | None) -> str:
    return quoting.one_line(worker, 80) if worker else "nobody"


def _session(ctx: Context, questions: Questions, session: Session) -> str:
    since = session.started_at or "an unknown time"
    opened = f"open: session {session.number} of {_name(session.worker)} since {since}"
    if sessions.was_killed_run(session, questions, ctx):
        return f"{opened}; its run was killed; this goes on with its work: {next_step.RUN}"
    if not sessions.is_live(session, questions, ctx):
        return f"{opened}; its owner is gone, harness start ends it"
    if session != sessions.holder(questions, ctx) or sessions.is_live_run(session):
        # The lines of a run say what it does.
        return opened
    end = f"the user can end it: {sessions.how_to_end(session)}"
    return f"{opened}; it holds the list: others can look, and add and edit tasks ({end})"


def _halts(questions: Questions) -> list[str]:
    tasks = questions.halted()
    reasons = {task.halt for task in tasks}
    kinds = {(task.id, task.halt_kind) for task in tasks}
    alike: dict[str, list[Task]] = {}
    for task in tasks:
        # Other halts name the commands that answer for one task.
        cause = (task.halt or "").replace(task.id, "") if task.halt_kind == "ENV_SETUP" else task.id
        alike.setdefault(cause, []).append(task)
    lines = [
        f"{some([task.id for task in same], 3)}: {quoting.one_line(same[0].halt or '', LINE_LENGTH)} "
        f"({typed.harness('show', same[0].id)})"
        for same in alike.values()
    ]
    return lines + [
        f"session {session.number} of {_name(session.worker)} cannot go on"
        f"{f' with {session.halt_task}' if session.halt_task else ''}: "
        f"{quoting.one_line(session.halt, LINE_LENGTH)}"
        for session in questions.sessions()
        if session.halt
        and session.halt not in reasons
        and (session.halt_task, session.halt_kind) not in kinds
    ]


def _hooks(ctx: Context, questions: Questions) -> str:
    if find_root.switched_off(ctx.env):
        return "hooks: off (HARNESS_DISABLED is set)"
    if ctx.store.hooks_are_on():
        from harness_lib.hookinstall import host_files  # noqa: PLC0415 (reads the settings of every agent)

        held, skipping = host_files.loaders(ctx)
        skips = "; ".join(f"{title} {SKIPS}" for title in skipping)
        if skips and not held:
            return f"hooks: on, but {skips}"
        if not held:
            return f"hooks: on, but no agent here loads them ({typed.harness('hooks', 'install', '--help')})"
        until = "held until the list is finished (harness pause switches them off)"
        line = f"hooks: on; {' and '.join(held)} {'are' if len(held) > 1 else 'is'} {until}"
        return f"{line}; {skips}" if skips else line
    if questions.holds_agents():
        return "hooks: off; paused, or not started yet (harness start switches them on)"
    return "hooks: off; nothing is left to do"

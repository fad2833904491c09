"""Open a session, in the protocol's order: recover, check the environment, name the next task."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal, NamedTuple

from harness_lib.attempts import (
    claim,
    committed,
    dialogue,
    reconcile,
    rescue_refs,
    target_branch,
    turn,
    worker_worktrees,
)
from harness_lib.core import lifecycle, ownership, project, quoting, rechecked, sessions, stops, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import EnvSetupError
from harness_lib.rules import attempts, recovery, stats, transitions
from harness_lib.state.api import Questions, Tx
from harness_lib.system.place import find_root
from harness_lib.system.processes import process
from harness_lib.task import Session, StopReason, Task
from harness_lib.text import Strings

COMMITS = 20
# Who opens a session: the conversation that calls again in its interrupted one; one that has surely done the
# work under this name, with no takeover left half done; or another one.
Caller = Literal["goes on", "comes back", "is new"]


class Opened(NamedTuple):
    """A session that is open now, or the reason why there is none."""

    session: Session | None
    stop: StopReason | None = None
    recovered: Strings = ()
    warnings: Strings = ()


class GitFacts(NamedTuple):
    """What the protocol reads from git at a session's start: the last commits, files not staged, stashes."""

    log: list[str]
    diff_stat: str
    stashes: list[str]


def reply(ctx: Context) -> Reply:
    """Open a session, recover what was interrupted, check the environment, and name the next task.

    Raises HeldError, RefusedError (untrusted commands), EnvSetupError (`harness-init.sh` failed twice).
    """
    questions = ctx.store.ask_to_change()
    ownership.refuse_late(ctx, questions)
    live = ctx.own_session(questions)
    goes_on = live is not None and is_open(live, questions, ctx) and live.halt is None
    has_proposed = goes_on and _has_proposed(ctx, questions)
    # A database then uses its connection for what follows.
    del questions
    history = ctx.store.log_tail(200)
    if goes_on:
        merged = tuple(turn.look(ctx)) if has_proposed else ()
        opened = prove(ctx, go_on(ctx))
        opened = opened._replace(recovered=(*merged, *opened.recovered))
    else:
        opened = open_session(ctx)
    # Recovery may have committed what was there, or taken it back.
    changed = ctx.git.text("diff", "--no-ext-diff", "--ignore-submodules=dirty", "--stat")
    stashes = [] if ctx.git.is_absent("refs/stash") else ctx.git.lines("stash", "list")
    return _reply(ctx, opened, history, GitFacts(ctx.git.recent(COMMITS), changed, stashes))


def go_on(ctx: Context) -> Opened:
    """Recover what was interrupted in the caller's open session, and return the session.

    That is what a killed command had begun, and what an agent of the legacy protocol left in progress.
    """
    with ctx.transaction("tasks") as tx:
        # Also for the lock directory of the legacy protocol: a killed command may have left its own pid
        # there.
        session = ctx.own_session(tx)
        if session and sessions.is_callers(session, ctx):
            session = lifecycle.go_on(tx, session, ctx)
        held = ctx.held(tx)
        is_elsewhere = held is not None and ownership.is_left_elsewhere(ctx, held, tx)
        if held and tx.concurrent and not is_elsewhere:
            tx.replace(transitions.renew(held, now=tx.now, lease_seconds=ctx.lease_seconds))
        if tx.holds_agents():
            tx.on_commit(ctx.store.enable_hooks)
        if session and tx.awaits_user():
            lifecycle.close(tx, session)
            return Opened(None, "waiting")
        # What nobody holds waits for the end of the caller's own task: the work tree has the files of both.
        is_left = has_unclaimed(tx) if not held else is_elsewhere or held.intent is not None
    if not session:
        return open_session(ctx)
    if not is_left:
        return Opened(session)
    ctx.session = session
    report = reconcile.reclaim_interrupted(ctx, fresh=False)
    return Opened(None if report.stop else session, report.stop, report.recovered, report.warnings)


def has_unclaimed(questions: Questions) -> bool:
    """Return whether an agent of the legacy protocol has left a task in progress: no session holds it."""
    workers = [session.worker for session in questions.sessions()]
    return not questions.concurrent and any(
        not any(recovery.works_for(task.claimed_by, worker) for worker in workers)
        for task in questions.in_progress()
    )


def _caller(ctx: Context, questions: Questions) -> Caller:
    session = ctx.own_session(questions)
    is_whole = not session or session.number <= questions.session_count
    if session and is_whole and not session.halt:
        sessions.refuse_other(questions, ctx)
        if sessions.is_callers(session, ctx):
            return "goes on"
    return "comes back" if is_whole and sessions.comes_back(questions, ctx) else "is new"


def is_open(session: Session, questions: Questions, ctx: Context) -> bool:
    """Return whether the session was opened completely; one that was never counted was killed meanwhile."""
    return sessions.is_live(session, questions, ctx) and session.number <= questions.session_count


def open_session(ctx: Context, *, for_user: bool = False) -> Opened:
    """Open and count a session for this worker, after ending one of its own that is halted or half open.

    A conversation that comes back continues its own session, and nothing in it is recovered.
    `for_user`: the limit of sessions does not hold for it, and it uses none up where its number is free.
    """
    project.require_writable_git(ctx, ctx.git)
    project.adopt(ctx)
    questions = ctx.ask()
    if ctx.shared:
        ownership.refuse_namesake(ctx, questions)
    if ctx.git.head() is None and not for_user and questions.claimable() and not questions.in_progress():
        # No task could be claimed, and the session would keep others from the list.
        raise target_branch.error(ctx.git, ctx.git.branch())
    has_proposed, caller = _has_proposed(ctx, questions), _caller(ctx, questions)
    # A database then uses its connection for what follows.
    del questions
    merged = turn.look(ctx) if has_proposed else ()
    opened = _open(ctx, _caller(ctx, ctx.ask()) if merged else caller, for_user=for_user)
    return opened._replace(recovered=(*merged, *opened.recovered))


def _has_proposed(ctx: Context, questions: Questions) -> bool:
    """Return whether finished work of a chat waits for others to merge it."""
    is_chat = ctx.shared is not None and ctx.target is None
    return is_chat and any(task.halt_kind == "MERGE" for task in questions.halted())


def _open(ctx: Context, caller: Caller, *, for_user: bool) -> Opened:
    if caller == "goes on":
        return go_on(ctx)
    session, stop, warnings = _take(ctx, for_user=for_user)
    if not session:
        return Opened(None, stop, warnings=warnings)
    ctx.session = session
    warnings += rescue_refs.sweep(ctx)
    report = reconcile.reclaim_interrupted(ctx, fresh=caller == "is new")
    if report.stop:
        with ctx.transaction("tasks") as tx:
            tx.count_session(session.number)
        return Opened(None, report.stop, report.recovered, (*warnings, *report.warnings))
    if head := ctx.git.head():
        # Of killed runs, whose tasks are recovered now.
        warnings += (*worker_worktrees.sweep(ctx, head),)
    _check_environment(ctx)
    opened = Opened(session, None, report.recovered, (*warnings, *report.warnings))
    with ctx.transaction("tasks") as tx:
        tx.count_session(session.number)
        stop = _end_when_done(tx, ctx)
    return opened._replace(session=None, stop=stop) if stop else prove(ctx, opened)


def prove(ctx: Context, opened: Opened, *, waits: bool = False) -> Opened:
    """Run the checks of tasks that an external edit has completed; end the session if no work is left.

    The workers of a run do this on the merged content, which the user's checkout may not have.
    Raises RefusedError (untrusted commands).
    """
    if not opened.session or ctx.target is not None:
        return opened
    ctx.session = opened.session
    recovered = committed.prove(ctx, waits=waits)
    if not recovered:
        return opened
    opened = opened._replace(recovered=(*opened.recovered, *recovered))
    with ctx.transaction("tasks") as tx:
        stop = _end_when_done(tx, ctx)
    return opened._replace(session=None, stop=stop) if stop else opened


def _end_when_done(tx: Tx, ctx: Context) -> StopReason | None:
    """End the session of this worker if nothing is left to do, and return why."""
    current = ctx.own_session(tx)
    if not current or ctx.held(tx):
        return None
    lifecycle.record_blocked(tx, current.number)
    stop = _nothing_to_do(tx)
    if stop is None:
        return None
    if stop in lifecycle.ALL_TAKEN:
        stop = lifecycle.end(tx, ctx, current, stop)
    else:
        lifecycle.close(tx, current)
    lifecycle.disable_hooks_when_finished(tx, ctx)
    return stop


def _take(ctx: Context, *, for_user: bool) -> tuple[Session | None, StopReason | None, Strings]:
    """Add the session's record, unless there is nothing to do or no session is left."""
    with ctx.transaction("tasks") as tx:
        halted = ctx.own_session(tx)
        again = halted.number if halted and _is_unused(halted, tx, ctx) else None
        if halted and (halted.halt or not is_open(halted, tx, ctx)):
            lifecycle.close(tx, halted)
        lifecycle.fold_dead(tx, ctx)
        lifecycle.record_blocked(tx, tx.session_count)
        if for_user and not ctx.shared and all(s.number != tx.session_count for s in tx.sessions()):
            again = tx.session_count
        stop = _nothing_to_do(tx) or (tx.sessions_spent() if again is None and not for_user else None)
        if stop == "waiting" and not tx.concurrent:
            sessions.refuse_other(tx, ctx)
        if stop is not None:
            tx.log("STATS", stats.render(tx.counts()))
            lifecycle.disable_hooks_when_finished(tx, ctx)
            return None, stop, tuple(tx.warnings)
        sessions.refuse_other(tx, ctx)
        session = lifecycle.open_one(tx, ctx, again)
        tx.on_commit(ctx.store.enable_hooks)
        return session, None, tuple(tx.warnings)


def _is_unused(session: Session, questions: Questions, ctx: Context) -> bool:
    """Return whether the caller's session was halted before it finished any attempt."""
    is_callers = is_open(session, questions, ctx) and sessions.is_callers(session, ctx)
    return is_callers and session.halt is not None and not session.finished_attempts


def _nothing_to_do(tx: Tx) -> StopReason | None:
    """Return why no task can run, ignoring those that an interrupted session left in progress."""
    if tx.in_progress():
        return None
    return tx.no_work()


def _check_environment(ctx: Context) -> None:
    if not project.has_init_script(ctx):
        return
    questions = ctx.ask()
    if not trust.is_trusted(ctx, questions):
        with ctx.transaction("tasks") as tx:
            lifecycle.close(tx, ctx.session)
        trust.require(ctx, questions)
    finished = project.prepare(ctx)
    if not finished or finished.ok:
        with ctx.transaction("tasks") as tx:
            tx.log("INIT", "Environment health check: PASS", ctx.session.number)
        return
    with ctx.transaction("tasks") as tx:
        tx.log("ERROR", f"{ctx.root.init_script.name} failed twice", ctx.session.number, category="ENV_SETUP")
        lifecycle.close(tx, ctx.session)
    raise EnvSetupError(
        f"{ctx.root.init_script.name} failed twice: {project.why_failed(ctx, finished)}",
        f"Its output is in {ctx.root.logs / 'harness-init.log'}. Fix the problem, then: harness start",
    )


def _reply(ctx: Context, opened: Opened, history: list[str], facts: GitFacts) -> Reply:
    questions = ctx.ask()
    extra: dict[str, object] = {"git": facts._asdict(), "log": history, "recovered": list(opened.recovered)}
    if not opened.session:
        answer = stops.reply(questions, opened.stop, opened.recovered, extra)
        is_red = opened.stop == "recheck_failed"
        return answer._replace(next=rechecked.next_command(ctx, questions)) if is_red else answer
    if lifecycle.must_check(questions, ctx):
        return stops.final_check(questions, opened.session, opened.recovered, extra)
    held = ctx.held(questions)
    if not held and (spent := questions.session_spent(opened.session)):
        return stops.reply(questions, spent, opened.recovered, extra)
    found = claim.Here(held) if held else claim.next_task(ctx, questions)
    upcoming, untrusted = found.task, trust.waiting(ctx, questions)
    if found.leaves_some and opened.session.halt is None:
        _let_go(ctx, found)
    lines = [
        f"session {opened.session.number} is open; {stats.render(questions.counts())}",
        *opened.recovered,
    ]
    lines += [f"{rechecked.RED}{line.strip()}" for line in rechecked.red_lines(questions)]
    if facts.diff_stat:
        lines.append(f"uncommitted: {facts.diff_stat.splitlines()[-1].strip()}")
    if facts.stashes:
        lines.append(f"stashes: {len(facts.stashes)} (git stash list)")
    then = _next(ctx, questions, held, found)
    doubts = [doubt] if (doubt := trust.doubt(ctx, questions, held)) else []
    if untrusted and found.task:
        doubts.append(trust.told(ctx, untrusted))
    doubts += project.in_common(ctx, questions.search(*project.OPEN))
    doubts += _unheld(ctx)
    return Reply(
        "\n".join(filter(None, (*lines, then.words))),
        session=opened.session.number,
        task=upcoming,
        stop=None if upcoming else questions.no_work(),
        next=then.next,
        warnings=(*opened.warnings, *questions.warnings, *doubts),
        extra={**extra, "untrusted": list(untrusted)},
    )


def _unheld(ctx: Context) -> Iterator[str]:
    """Yield that hooks may not hold the agent that types, as they look for a list where it was started."""
    agent = ctx.agent
    place = process.directory(ctx.owner.pid) if agent else None
    if place is None:
        return
    found, here = find_root.search(ctx.env, place), os.path.realpath(ctx.root.path)
    if found is None or os.path.realpath(found) != here:
        what = f"the list in {found}" if found else "no list"
        yield (
            f"{agent} was started in {place}: hooks that look from there find {what}, and do not hold it to "
            f"this one. To have it held to the end, start it in {here}."
        )


def _let_go(ctx: Context, found: claim.Here) -> None:
    """Halt the caller's session, as only the user or another machine can free a task for it."""
    with ctx.transaction("tasks") as tx:
        session = ctx.own_session(tx)
        if session:
            lifecycle.halt(
                tx, session, attempts.Halt("REFUSED" if found.untrusted else "CONFIG", found.words(ctx))
            )


def _next(ctx: Context, questions: Questions, held: Task | None, found: claim.Here) -> stops.Answer:
    """Return what the caller does next."""
    if held and (place := ownership.elsewhere(ctx, held)):
        words = f"you hold {held.id}. {place.message}\n{place.hint}: {place.command}"
        return stops.Answer(words, place.command)
    if held:
        words = f"you hold a task; go on with it:\n{dialogue.brief(held, ctx, questions)}"
        return stops.Answer(words, ownership.finish_command(ctx, held, questions=questions))
    if found.task:
        return stops.Answer(f"next task: {found.task.id} {quoting.title(found.task)}", sessions.CLAIM)
    if found.untrusted:
        return stops.Answer(found.words(ctx), "harness check")
    if questions.no_work() == "recheck_failed":
        # The lines above say which checks fail.
        return stops.Answer("", rechecked.next_command(ctx, questions))
    words = "no task can be claimed right now; others hold the rest"
    return stops.Answer(words, stops.answer("waiting").next)

"""Open, continue, halt and end sessions.

An exclusive session outlives the shell call that opened it: it is a record in the list, and ends when its
owner ends it or is provably gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from harness_lib import timestamps
from harness_lib.core import sessions, trust
from harness_lib.core.context import Context
from harness_lib.errors import AwayError, ConfigError, EnvSetupError, HarnessError, RefusedError
from harness_lib.rules import attempts, rechecks, recovery, stats
from harness_lib.state.api import Questions, Tx
from harness_lib.system.place import own_files
from harness_lib.task import Category, Session, StopReason

# Reasons why no worker can claim a task any more.
ALL_TAKEN = ("done", "blocked", "recheck_failed")


def go_on(tx: Tx, session: Session, ctx: Context) -> Session:
    """Record in `session` the process that its conversation has now."""
    current = _of_caller(session, ctx)
    if current != session:
        tx.replace_session(current)
        ended = own_files.note_path(os.fspath(ctx.root.path), "ended", current.agent_session_id or "")
        tx.on_commit(lambda: own_files.remove_note(ended))
        tx.log("LOCK", f"acquired again (pid={ctx.owner.pid})", session.number)
    return current


def _of_caller(session: Session, ctx: Context) -> Session:
    """Return `session` with the process and the conversation of the caller."""
    me = ctx.owner
    return session._replace(
        host=me.host,
        boot_id=me.boot_id,
        pid=me.pid or None,
        pid_started=me.pid_started,
        agent_session_id=me.agent_session_id or session.agent_session_id,
    )


def fold_dead(tx: Tx, ctx: Context) -> None:
    """Remove the sessions of dead owners; recovery handles their tasks in progress."""
    for session in tx.sessions():
        if not sessions.is_live(session, tx, ctx):
            ended, pid = sessions.has_ended(session, tx, ctx), f" (pid {session.pid})" if session.pid else ""
            gone = "its agent has ended" if ended else f"its owner{pid} is gone"
            tx.log("WARN", f"{gone} without `harness stop`", session.number)
            _remove(tx, session)


def open_one(tx: Tx, ctx: Context, number: int | None = None) -> Session:
    """Add a session of this worker, not yet counted.

    `number`: that of the worker's session which it goes on with.
    """
    me = ctx.owner
    if number is None:
        # In this order: whoever has counted keeps others from opening one meanwhile.
        number = max([tx.session_count, *(s.number for s in tx.sessions())]) + 1
    new = Session(number, me.worker, me.host, started_at=timestamps.render(tx.now))
    session = _of_caller(new, ctx)
    tx.add_session(session)
    tx.log("LOCK", f"acquired (pid={me.pid})", session.number)
    return session


def open_again(ctx: Context) -> Session | None:
    """Open the session of a run again that another machine has closed; return it, None if it is not due.

    The limit of sessions does not matter: it has counted this run already.
    """
    with ctx.transaction("tasks") as tx:
        # Without work it is closed by whoever finds none.
        if ctx.own_session(tx) or tx.no_work() in ALL_TAKEN or tx.awaits_user():
            return None
        session = open_one(tx, ctx)
        tx.count_session(session.number)
        return session


def close(tx: Tx, session: Session, *, stats_logged: bool = False) -> None:
    """End a session as in the protocol's "Session Statistics": STATS, `last_session`, locks released.

    `stats_logged`: its statistics are in the log already, or will be.
    """
    if not stats_logged:
        tx.log("STATS", stats.render(tx.counts()), session.number)
    _remove(tx, session)


def begin_next(tx: Tx, session: Session) -> Session:
    """Begin the next session of the same worker, as `session` has reached its limit of tasks.

    What its workers have in progress goes on in the new one; what they have finished above the limit counts
    there.
    """
    tx.log("STATS", stats.render(tx.counts()), session.number)
    tx.log("LOCK", "released", session.number)
    number = max(tx.session_count, session.number) + 1
    over = max(0, session.finished_attempts - tx.settings().max_tasks_per_session)
    began = unhalted(session)._replace(
        number=number, started_at=timestamps.render(tx.now), finished_attempts=over
    )
    tx.replace_session(began, session.number)
    tx.count_session(number)
    tx.note_session()
    tx.log("LOCK", f"acquired (pid={began.pid})", number)
    return began


def _remove(tx: Tx, session: Session) -> None:
    tx.remove_session(session.number)
    # In this order whoever locks several tasks locks them: two never wait for each other.
    for found in sorted(tx.in_progress(), key=lambda task: task.id):
        if not recovery.works_for(found.claimed_by, session.worker):
            continue
        # Another machine may take it over at this moment.
        task = tx.task(found.id)
        if recovery.is_same(task, found) and task and task.lease_expires_at is not None:
            tx.replace(task._replace(lease_expires_at=timestamps.render(tx.now)))
    tx.log("LOCK", "released", session.number)


def halt(tx: Tx, session: Session, why: attempts.Halt, task_id: str | None = None) -> None:
    """Record why, and for which task, this session is blocked on a human: the Stop hook lets its agent go."""
    tx.replace_session(session._replace(halt=why.words, halt_kind=why.kind, halt_task=task_id))


def unhalted(session: Session) -> Session:
    """Return `session` without its halt."""
    return session._replace(halt=None, halt_kind=None, halt_task=None)


def end(tx: Tx, ctx: Context, session: Session, reason: StopReason) -> StopReason | None:
    """Close `session`, which has no task left for `reason`, and return the reason.

    In a chat the final check comes first: the session stays open for it, and None is returned. Nor is it
    closed there while a completed task is red.
    """
    of_run = ctx.target is not None
    if not of_run and _awaits_final_check(tx, ctx, session):
        tx.replace_session(session._replace(final_check=True))
        return None
    if not of_run and reason == "recheck_failed":
        return reason
    # A run writes its statistics when it ends.
    close(tx, session, stats_logged=of_run)
    return reason


def _awaits_final_check(tx: Tx, ctx: Context, session: Session) -> bool:
    if not tx.settings().final_check:
        return False
    if session.final_check:
        return True
    # What is not trusted on this machine is left to others.
    return rechecks.are_awaited(trust.known(ctx, tx.search("completed")), session.started_at)


def must_check(questions: Questions, ctx: Context) -> bool:
    """Return whether only the final check is left for this worker's session."""
    session = ctx.own_session(questions)
    if not session or not session.final_check:
        return False
    return questions.no_work() in ALL_TAKEN


def after_attempt(tx: Tx, ctx: Context) -> StopReason | None:
    """Count a finished attempt; end or halt the session if nothing is left to do; return the stop reason."""
    # With several workers an attempt may outlive the session in which it began: it counts in the next one.
    same = next((each for each in tx.sessions() if each.number == ctx.session.number), None)
    session = same or ctx.own_session(tx) or ctx.session
    session = unhalted(session)._replace(finished_attempts=session.finished_attempts + 1)
    tx.replace_session(session)
    record_blocked(tx, session.number)
    spent, reason = tx.session_spent(session), tx.no_work()
    if reason in ALL_TAKEN:
        reason = end(tx, ctx, session, reason)
    elif spent:
        tx.log("STATS", stats.render(tx.counts()), session.number)
        # What the Stop hook says then must be true: no other session may start, either.
        halt(tx, session, attempts.Halt("SPENT", tx.sessions_spent() or spent))
        reason = spent
    disable_hooks_when_finished(tx, ctx)
    return reason


def record_blocked(tx: Tx, session: int) -> None:
    """Mark tasks in a cycle and tasks that depend on a permanent failure as failed, and log each."""
    for finding in tx.validate_dependencies():
        tx.log("ERROR", finding.message, session, finding.task_id, category="DEPENDENCY")


def disable_hooks_when_finished(tx: Tx, ctx: Context) -> None:
    """Disable the hooks with this transaction if it leaves no reason to hold an agent."""
    if not tx.holds_agents():
        tx.on_commit(ctx.store.disable_hooks)


STUCK = (ConfigError, EnvSetupError, RefusedError)


@contextmanager
def halting_on_error(ctx: Context, task_id: str | None = None) -> Iterator[None]:
    """Log an error that only a human can resolve, and halt this worker's session; raise every error again."""
    try:
        yield
    except AwayError:
        # It may come back without the user.
        raise
    except STUCK as error:
        with ctx.transaction() as tx:
            _log_stuck(tx, error, ctx.session, task_id)
            current = ctx.own_session(tx)
            if current:
                why = attempts.Halt(attempts.of_error(error), f"{error.kind}: {error.message}")
                halt(tx, current, why, task_id)
        raise


def _log_stuck(tx: Tx, error: HarnessError, session: Session, task_id: str | None) -> None:
    if isinstance(error, RefusedError):
        tx.log("WARN", f"refused: {error.message}", session.number, task_id)
        return
    category: Category = "CONFIG" if isinstance(error, ConfigError) else "ENV_SETUP"
    tx.log("ERROR", error.message, session.number, task_id, category=category)

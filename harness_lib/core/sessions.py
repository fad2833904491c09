"""Sessions: opened, continued, halted and ended, and whether their owners live.

An exclusive session outlives the shell call that opened it: it is a record in the list, and ends when its
owner ends it or is provably gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from harness_lib import timestamps, typed
from harness_lib.agents import registry
from harness_lib.core import quoting, trust
from harness_lib.core.context import Context
from harness_lib.errors import AwayError, ConfigError, EnvSetupError, HarnessError, HeldError, RefusedError
from harness_lib.rules import attempts, rechecks, recovery, stats
from harness_lib.rules.attempts import Halt
from harness_lib.state.api import Questions, Store, Tx
from harness_lib.system.place import own_files
from harness_lib.system.processes import owner, process
from harness_lib.task import Category, Session, StopReason

# The next command if another session holds the list.
WATCH = "harness status --watch"
START = "harness start"
CLAIM = "harness claim"
STOP = "harness stop"
STATUS = "harness status"
NAME_LENGTH = 40
# Reasons why no worker can claim a task any more.
ALL_TAKEN = ("done", "blocked", "recheck_failed")


def mine(questions: Questions, ctx: Context) -> Session | None:
    """Return the open session that this worker works in."""
    return questions.session(ctx.owner.worker)


def is_live(session: Session, questions: Questions, ctx: Context) -> bool:
    """Return whether the owner of the session may still live: False only with proof or after long silence.

    A machine whose clock is wrong must not end the sessions of all others: `questions` know the time.
    """
    if _was_cleared(session, ctx):
        return False
    root, caller = os.fspath(ctx.root.path), ctx.owner.agent_session_id or ""
    now = ctx.clock.now()
    record = _record(session, (questions.now - now).total_seconds())
    return owner.may_live(root, record, caller, now.timestamp())


def _record(session: Session, ahead: float = 0.0) -> owner.Record:
    return owner.Record.of(session._asdict(), ahead)


def _was_cleared(session: Session, ctx: Context) -> bool:
    """Return whether the caller is a later conversation of the same process as this session.

    Agents with one conversation at a time end it with the next one; other hosts may have several.
    """
    me = ctx.owner
    signs = registry.SIGNS.get(owner.in_agent(ctx.env) or "")
    if signs is None or not signs.one_at_a_time:
        return False
    if not me.agent_session_id or not session.agent_session_id:
        return False
    return me.agent_session_id != session.agent_session_id and _is_of_process(session, me)


def _is_of_process(session: Session, me: owner.Owner) -> bool:
    recorded = (session.pid, session.pid_started, session.boot_id, session.host)
    return recorded == (me.pid or None, me.pid_started, me.boot_id, me.host)


def is_callers(session: Session, ctx: Context) -> bool:
    """Return whether the caller is the conversation or the process that opened `session`, not a namesake.

    A resumed conversation has another process and the same id.
    """
    me = ctx.owner
    if me.agent_session_id and session.agent_session_id:
        return me.agent_session_id == session.agent_session_id
    return _is_of_process(session, me)


def program_above(questions: Questions) -> str | None:
    """Return the ancestor of this command that has opened a session; None for a user's terminal.

    It is an agent that shows no sign of itself. Agents of a run know that they are supervised.
    """
    for session in questions.sessions():
        program = None if _is_of_run(session) else owner.program_above(*_record(session)[:4])
        if program:
            return _unlisted(program)
    return None


def own_program(ctx: Context) -> str | None:
    """Return the program that owns the caller's claims; None for a user's terminal."""
    me = ctx.owner
    program = owner.program_above(me.host, me.boot_id, me.pid, me.pid_started)
    return _unlisted(program) if program else None


def _unlisted(program: str) -> str:
    return f"the agent {quoting.one_line(program, NAME_LENGTH)}"


def comes_back(questions: Questions, ctx: Context) -> bool:
    """Return whether the session with this worker name was opened by the caller, not an earlier namesake."""
    session = mine(questions, ctx)
    return is_callers(session, ctx) if session else not owner.is_named(ctx.env)


def go_on(tx: Tx, session: Session, ctx: Context) -> Session:
    """Record in `session` the process that its conversation has now."""
    me = ctx.owner
    current = session._replace(
        host=me.host,
        boot_id=me.boot_id,
        pid=me.pid or None,
        pid_started=me.pid_started,
        agent_session_id=me.agent_session_id or session.agent_session_id,
    )
    if current != session:
        tx.replace_session(current)
        ended = own_files.note_path(os.fspath(ctx.root.path), "ended", current.agent_session_id or "")
        tx.on_commit(lambda: own_files.remove_note(ended))
        tx.log("LOCK", f"acquired again (pid={me.pid})", session=session.number)
    return current


def _has_ended(session: Session, questions: Questions, ctx: Context) -> bool:
    """Return whether the agent session is known to be over, though its process may still live."""
    caller = ctx.owner.agent_session_id or ""
    record = _record(session, (questions.now - ctx.clock.now()).total_seconds())
    noted = owner.has_ended(os.fspath(ctx.root.path), record, caller)
    return noted or _was_cleared(session, ctx)


def show(ctx: Context) -> None:
    """Note that the caller is alive, if its process is invisible outside of its sandbox."""
    me = ctx.owner
    if me.agent_session_id and (not me.pid or process.in_own_namespace()) and ctx.root.private.is_dir():
        owner.show_alive(os.fspath(ctx.root.path), me.agent_session_id)


def worker_is_live(worker: str | None, questions: Questions, ctx: Context) -> bool:
    """Return whether an open session with a live owner belongs to `worker`."""
    theirs = (each for each in questions.sessions() if recovery.works_for(worker, each.worker))
    return any(is_live(session, questions, ctx) for session in theirs)


def living(questions: Questions, ctx: Context) -> set[str]:
    """Return the workers with an open session whose owner may still live."""
    return {session.worker for session in questions.sessions() if is_live(session, questions, ctx)}


def fold_dead(tx: Tx, ctx: Context) -> None:
    """Remove the sessions of dead owners; recovery handles their tasks in progress."""
    for session in tx.sessions():
        if not is_live(session, tx, ctx):
            pid = f" (pid {session.pid})" if session.pid else ""
            gone = "its agent has ended" if _has_ended(session, tx, ctx) else f"its owner{pid} is gone"
            tx.log("WARN", f"{gone} without `harness stop`", session=session.number)
            _remove(tx, session)


def holder(questions: Questions, ctx: Context) -> Session | None:
    """Return the live exclusive session of another worker, if there is one."""
    if questions.concurrent:
        return None
    others = (s for s in questions.sessions() if not recovery.works_for(ctx.owner.worker, s.worker))
    return next((session for session in others if is_live(session, questions, ctx)), None)


def keeps_runs_out(questions: Questions, ctx: Context) -> Session | None:
    """Return the live exclusive session of a chat or a user, the caller's own too; None if there is none."""
    live = (s for s in questions.sessions() if not _is_of_run(s) and is_live(s, questions, ctx))
    return None if questions.concurrent else next(live, None)


def refuse_other(questions: Questions, ctx: Context) -> None:
    """Raise HeldError if another worker has a live exclusive session."""
    session = holder(questions, ctx)
    if session is not None:
        raise HeldError(
            f"Session {session.number} of {session.worker} ({_whereabouts(session)}) "
            f"holds this list since {session.started_at}.",
            f"Wait until it ends; the user can end it: {how_to_end(session)}",
        )


def watching(ctx: Context) -> str:
    """Return the command that shows the work of others: in an agent one that does not wait for its end."""
    return STATUS if owner.in_agent(ctx.env) else WATCH


def unless_held(questions: Questions, ctx: Context, command: str) -> str:
    """Return `command`, which needs the list; if another session holds it, the command that watches that.

    Where the limit allows no further session, `harness start` would do nothing: then it is `harness status`,
    which says so. Where it allows no further task in this session, `harness claim` becomes `harness stop`.
    """
    if holder(questions, ctx) is not None:
        return watching(ctx)
    if command == CLAIM and is_spent(questions, ctx):
        return STOP
    return STATUS if command == START and are_used_up(questions, ctx) else command


def are_used_up(questions: Questions, ctx: Context) -> bool:
    """Return whether this worker has no session, and the limit allows no new one."""
    return mine(questions, ctx) is None and questions.sessions_spent() is not None


def is_spent(questions: Questions, ctx: Context) -> bool:
    """Return whether this worker's session has finished as many attempts as the limit allows by now."""
    session = mine(questions, ctx)
    return session is not None and questions.session_spent(session) is not None


def _whereabouts(session: Session) -> str:
    if not session.pid:
        return f"in a sandbox on {session.host}"
    program = owner.program_of(*_record(session)[:4])
    return f"{f'{program}, ' if program else ''}pid {session.pid} on {session.host}"


def is_live_run(session: Session) -> bool:
    """Return whether the session is of a `harness run` that provably runs on this machine."""
    return _is_of_run(session) and owner.life(*_record(session)[:4]) == "alive"


def was_killed_run(session: Session, questions: Questions, ctx: Context) -> bool:
    """Return whether the session is of a killed `harness run`; one that ends normally closes it."""
    return _is_of_run(session) and not is_live(session, questions, ctx)


def how_to_end(session: Session) -> str:
    """Return the command with which a user ends the session."""
    if is_live_run(session):
        return f"Ctrl-C in its terminal, or kill -INT {session.pid}"
    by_number = typed.harness("stop", "--session", session.number)
    if _is_of_run(session):
        return f"Ctrl-C in its terminal on {session.host}; if it is gone there: {by_number}"
    return by_number


def _is_of_run(session: Session) -> bool:
    return session.pid is not None and owner.is_own_name(session.worker, "run", session.pid)


def open_one(tx: Tx, ctx: Context, number: int | None = None) -> Session:
    """Add a session of this worker, not yet counted.

    `number`: that of the worker's session which it goes on with.
    """
    me = ctx.owner
    if number is None:
        # In this order: whoever has counted keeps others from opening one meanwhile.
        number = max([tx.session_count, *(s.number for s in tx.sessions())]) + 1
    session = Session(
        number=number,
        worker=me.worker,
        host=me.host,
        boot_id=me.boot_id,
        pid=me.pid or None,
        pid_started=me.pid_started,
        agent_session_id=me.agent_session_id,
        started_at=timestamps.render(tx.now),
    )
    tx.add_session(session)
    tx.log("LOCK", f"acquired (pid={me.pid})", session=session.number)
    return session


def is_full(questions: Questions, ctx: Context, at_work: int) -> bool:
    """Return whether the last session that is allowed ends once its `at_work` attempts have finished."""
    session, most = mine(questions, ctx), questions.settings().max_tasks_per_session
    if session is None or not most or questions.sessions_spent() is None:
        return False
    return session.finished_attempts + at_work >= most


def open_again(ctx: Context) -> Session | None:
    """Open the session of a run again that another machine has closed; return it, None if it is not due.

    The limit of sessions does not matter: it has counted this run already.
    """
    with ctx.store.transaction("tasks") as tx:
        # Without work it is closed by whoever finds none.
        if mine(tx, ctx) is not None or tx.no_work() in ALL_TAKEN or tx.awaits_user():
            return None
        session = open_one(tx, ctx)
        tx.count_session(session.number)
        return session


def close(tx: Tx, session: Session, *, stats_logged: bool = False) -> None:
    """End a session as in the protocol's "Session Statistics": STATS, `last_session`, locks released.

    `stats_logged`: its statistics stand in the log already, or will.
    """
    if not stats_logged:
        tx.log("STATS", stats.render(tx.counts()), session=session.number)
    _remove(tx, session)


def begin_next(tx: Tx, session: Session) -> Session:
    """Begin the next session of the same worker, as `session` has reached its limit of tasks.

    What its workers have in progress goes on in the new one; what they have finished above the limit counts
    there.
    """
    tx.log("STATS", stats.render(tx.counts()), session=session.number)
    tx.log("LOCK", "released", session=session.number)
    number = max(tx.session_count, session.number) + 1
    over = max(0, session.finished_attempts - tx.settings().max_tasks_per_session)
    began = unhalted(session)._replace(
        number=number, started_at=timestamps.render(tx.now), finished_attempts=over
    )
    tx.replace_session(began, session.number)
    tx.count_session(number)
    tx.note_session()
    tx.log("LOCK", f"acquired (pid={began.pid})", session=number)
    return began


def _remove(tx: Tx, session: Session) -> None:
    tx.remove_session(session.number)
    # In this order whoever locks several tasks locks them: two never wait for each other.
    for found in sorted(tx.in_progress(), key=lambda task: task.id):
        if not recovery.works_for(found.claimed_by, session.worker):
            continue
        # Another machine may take it over at this moment.
        task = tx.task(found.id)
        if recovery.is_same(task, found) and task is not None and task.lease_expires_at is not None:
            tx.replace(task._replace(lease_expires_at=timestamps.render(tx.now)))
    tx.log("LOCK", "released", session=session.number)


def halt(tx: Tx, session: Session, why: Halt, task_id: str | None = None) -> None:
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
    session = mine(questions, ctx)
    if session is None or not session.final_check:
        return False
    return questions.no_work() in ALL_TAKEN


def after_attempt(tx: Tx, ctx: Context, session: Session) -> StopReason | None:
    """Count a finished attempt; end or halt the session if nothing is left to do; return the stop reason."""
    # With several workers an attempt may outlive the session in which it began: it counts in the next one.
    same = next((each for each in tx.sessions() if each.number == session.number), None)
    session = same or mine(tx, ctx) or session
    session = unhalted(session)._replace(finished_attempts=session.finished_attempts + 1)
    tx.replace_session(session)
    record_blocked(tx, session.number)
    spent, reason = tx.session_spent(session), tx.no_work()
    if reason in ALL_TAKEN:
        reason = end(tx, ctx, session, reason)
    elif spent:
        tx.log("STATS", stats.render(tx.counts()), session=session.number)
        # What the Stop hook says then must be true: no other session may start, either.
        halt(tx, session, Halt("SPENT", tx.sessions_spent() or spent))
        reason = spent
    disable_hooks_when_finished(tx, ctx.store)
    return reason


def record_blocked(tx: Tx, session: int) -> None:
    """Mark tasks in a cycle and tasks that depend on a permanent failure as failed, and log each."""
    for finding in tx.validate_dependencies():
        tx.log("ERROR", finding.message, session=session, task=finding.task_id, category="DEPENDENCY")


def disable_hooks_when_finished(tx: Tx, store: Store) -> None:
    """Disable the hooks with this transaction if it leaves no reason to hold an agent."""
    if not tx.holds_agents():
        tx.on_commit(lambda: store.switch_hooks(on=False))


STUCK = (ConfigError, EnvSetupError, RefusedError)


@contextmanager
def halting_on_error(ctx: Context, session: Session, task_id: str | None = None) -> Iterator[None]:
    """Log an error that only a human can resolve, and halt this worker's session; raise every error again."""
    try:
        yield
    except AwayError:
        # It may come back without the user.
        raise
    except STUCK as error:
        with ctx.store.transaction() as tx:
            _log_stuck(tx, error, session, task_id)
            current = mine(tx, ctx)
            if current:
                why = Halt(attempts.of_error(error), f"{error.kind}: {error.message}")
                halt(tx, current, why, task_id)
        raise


def _log_stuck(tx: Tx, error: HarnessError, session: Session, task_id: str | None) -> None:
    if isinstance(error, RefusedError):
        tx.log("WARN", f"refused: {error.message}", session=session.number, task=task_id)
        return
    category: Category = "CONFIG" if isinstance(error, ConfigError) else "ENV_SETUP"
    tx.log("ERROR", error.message, session=session.number, task=task_id, category=category)

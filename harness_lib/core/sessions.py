"""Find the session of the caller and those of others, whether their owners live, and how a user ends them."""

from __future__ import annotations

import os

from harness_lib import typed
from harness_lib.agents import registry
from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.errors import HeldError
from harness_lib.rules import recovery
from harness_lib.state.api import Questions
from harness_lib.system.processes import owner, process
from harness_lib.task import Session

# The next command if another session holds the list.
WATCH = "harness status --watch"
START = "harness start"
CLAIM = "harness claim"
STOP = "harness stop"
STATUS = "harness status"
NAME_LENGTH = 40


def is_live(session: Session, questions: Questions, ctx: Context) -> bool:
    """Return whether the owner of the session may still live: False only with proof or after long silence.

    A machine whose clock is wrong must not end the sessions of all others: `questions` know the time.
    """
    if _was_cleared(session, ctx):
        return False
    root, caller = os.fspath(ctx.root.path), ctx.owner.agent_session_id or ""
    now = ctx.clock.now()
    record = owner.Record.of(session._asdict(), (questions.now - now).total_seconds())
    return owner.may_live(root, record, caller, now.timestamp())


def _was_cleared(session: Session, ctx: Context) -> bool:
    """Return whether the caller is a later conversation of the same process as this session.

    Agents with one conversation at a time end it with the next one; other hosts may have several.
    """
    me = ctx.owner
    signs = registry.SIGNS.get(ctx.agent or "")
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
        program = (
            None if _is_of_run(session) else owner.program_above(*owner.Record.of(session._asdict())[:4])
        )
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
    session = ctx.own_session(questions)
    return is_callers(session, ctx) if session else not owner.is_named(ctx.env)


def has_ended(session: Session, questions: Questions, ctx: Context) -> bool:
    """Return whether the agent session is known to be over, though its process may still live."""
    caller = ctx.owner.agent_session_id or ""
    record = owner.Record.of(session._asdict(), (questions.now - ctx.clock.now()).total_seconds())
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
    if session:
        raise HeldError(
            f"Session {session.number} of {session.worker} ({_whereabouts(session)}) "
            f"holds this list since {session.started_at}.",
            f"Wait until it ends; the user can end it: {how_to_end(session)}",
        )


def watching(ctx: Context) -> str:
    """Return the command that shows the work of others: in an agent one that does not wait for its end."""
    return STATUS if ctx.agent else WATCH


def unless_held(questions: Questions, ctx: Context, command: str) -> str:
    """Return `command`, which needs the list; if another session holds it, the command that watches that.

    Where the limit allows no further session, `harness start` would do nothing: then it is `harness status`,
    which says so. Where it allows no further task in this session, `harness claim` becomes `harness stop`.
    """
    if holder(questions, ctx):
        return watching(ctx)
    session = ctx.own_session(questions) if command == CLAIM else None
    if session and questions.session_spent(session):
        return STOP
    return STATUS if command == START and are_used_up(questions, ctx) else command


def are_used_up(questions: Questions, ctx: Context) -> bool:
    """Return whether this worker has no session, and the limit allows no new one."""
    return ctx.own_session(questions) is None and questions.sessions_spent() is not None


def _whereabouts(session: Session) -> str:
    if not session.pid:
        return f"in a sandbox on {session.host}"
    program = owner.program_of(*owner.Record.of(session._asdict())[:4])
    return f"{f'{program}, ' if program else ''}pid {session.pid} on {session.host}"


def is_live_run(session: Session) -> bool:
    """Return whether the session is of a `harness run` that provably runs on this machine."""
    return _is_of_run(session) and owner.life(*owner.Record.of(session._asdict())[:4]) == "alive"


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
    return session.pid is not None and session.worker.startswith(f"run-{session.pid}-")


def is_full(questions: Questions, ctx: Context, at_work: int) -> bool:
    """Return whether the last session that is allowed ends once its `at_work` attempts have finished."""
    session, most = ctx.own_session(questions), questions.settings().max_tasks_per_session
    if not session or not most or questions.sessions_spent() is None:
        return False
    return session.finished_attempts + at_work >= most

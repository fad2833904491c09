"""`harness edit` without an id: the settings of the whole list."""

from __future__ import annotations

from harness_lib import typed
from harness_lib.core import rights, sessions
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import HeldError, RefusedError, UsageError
from harness_lib.state.api import Questions, Tx
from harness_lib.task import Mode, SessionConfig


def run(
    ctx: Context,
    *,
    mode: Mode | None = None,
    max_tasks_per_session: int | None = None,
    max_sessions: int | None = None,
    final_check: bool | None = None,
) -> Reply:
    """Change the settings that are given; limits of 0 are no limits.

    Raises UsageError (a negative limit), HeldError or RefusedError where the mode cannot change now,
    RefusedError inside an agent that would be given more.
    """
    with rights.change(ctx) as tx:
        old = tx.settings()
        new = old._replace(
            concurrency_mode=mode or old.concurrency_mode,
            max_tasks_per_session=_limit(max_tasks_per_session, old.max_tasks_per_session),
            max_sessions=_limit(max_sessions, old.max_sessions),
            final_check=old.final_check if final_check is None else final_check,
        )
        story = _describe_changes(old, new)
        if not story:
            return Reply("edit", "The list has these settings already.", next="harness status")
        if _is_more(new.max_sessions, old.max_sessions) or _is_more(
            new.max_tasks_per_session, old.max_tasks_per_session
        ):
            rights.require_person(ctx, "How much may be done here", typed.harness("edit", rest="…"))
        if new.concurrency_mode != old.concurrency_mode:
            _require_quiet(tx, ctx)
        tx.configure(new)
        _lift_limits(tx)
        _let_go(tx, new)
        rights.log(tx, ctx, f"edited {story}")
        then = sessions.unless_held(tx, ctx, "harness start")
    return Reply("edit", f"the list is edited: {story}", next=then, warnings=tuple(tx.warnings))


def _limit(new: int | None, old: int) -> int:
    if new is not None and new < 0:
        raise UsageError(f"{new} is no limit.", "Use a number of 0 or more; 0 means no limit.")
    return old if new is None else new


def _is_more(new: int, old: int) -> bool:
    """Return whether the limit `new` allows more than `old`; 0 means no limit."""
    return old != 0 and (new == 0 or new > old)


def _describe_changes(old: SessionConfig, new: SessionConfig) -> str:
    names = ("concurrency_mode", "max_tasks_per_session", "max_sessions", "final_check")
    changed = (name for name in names if getattr(old, name) != getattr(new, name))
    return "; ".join(f"{name} {getattr(old, name)} -> {getattr(new, name)}" for name in changed)


def _require_quiet(questions: Questions, ctx: Context) -> None:
    """Raise unless nobody works: claims of one mode have no lease, those of the other live by theirs."""
    for session in questions.sessions():
        if sessions.is_live(session, ctx):
            raise HeldError(
                f"The mode cannot change while session {session.number} of {session.worker} is open.",
                f"End it first: {sessions.how_to_end(session)}",
            )
    busy = next((task.id for task in questions.in_progress()), None)
    if busy:
        raise RefusedError(
            f"{busy} is in progress, so the mode cannot change.",
            f"Finish it, or release it: {typed.harness('release', busy)}",
        )


def _let_go(tx: Tx, new: SessionConfig) -> None:
    """Hold no session for a final check that is not wanted."""
    for session in tx.sessions():
        if session.final_check and not new.final_check:
            tx.replace_session(session._replace(final_check=False))


def _lift_limits(tx: Tx) -> None:
    for session in tx.sessions():
        spent = session.halt == "max_tasks_per_session"
        if spent and tx.session_spent(session) is None:
            rights.lift_halt(tx, session)

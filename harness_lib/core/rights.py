"""Refuse an agent's changes to the check of its own work, and to limits that only a user may lift.

An agent that may change its own check has passed it already.
Agents are recognised by their signs, or by the session that their process has opened. An agent that hides
both is not stopped, and the log shows what it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from harness_lib import typed
from harness_lib.core import lifecycle, ownership, project, sessions, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import HeldError, RefusedError, UsageError
from harness_lib.rules import attempts, recovery
from harness_lib.state.api import Questions, Tx
from harness_lib.task import Task

# The verbs that an agent of `harness run` may type; the others are for the runner or a user. They read or
# report; `add` proposes; hooks type `beat` for it.
FOR_SUPERVISED = frozenset(
    (
        *("note", "checkpoint", "add", "beat"),
        *("status", "show", "log", "report", "graph", "check", "doctor", "rescue", "validate", "budget"),
    )
)
_LIMITS = ("max_tasks_per_session", "max_sessions")


def require_admitted(ctx: Context, verb: str) -> None:
    """Raise UsageError if a supervised agent types a verb that is not for it."""
    if verb not in FOR_SUPERVISED:
        ownership.refuse_supervised(ctx, f"harness {verb}")


def without_refused(reply: Reply) -> Reply:
    """Return `reply` for a supervised agent, without a `next` that it may not type."""
    words = (reply.next or "").split()
    is_refused = words[1:2] and (words[1] not in FOR_SUPERVISED or words[1:3] == ["check", "--repair"])
    return reply._replace(next=None) if is_refused else reply


def acting_agent(ctx: Context) -> str | None:
    """Return the name of the agent that types, or None for a user. Raises what reading the list does."""
    return known_agent(ctx) or sessions.program_above(ctx.ask())


def known_agent(ctx: Context) -> str | None:
    """Return the name of the agent that types, if it shows a sign of itself."""
    return ctx.agent or ("a supervised agent" if ctx.env.get(ownership.SUPERVISED) else None)


def says_yes_in_a_script(ctx: Context) -> bool:
    """Return whether a script of the user may trust commands; no message names its variable."""
    return ctx.env.get("HARNESS_TRUST", "0") not in ("", "0")


def require_user(ctx: Context, subject: str, command: str) -> None:
    """Raise RefusedError inside an agent; `subject` is the decision, and a user types `command` instead."""
    _require_none(acting_agent(ctx), subject, command)


def _require_none(agent: str | None, subject: str, command: str) -> None:
    if agent:
        raise RefusedError(
            f"{subject} must be decided by the user, not by {agent}.",
            f"Ask the user to type, in a terminal: {command}",
        )


def require_check_of_another(ctx: Context, task: Task, command: str) -> None:
    """Raise RefusedError inside an agent that has claimed `task`, or if the task is blocked on a human.

    A user types `command` instead.
    """
    if attempts.is_for_user(task):
        require_user(ctx, f"What becomes of {task.id}, which waits for the user,", command)
    if any(recovery.works_for(name, ctx.owner.worker) for name in task.attempted_by):
        agent = acting_agent(ctx) or sessions.own_program(ctx)
        _require_none(agent, f"{task.id} was claimed in this session: its check", command)


@contextmanager
def change(ctx: Context, commands_of: Sequence[Task] = ()) -> Iterator[Tx]:
    """Open a transaction for a change by a user, who gives the tasks `commands_of` their commands.

    A trusted list stays trusted with them. The hooks are enabled if there was no work before; if there was,
    the list is paused.
    """
    trust.prepare(ctx)
    with ctx.transaction() as tx:
        mine = trust.may_trust(ctx, tx)
        had_work = tx.holds_agents()
        yield tx
        if mine and tx.changed:
            trust.know(ctx, tx, commands_of)
        if not had_work and tx.holds_agents():
            tx.on_commit(ctx.store.enable_hooks)
    if not mine:
        project.adopt(ctx)


def log(tx: Tx, ctx: Context, text: str, task_id: str | None = None) -> None:
    """Log `text`, which begins with a participle, and the name of the agent or `hand`.

    The protocol has no type for changes of the list itself; readers of a log look at WARN.
    """
    done, _, details = text.partition(" ")
    who = ctx.agent or sessions.program_above(tx) or "hand"
    tx.log("WARN", f"{done} by {who}{details and f': {details}'}", task=task_id)


def lift_halts(tx: Tx, task: Task) -> None:
    """Continue the sessions that were halted because of the configuration of this task."""
    for session in tx.sessions():
        works_here = not tx.concurrent or recovery.works_for(task.claimed_by, session.worker)
        is_for_it = session.halt_task in (None, task.id)
        if works_here and is_for_it and attempts.is_lifted_by_an_edit(session.halt_kind):
            tx.replace_session(lifecycle.unhalted(session))


def edit_settings(ctx: Context, changes: Mapping[str, Any]) -> Reply:
    """Change the settings of the list by their names; limits of 0 are no limits.

    Raises UsageError (a negative limit), HeldError or RefusedError where the mode cannot change now,
    RefusedError inside an agent that would be given more.
    """
    for number in (changes[name] for name in _LIMITS if name in changes):
        if number < 0:
            raise UsageError(f"{number} is not a limit.", "Use a number of 0 or more; 0 means no limit.")
    with change(ctx) as tx:
        old = tx.settings()
        new = old._replace(**changes)
        changed = [name for name in changes if getattr(new, name) != getattr(old, name)]
        if not changed:
            return Reply("The list has these settings already.", next="harness status")
        if any(_is_more(getattr(new, name), getattr(old, name)) for name in _LIMITS):
            require_user(ctx, "How much may be done here", typed.harness("edit", rest="…"))
        if "concurrency_mode" in changed:
            _require_quiet(tx, ctx)
        tx.configure(new)
        _let_go(tx)
        story = "; ".join(f"{name} {getattr(old, name)} -> {getattr(new, name)}" for name in changed)
        log(tx, ctx, f"edited {story}")
        then = sessions.unless_held(tx, ctx, "harness start")
    return Reply(f"the list is edited: {story}", next=then, warnings=tuple(tx.warnings))


def _is_more(new: int, old: int) -> bool:
    """Return whether the limit `new` allows more than `old`; 0 means no limit."""
    return old != 0 and (new == 0 or new > old)


def _require_quiet(questions: Questions, ctx: Context) -> None:
    """Raise if a session is open or a task in progress: only in one of the modes claims have a lease."""
    for session in questions.sessions():
        if sessions.is_live(session, questions, ctx):
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


def _let_go(tx: Tx) -> None:
    """Continue the sessions that a limit does not hold any more; hold none for a final check without one."""
    for session in tx.sessions():
        is_free = session.halt == "max_tasks_per_session" and tx.session_spent(session) is None
        now = lifecycle.unhalted(session) if is_free else session
        now = now._replace(final_check=now.final_check and tx.settings().final_check)
        if now != session:
            tx.replace_session(now)

"""Refuse an agent's change of the check of its own work, and of what only a person may lift.

Who may set its own exam has passed it already.
Agents are known by their signs, and one without signs by the session that its process has opened. One that
hides both is not stopped, and the log has what it did.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harness_lib.core import add_tasks, ownership, sessions, trust_policy
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import RefusedError
from harness_lib.rules import halting, leases
from harness_lib.state.api import Tx
from harness_lib.system.processes import owner
from harness_lib.task import Session, Task

# What an agent that a supervisor has started may type; the rest is the supervisor's, or a person's.
# They look, or tell; `add` proposes; `beat` is what hooks type for it.
FOR_SUPERVISED = frozenset(
    (
        *("note", "checkpoint", "add", "beat"),
        *("status", "show", "log", "graph", "check", "doctor", "rescue", "validate", "budget"),
    )
)


def require_admitted(ctx: Context, verb: str) -> None:
    """Raise UsageError if a supervised agent types a verb that is not for it."""
    if verb not in FOR_SUPERVISED:
        ownership.refuse_supervised(ctx, f"harness {verb}")


def without_refused(reply: Reply) -> Reply:
    """Return `reply` for a supervised agent: a `next` that is refused to it is left out."""
    words = (reply.next or "").split()
    is_refused = words[1:2] and (words[1] not in FOR_SUPERVISED or words[1:3] == ["check", "--repair"])
    return reply._replace(next=None) if is_refused else reply


def acting_agent(ctx: Context) -> str | None:
    """Return the name of the agent that types, or None for a person. Raises what reading the list does."""
    return known_agent(ctx) or sessions.program_above(ctx.store.ask())


def known_agent(ctx: Context) -> str | None:
    """Return the name of the agent that types if it gives a sign of itself."""
    return owner.in_agent(ctx.env) or ("a supervised agent" if ctx.env.get(ownership.SUPERVISED) else None)


def require_person(ctx: Context, subject: str, command: str) -> None:
    """Raise RefusedError inside an agent; `subject` names what is asked, `command` does it for a person."""
    _require_none(acting_agent(ctx), subject, command)


def _require_none(agent: str | None, subject: str, command: str) -> None:
    if agent:
        raise RefusedError(
            f"{subject} must be decided by a person, not by {agent}.",
            f"Ask the person to type, in a terminal: {command}",
        )


def require_check_of_another(ctx: Context, task: Task, command: str) -> None:
    """Raise RefusedError inside an agent that has claimed `task`, or that a person must act for first.

    `command` is what a person would type instead.
    """
    if halting.is_for_a_person(task):
        require_person(ctx, f"What becomes of {task.id}, which waits for a person,", command)
    if any(leases.works_for(name, ctx.owner.worker) for name in task.attempted_by):
        agent = acting_agent(ctx) or sessions.own_program(ctx)
        _require_none(agent, f"{task.id} was claimed in this session: its check", command)


@contextmanager
def change(ctx: Context) -> Iterator[Tx]:
    """Open a transaction for a change that a person wants.

    Trust that the list has goes over to its new commands, and the marker comes back if there was no work left
    before. It stays away where there was: then somebody has paused the list.
    """
    trust_policy.prepare(ctx)
    with ctx.store.transaction() as tx:
        mine = add_tasks.may_trust(ctx, tx)
        had_work = tx.holds_agents()
        yield tx
        if mine and tx.changed:
            tx.on_commit(lambda: trust_policy.note(ctx, tx))
        if not had_work and tx.holds_agents():
            tx.on_commit(lambda: ctx.store.switch_hooks(on=True))


def log(tx: Tx, ctx: Context, text: str, task_id: str | None = None) -> None:
    """Log `text`, which begins with a participle, and who did it.

    The protocol has no type for changes to the list itself; WARN is what whoever reads a log looks at.
    """
    done, _, details = text.partition(" ")
    who = owner.in_agent(ctx.env) or sessions.program_above(tx) or "hand"
    tx.log("WARN", f"{done} by {who}{details and f': {details}'}", session=tx.session_count, task=task_id)


def lift_halts(tx: Tx, task: Task) -> None:
    """Let the session that was halted because of this task's configuration go on."""
    for session in tx.sessions():
        if halting.is_lifted_by_an_edit(session.halt_kind) and _concerns(tx, session, task):
            lift_halt(tx, session)


def _concerns(tx: Tx, session: Session, task: Task) -> bool:
    return not tx.concurrent or leases.works_for(task.claimed_by, session.worker)


def lift_halt(tx: Tx, session: Session) -> None:
    """Let `session` go on."""
    tx.replace_session(session._replace(halt=None, halt_kind=None))

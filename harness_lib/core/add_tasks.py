"""Add tasks to a list: give them an id, append them, refuse invalid ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from harness_lib import typed
from harness_lib.core import ownership, trust
from harness_lib.core.context import Context
from harness_lib.errors import UsageError
from harness_lib.rules import recovery
from harness_lib.state import codec, reading
from harness_lib.state.api import Questions, Tx
from harness_lib.state.codec import ContractError
from harness_lib.task import Task


class Added(NamedTuple):
    """An added task, whether the list with its commands is trusted, and the next command."""

    task: Task
    is_trusted: bool
    next: str | None


def add(ctx: Context, draft: Task) -> Added:
    """Append `draft` under a new id. Raises UsageError if it depends on a task that does not exist."""
    trust.prepare(ctx)
    spent = spent_ids(ctx)
    with ctx.store.transaction() as tx:
        mine = may_trust(ctx, tx)
        waits = ownership.ids_of(tx, draft.depends_on)
        task = draft._replace(id=next_id(tx, spent), depends_on=waits)
        append(tx, ctx, (task,))
        if mine:
            trust.know(ctx, tx, (task,))
        then = ownership.next_command(ctx, tx)
    return Added(task, mine, then)


def no_check(task_id: str) -> str:
    """Return the warning about a task without a check."""
    return f"It has no check, so it cannot be completed. Give it one: {typed.give_check(task_id)}"


def may_trust(ctx: Context, questions: Questions) -> bool:
    """Return whether the list may be trusted with the new commands: not if it came with a clone."""
    return trust.is_trusted(ctx, questions) or trust.runs_nothing(ctx, questions)


def spent_ids(ctx: Context) -> tuple[str, ...]:
    """Return the ids of rescued work: a new task must not get the work of a removed one."""
    return tuple(name.split("/")[3] for name, _oid in ctx.git.refs(recovery.RESCUES))


def next_id(questions: Questions, spent: Iterable[str] = ()) -> str:
    """Return the next free `task-NNN`, after the highest number in use or `spent`."""
    numbers = [int(match[1]) for name in spent if (match := re.fullmatch(r"task-([0-9]+)", name))]
    return f"task-{max(questions.highest_number(), *numbers, 0) + 1:03d}"


def append(tx: Tx, ctx: Context, tasks: tuple[Task, ...]) -> None:
    """Append `tasks` to the list and enable the hooks, as there is work.

    Raises UsageError for an invalid field, an unknown dependency, or a cycle.
    """
    for task in tasks:
        require_writable(task)
        require_inside(ctx, task)
    tx.add(tasks)
    require_sound(tx, tasks)
    tx.on_commit(lambda: ctx.store.switch_hooks(on=True))


def require_writable(task: Task) -> None:
    """Raise UsageError, naming the fields, if `task` breaks the contract of the list."""
    alone = {**reading.written(task), "depends_on": []}
    try:
        codec.decode_tasks([alone])
    except ContractError as error:
        problems = "; ".join(f"{path.partition('.')[2]} {message}" for path, message in error.problems)
        raise UsageError(f"{task.id} cannot be written: {problems}.", "Use another value.") from error


def require_inside(ctx: Context, task: Task) -> None:
    """Raise UsageError if the check of `task` would run outside of the project."""
    cwd = task.validation.cwd
    if not cwd:
        return
    path = (ctx.git.top / cwd).resolve()
    if not path.is_relative_to(ctx.git.top):
        raise UsageError(
            f"{task.id}: the directory of its check, {cwd!r}, is outside of {ctx.git.top}.",
            "Name a directory below the top of the work tree: --cwd DIRECTORY",
        )


def require_sound(questions: Questions, changed: tuple[Task, ...]) -> None:
    """Raise UsageError if one of the `changed` tasks has a dependency that cannot be met."""
    for task in changed:
        unknown = [name for name in task.depends_on if questions.task(name) is None]
        if unknown:
            raise UsageError(
                f"{task.id} depends on {', '.join(unknown)}, which this list does not have.",
                "List the tasks: harness status --all",
            )
    rings = questions.rings()
    for task in changed:
        if task.id in rings:
            raise UsageError(
                f"{task.id} would depend on itself: {rings[task.id]}.", "Leave one of these dependencies out."
            )

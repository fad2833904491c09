"""Add tasks to a list: give them an id, append them, refuse invalid ones; propose them for a user to decide.

An unattended agent that could add tasks could run any command as a check, or work forever. So it proposes
them: they wait in the list, and nothing of them runs. A user sees them in `harness status` and at the end of
a run, and accepts or dismisses them (`harness add --proposed`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from harness_lib import typed
from harness_lib.core import ownership, quoting, trust
from harness_lib.core.context import Context
from harness_lib.errors import UsageError
from harness_lib.rules import recovery
from harness_lib.state import codec, reading
from harness_lib.state.api import Questions, Tx
from harness_lib.system import fs
from harness_lib.task import Task
from harness_lib.text import Strings, some

MOST_PROPOSALS = 50
PREFIX = "proposed-"


class Added(NamedTuple):
    """An added task, whether the list with its commands is trusted, and the next command."""

    task: Task
    is_trusted: bool
    next: str | None


def add(ctx: Context, draft: Task) -> Added:
    """Append `draft` under a new id. Raises UsageError if it depends on a task that does not exist."""
    trust.prepare(ctx)
    spent = spent_ids(ctx)
    with ctx.transaction() as tx:
        mine = trust.may_trust(ctx, tx)
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


def spent_ids(ctx: Context) -> Strings:
    """Return the ids of rescued work and of logs: a new task must not get those of a removed one."""
    logs = [path.name for path in fs.matching(ctx.root.logs, "task-*")]
    return (*(name.split("/")[3] for name, _oid in ctx.git.refs(recovery.RESCUES)), *logs)


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
    tx.on_commit(ctx.store.enable_hooks)


def require_writable(task: Task) -> None:
    """Raise UsageError, naming the fields, if `task` breaks the contract of the list."""
    alone = {**reading.written(task), "depends_on": []}
    try:
        codec.decode_tasks([alone])
    except codec.ContractError as error:
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
        unknown = [name for name in task.depends_on if not questions.task(name)]
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


def propose(ctx: Context, by: str, draft: Task) -> Task:
    """Propose `draft` for the agent that works on the task `by`; return it, or the same earlier proposal.

    Raises UsageError if it cannot be a task, or too many proposals wait already.
    """
    if not draft.title.strip():
        raise UsageError("A task needs a title.", typed.harness("add", rest='"what is to be done"'))
    with ctx.transaction() as tx:
        ownership.require_task(tx, by)
        waiting = tx.proposals()
        task = draft._replace(
            id=f"{PREFIX}{max((number_of(task) for task in waiting), default=0) + 1}",
            notes=(f"proposed by whoever worked on {by}",),
        )
        require_writable(task)
        same = next((old for old in waiting if old._replace(id=task.id) == task), None)
        if same:
            return same
        if len(waiting) >= MOST_PROPOSALS:
            raise UsageError(
                f"{MOST_PROPOSALS} proposed tasks wait for the user already.",
                "Go on with your task without it.",
            )
        tx.propose(task)
    return task


def number_of(task: Task) -> int:
    """Return the number of a proposed task for the command line; 0 if harness did not name it."""
    digits = task.id.removeprefix(PREFIX)
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def proposal_lines(questions: Questions) -> list[str]:
    """Return the line about waiting proposals for `status` and the end of a run; [] if there are none."""
    waiting = questions.proposals()
    if not waiting:
        return []
    titles = some([f"{number_of(task)}. {quoting.title(task)}" for task in waiting])
    return [f"{len(waiting)} proposed by agents, not added yet: {titles} (harness add --proposed)"]

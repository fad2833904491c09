"""Add tasks to a list: give them an id, append them, refuse invalid ones; propose them for a user to decide.

An unattended agent that could add tasks could run any command as a check, or work forever. So it proposes
them: they wait in the list, and nothing of them runs. A user sees them in `harness status` and at the end of
a run, and accepts or dismisses them.

An agent that cannot write the list leaves its proposals, checkpoints and notes as letters beside its work,
which the run records.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from harness_lib import typed
from harness_lib.checks import check_of
from harness_lib.core import ownership, quoting, rights, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import EnvSetupError, UsageError
from harness_lib.records import given
from harness_lib.rules import recovery
from harness_lib.state import codec, reading
from harness_lib.state.api import Questions, Tx
from harness_lib.state.codec import ContractError
from harness_lib.system import fs
from harness_lib.task import Task
from harness_lib.text import some

MOST_PROPOSALS = 50
SHOWN = 5
PREFIX = "proposed-"
# The directory of the letters of an agent that may not write the list.
MAIL = "mail"


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


def propose(ctx: Context, draft: Task) -> Reply:
    """Propose `draft`; UsageError if it cannot be a task, or too many proposals wait already."""
    by = ctx.env[ownership.SUPERVISED]
    try:
        task = _record(ctx, by, draft)
    except (EnvSetupError, OSError) as error:
        return leave_letter(ctx, error, "add", by, json.dumps(reading.written(draft)))
    return Reply(f"proposed: {quoting.title(task)}\nThe user decides about it; go on with your task.")


def from_letter(ctx: Context, by: str, text: str) -> Reply:
    """Do what `propose` does for the agent that works on task `by`; `text` is its letter."""
    try:
        fields: dict[str, Any] = json.loads(text)
        allowed = {name: fields[name] for name in given.NAMES & fields.keys()}
        task = _record(ctx, by, codec.decode_task({**allowed, "id": PREFIX, "status": "pending"}))
    except (ValueError, TypeError, AttributeError, ContractError) as error:
        raise UsageError(f"Invalid proposal: {error}", "harness add --help") from error
    return Reply(f"proposed: {quoting.title(task)}")


def _record(ctx: Context, by: str, draft: Task) -> Task:
    if not draft.title.strip():
        raise UsageError("A task needs a title.", typed.harness("add", rest='"what is to be done"'))
    with ctx.store.transaction() as tx:
        ownership.require_task(tx, by)
        waiting = tx.proposals()
        task = draft._replace(
            id=f"{PREFIX}{max((_number(task) for task in waiting), default=0) + 1}",
            notes=(f"proposed by whoever worked on {by}",),
        )
        require_writable(task)
        same = next((old for old in waiting if old._replace(id=task.id) == task), None)
        if same is not None:
            return same
        if len(waiting) >= MOST_PROPOSALS:
            raise UsageError(
                f"{MOST_PROPOSALS} proposed tasks wait for the user already.",
                "Go on with your task without it.",
            )
        tx.propose(task)
    return task


def show_proposals(ctx: Context) -> Reply:
    """List the proposals, without a lock."""
    waiting = ctx.store.ask().proposals()
    lines = [line for task in waiting for line in _lines_of(task)]
    return Reply(
        "\n".join(lines) or "No task is proposed.",
        next="harness add --proposed N" if waiting else "harness status",
        extra={
            "proposals": [
                {"number": _number(t), "title": t.title, "check": check_of(t).text} for t in waiting
            ]
        },
    )


def _lines_of(task: Task) -> Iterator[str]:
    yield f"{_number(task)}. [{task.priority}] {quoting.title(task)} ({'; '.join(task.notes)})"
    if task.description:
        yield f"   description: {quoting.one_line(task.description, quoting.REASON_LENGTH)}"
    if task.depends_on:
        yield f"   depends on: {some(task.depends_on, SHOWN)}"
    yield f"   check: {quoting.one_line(check_of(task).text or 'none', quoting.REASON_LENGTH)}"
    if task.on_failure.cleanup:
        yield f"   cleanup: {quoting.one_line(task.on_failure.cleanup, quoting.REASON_LENGTH)}"


def accept(ctx: Context, numbers: Sequence[int]) -> Reply:
    """Add the proposed tasks with these numbers to the list, at a user's request.

    Raises UsageError (no such number; it depends on nothing that exists), RefusedError (inside an agent).
    """
    rights.require_user(ctx, "Which proposed task is added", typed.harness("add", "--proposed", *numbers))
    spent = spent_ids(ctx)
    added: list[Task] = []
    trust.prepare(ctx)
    with ctx.store.transaction() as tx:
        mine = trust.may_trust(ctx, tx)
        for each in numbers:
            chosen = _find(tx, each)
            task = chosen._replace(id=next_id(tx, spent))
            tx.drop_proposal(chosen.id)
            append(tx, ctx, (task,))
            rights.log(tx, ctx, f"accepted {chosen.id}", task.id)
            added.append(task)
        if mine:
            trust.know(ctx, tx, added)
        then = ownership.next_command(ctx, tx)
    warnings = [no_check(task.id) for task in added if not check_of(task).is_given]
    return Reply(
        "\n".join(f"added {task.id} [{task.priority}]: {quoting.title(task)}" for task in added),
        task=added[-1] if added else None,
        next=then,
        warnings=(*warnings, *tx.warnings),
    )


def dismiss(ctx: Context, numbers: Sequence[int]) -> Reply:
    """Remove the proposed tasks with these numbers. Raises what `accept` does."""
    rights.require_user(
        ctx, "Which proposed task is dismissed", typed.harness("add", "--proposed", *numbers, "--dismiss")
    )
    with rights.change(ctx) as tx:
        for each in numbers:
            chosen = _find(tx, each)
            tx.drop_proposal(chosen.id)
            rights.log(tx, ctx, f"dismissed {chosen.id}: {quoting.title(chosen)}")
    return Reply(f"dismissed: {len(numbers)}", next="harness status", warnings=tuple(tx.warnings))


def _find(questions: Questions, asked: int) -> Task:
    proposal = next((task for task in questions.proposals() if _number(task) == asked), None)
    if proposal is None:
        raise UsageError(f"There is no proposed task {asked}.", "List them: harness add --proposed")
    return proposal


def _number(task: Task) -> int:
    """Return the number of a proposed task for the command line; 0 if harness did not name it."""
    digits = task.id.removeprefix(PREFIX)
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def proposal_lines(questions: Questions) -> list[str]:
    """Return the line about waiting proposals for `status` and the end of a run; [] if there are none."""
    waiting = questions.proposals()
    if not waiting:
        return []
    titles = some([f"{_number(task)}. {quoting.title(task)}" for task in waiting], SHOWN)
    return [f"{len(waiting)} proposed by agents, not added yet: {titles} (harness add --proposed)"]


def letters_of(ctx: Context) -> Path | None:
    """Return the directory of letters in the work tree of a worker; None in any other work tree."""
    private = ctx.private_here
    return None if private is None or ctx.git.top == ctx.root.path else private / MAIL


def is_linked(directory: Path) -> bool:
    """Return whether a symbolic link of a commit would lead letters elsewhere."""
    return directory.is_symlink() or directory.parent.is_symlink()


def leave_letter(
    ctx: Context, refused: EnvSetupError | OSError, verb: str, task_id: str | None, *words: str
) -> Reply:
    """Leave a letter for the runner, because the list cannot be written, or read, from here (`refused`).

    `task_id` None: the task of the agent. Raises `refused` if the agent is not supervised, or a letter cannot
    be written either.
    """
    directory, supervised = letters_of(ctx), ctx.env.get(ownership.SUPERVISED)
    if not supervised or directory is None:
        raise refused
    if is_linked(directory):
        raise refused
    task_id, task = task_id or supervised, None
    # Landlock knows files, and each change of the list makes another one: then the run looks for the task.
    with suppress(EnvSetupError):
        task = ownership.require_task(ctx.store.ask(), task_id)
    # Sorted by the time of writing.
    name = f"{time.time_ns():020}-{os.urandom(4).hex()}.json"
    letter = json.dumps({"verb": verb, "task": task_id, "words": words})
    try:
        fs.write(directory / name, letter.encode(), durable=False, make=True)
    except OSError:
        raise refused from None
    name = task.id if task else task_id
    return Reply(f"{verb} for {name}: left for the run, which records it.", task=task)

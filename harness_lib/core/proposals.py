"""Tasks that an unattended agent proposes: they wait in the list, and nothing of them runs.

An agent that could add tasks could run any command as a check, or work forever.
A user sees them in `harness status` and at the end of a run, and accepts or dismisses them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness_lib import typed
from harness_lib.checks import check_of
from harness_lib.core import add_tasks, ownership, quoting, rights, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import EnvSetupError, UsageError
from harness_lib.records import given
from harness_lib.state import codec, reading
from harness_lib.state.api import Questions
from harness_lib.state.codec import ContractError
from harness_lib.system import fs
from harness_lib.task import Task
from harness_lib.text import some

MOST = 50
SHOWN = 5
PREFIX = "proposed-"
NAME = "mail"


def propose(ctx: Context, draft: Task) -> Reply:
    """Propose `draft`; UsageError if it cannot be a task, or too many proposals wait already."""
    by = ctx.env[ownership.SUPERVISED]
    try:
        task = _record(ctx, by, draft)
    except (EnvSetupError, OSError) as error:
        return leave(ctx, error, "add", by, json.dumps(reading.written(draft)))
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
            id=f"{PREFIX}{max((number(task) for task in waiting), default=0) + 1}",
            notes=(f"proposed by whoever worked on {by}",),
        )
        add_tasks.require_writable(task)
        same = next((old for old in waiting if old._replace(id=task.id) == task), None)
        if same is not None:
            return same
        if len(waiting) >= MOST:
            raise UsageError(
                f"{MOST} proposed tasks wait for the user already.", "Go on with your task without it."
            )
        tx.propose(task)
    return task


def show(ctx: Context) -> Reply:
    """List the proposals, without a lock."""
    waiting = ctx.store.ask().proposals()
    lines = [line for task in waiting for line in _lines_of(task)]
    return Reply(
        "\n".join(lines) or "No task is proposed.",
        next="harness add --proposed N" if waiting else "harness status",
        extra={
            "proposals": [{"number": number(t), "title": t.title, "check": check_of(t).text} for t in waiting]
        },
    )


def _lines_of(task: Task) -> Iterator[str]:
    yield f"{number(task)}. [{task.priority}] {quoting.title(task)} ({'; '.join(task.notes)})"
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
    spent = add_tasks.spent_ids(ctx)
    added: list[Task] = []
    trust.prepare(ctx)
    with ctx.store.transaction() as tx:
        mine = add_tasks.may_trust(ctx, tx)
        for each in numbers:
            chosen = _find(tx, each)
            task = chosen._replace(id=add_tasks.next_id(tx, spent))
            tx.drop_proposal(chosen.id)
            add_tasks.append(tx, ctx, (task,))
            rights.log(tx, ctx, f"accepted {chosen.id}", task.id)
            added.append(task)
        if mine:
            trust.know(ctx, tx, added)
        then = ownership.next_command(ctx, tx)
    warnings = [add_tasks.no_check(task.id) for task in added if not check_of(task).is_given]
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
    proposal = next((task for task in questions.proposals() if number(task) == asked), None)
    if proposal is None:
        raise UsageError(f"There is no proposed task {asked}.", "List them: harness add --proposed")
    return proposal


def number(task: Task) -> int:
    """Return the number of a proposed task for the command line; 0 if harness did not name it."""
    digits = task.id.removeprefix(PREFIX)
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def lines(questions: Questions) -> list[str]:
    """Return the line about waiting proposals for `status` and the end of a run; [] if there are none."""
    waiting = questions.proposals()
    if not waiting:
        return []
    titles = some([f"{number(task)}. {quoting.title(task)}" for task in waiting], SHOWN)
    return [f"{len(waiting)} proposed by agents, not added yet: {titles} (harness add --proposed)"]


def directory_of(ctx: Context) -> Path | None:
    """Return the directory of letters in the work tree of a worker; None in any other work tree."""
    private = ctx.private_here
    return None if private is None or ctx.git.top == ctx.root.path else private / NAME


def is_linked(directory: Path) -> bool:
    """Return whether a symbolic link of a commit would lead letters elsewhere."""
    return directory.is_symlink() or directory.parent.is_symlink()


def leave(
    ctx: Context, refused: EnvSetupError | OSError, verb: str, task_id: str | None, *words: str
) -> Reply:
    """Leave a letter for the runner, because the list cannot be written, or read, from here (`refused`).

    `task_id` None: the task of the agent. Raises `refused` if the agent is not supervised, or a letter cannot
    be written either.
    """
    directory, supervised = directory_of(ctx), ctx.env.get(ownership.SUPERVISED)
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

"""`harness export --tick PLAN`: tick in a plan's own file what is completed here."""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser, Namespace
from pathlib import Path

from harness_lib import typed
from harness_lib.core import import_parse, planned
from harness_lib.core.context import Context, Reply
from harness_lib.errors import HeldError, UsageError
from harness_lib.rules import checklist
from harness_lib.rules.plans.plan import PlannedTask
from harness_lib.system import fs
from harness_lib.text import counted

SUMMARY = "tick the boxes of a plan whose tasks are completed"
EXAMPLE = "harness export --tick specs/001-albums/tasks.md"
HELP_ORDER = 32
# A line with its end, as CommonMark counts lines.
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_EMPTY = re.compile(rb"\[ \]")


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--tick",
        metavar="PLAN",
        required=True,
        help="the file of an imported plan; nothing else in it changes",
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    """Tick the boxes of the tasks of a plan that are completed in the list."""
    path = ctx.cwd / Path(args.tick)
    _, data, name = planned.source(ctx, path, args.tick)
    text = import_parse.text_of(data)
    read = planned.recognised(text, name)
    planned_tasks = list(read.plan.tasks) if read else _items(text)
    if not planned_tasks:
        raise UsageError(
            f"{args.tick} is not a plan. Looked for: {planned.looked_for()}.", "Name the file of a plan."
        )
    questions = ctx.ask()
    imported = [task for task in questions.search() if task.source and task.source.plan == name]
    tasks = {task.source.key: task for task in imported if task.source}
    if not tasks:
        raise UsageError(
            f"No task of the list was imported from {name}.",
            f"Import it: {typed.harness('import', args.tick)}",
        )
    # What was ticked before the import is not ours to count.
    planned_tasks = [each for each in planned_tasks if each.key in tasks or not each.done]
    done = [each for each in planned_tasks if each.key in tasks and tasks[each.key].is_done]
    ticked, count = _ticked(data, done)
    if count:
        _write(path.resolve(), data, ticked)
    boxes = f"{count} {'box' if count == 1 else 'boxes'} ticked"
    if not any(each.boxes for each in planned_tasks):
        boxes = "and it has no boxes to tick"
    return Reply(
        f"{args.tick}: {len(done)} of {counted(len(planned_tasks), 'task')} completed, {boxes}.",
        next=(None if questions.in_progress() else _commit(ctx, path.resolve())) or "harness status",
        extra={"ticked": count, "completed": len(done)},
    )


def _commit(ctx: Context, path: Path) -> str | None:
    """Return the command that commits the plan at `path`, as the next claim needs it; None if it is."""
    top = ctx.git.top.resolve()
    if not path.is_relative_to(top) or path.relative_to(top).as_posix() not in ctx.changes().tracked:
        return None
    words = ("-m", f"Tick what is done in {path.name}", "--", os.path.relpath(path, ctx.cwd.resolve()))
    return typed.git("commit", *words)


def _items(text: str) -> list[PlannedTask]:
    """Return the tasks of a check list of ours."""
    items, _ = checklist.parse(text)
    keyed = zip(items, checklist.keys(items), strict=True)
    tasks = ((item, key) for item, key in keyed if not item.is_group)
    return [PlannedTask(key, item.title, "", done=item.done, boxes=(item.line,)) for item, key in tasks]


def _ticked(data: bytes, done: list[PlannedTask]) -> tuple[bytes, int]:
    """Return `data` with the boxes of the tasks `done` ticked, and how many were not before."""
    lines = _LINE.findall(data)
    count = 0
    for number in (line - 1 for task in done for line in task.boxes):
        lines[number], changes = _EMPTY.subn(b"[x]", lines[number], count=1)
        count += changes
    return b"".join(lines), count


def _write(path: Path, before: bytes, after: bytes) -> None:
    def last_look() -> None:
        if path.read_bytes() != before:
            raise HeldError(f"{path} has just changed.", "Type it again.")

    try:
        fs.write(path, after, last_look=last_look)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.", "Make it writable.") from error

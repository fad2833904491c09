"""`harness import FILE`: many tasks at once, all of them or none."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Literal, NamedTuple

from harness_lib import typed
from harness_lib.checks import check_of
from harness_lib.core import (
    add_tasks,
    held_out,
    import_parse,
    import_plan,
    ownership,
    project,
    quoting,
    sessions,
    trust,
)
from harness_lib.core.context import Context
from harness_lib.core.import_parse import Drafts
from harness_lib.core.import_plan import Plan
from harness_lib.core.reply import Reply
from harness_lib.errors import UsageError
from harness_lib.state.api import Questions
from harness_lib.task import Task
from harness_lib.terminal.screen import Screen
from harness_lib.text import counted

SUMMARY = "append many tasks from JSON or a Markdown check list"
EXAMPLE = "harness import tasks.md --dry-run"
HELP_ORDER = 30
MARKDOWN = """a Markdown check list:

  - [ ] Limit requests per client
    - check: pytest -q tests/test_rate.py
    - priority: P0
  - [ ] Say so in the documents
    - check: grep -q rate docs/api.md
    - after: Limit requests per client
"""

SHOWN = 20
Format = Literal["json", "markdown"]


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.epilog = f"{parser.epilog or ''}\n\n{MARKDOWN}".strip()
    parser.add_argument("file", help="JSON, a Markdown check list, or - for standard input")
    parser.add_argument("--dry-run", action="store_true", help="say what would be added, add nothing")
    parser.add_argument("--format", choices=("json", "markdown"), help="(default: by name or content)")
    parser.add_argument("--check", metavar="CMD", help="the check of tasks that have none")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness import`."""
    if args.file == "-":
        source = Source("standard input", sys.stdin.buffer.read(), "-")
    else:
        source = read_file(ctx, args.file)
    return run(ctx, source, form=args.format, check=args.check, dry_run=args.dry_run)


class Source(NamedTuple):
    """The input: its name for messages, its bytes, and what the user typed for it."""

    name: str
    data: bytes
    word: str


def run(
    ctx: Context,
    source: Source,
    *,
    form: Format | None = None,
    check: str | None = None,
    dry_run: bool = False,
) -> Reply:
    """Append the tasks of `source`; with `dry_run` only list them.

    `form` None: guessed from the name and the first character. `check` is for tasks without one.
    Raises UsageError with every problem and its place; then nothing is added.
    """
    options = (*(("--format", form) if form else ()), *(("--check", check) if check else ()))
    again = typed.harness("import", source.word, *options)
    form = form or _guess(source)
    if form == "json":
        drafts = import_parse.json_tasks(source.data)
    else:
        drafts = import_parse.markdown_tasks(source.data, "" if source.word == "-" else source.word)
    drafts = drafts.with_check(check) if check else drafts
    drafts = held_out.imported(ctx, drafts, again, dry_run=dry_run)
    spent = add_tasks.spent_ids(ctx)
    if dry_run:
        questions = ctx.store.ask()
        plan = import_plan.plan(questions, drafts, spent)
        return _reply(plan, drafts, _doubtful(ctx, questions, plan.tasks), then=again, dry_run=True)
    trust.prepare(ctx)
    with ctx.store.transaction() as tx:
        plan = import_plan.plan(tx, drafts, spent)
        mine = add_tasks.may_trust(ctx, tx)
        if plan.tasks:
            add_tasks.append(tx, ctx, plan.tasks)
        if mine:
            tx.on_commit(lambda: trust.note(ctx, tx))
        then = ownership.next_command(ctx, tx)
    warnings = (*_doubtful(ctx, ctx.store.ask(), plan.tasks), *tx.warnings)
    warnings = warnings if mine else (*warnings, add_tasks.NOT_TRUSTED)
    return _reply(plan, drafts, warnings, then=then, dry_run=False)


def _doubtful(ctx: Context, questions: Questions, added: tuple[Task, ...]) -> tuple[str, ...]:
    """Return the first warnings about checks that cannot fail or that tasks share."""
    ids = {task.id for task in added}
    before = [task for task in questions.search(*project.OPEN) if task.id not in ids]
    doubts = [doubt for task in added for doubt in project.cannot_fail(ctx.git.top, task)]
    doubts += project.in_common(ctx, (*before, *added), ids)
    more = len(doubts) - SHOWN
    return (*doubts[:SHOWN], *([f"… and {more} more doubts: harness check"] if more > 0 else []))


def read_file(ctx: Context, path: str) -> Source:
    """Read the file at `path`, relative to the caller's directory; UsageError if it cannot be read."""
    try:
        return Source(path, (ctx.cwd / Path(path)).read_bytes(), path)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}.", "Name a file, or - for standard input."
        ) from error


def _guess(source: Source) -> Format:
    if source.name.lower().endswith(".json"):
        return "json"
    if source.name.lower().endswith((".md", ".markdown", ".txt")):
        return "markdown"
    return "json" if source.data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"[", b"{") else "markdown"


def _reply(
    plan: Plan, drafts: Drafts, warnings: tuple[str, ...], *, then: str | None, dry_run: bool
) -> Reply:
    tasks, bare = plan.tasks, [task for task in plan.tasks if not check_of(task).is_given]
    lines = [f"{'would add' if dry_run else 'added'} {_count(tasks)}"]
    if drafts.kind:
        lines.insert(
            0, f"{drafts.kind}: {counted(len(tasks), 'task')}, {len(tasks) - len(bare)} with a check"
        )
    lines += [f"  {_line(task)}" for task in tasks[:SHOWN]]
    if len(tasks) > SHOWN:
        lines.append(f"  … and {len(tasks) - SHOWN} more, up to {tasks[-1].id}")
    if drafts.kind and bare and not dry_run:
        lines.append(f"{counted(len(bare), 'task')} without a check: {typed.give_check(bare[0].id)}")
    if then == sessions.START and not dry_run:
        lines.append(f"{then} lets you or the agent of this chat begin; harness run starts agents itself.")
    return Reply(
        "import",
        "\n".join(lines),
        next=then if tasks else "harness status",
        warnings=(*plan.notes, *warnings),
        extra={
            "added": 0 if dry_run else len(tasks),
            "count": len(tasks),
            "first": tasks[0].id if tasks else None,
            "last": tasks[-1].id if tasks else None,
            "dry_run": dry_run,
        },
    )


def _count(tasks: tuple[Task, ...]) -> str:
    return "1 task:" if len(tasks) == 1 else f"{len(tasks)} tasks" + (":" if tasks else "")


def _line(task: Task) -> str:
    after = f" (after {quoting.one_line(', '.join(task.depends_on), 60)})" if task.depends_on else ""
    check = "" if check_of(task).is_given else " (no check)"
    return f"{task.id} [{task.priority}] {quoting.one_line(task.title, 100)}{after}{check}"

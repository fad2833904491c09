"""`harness import FILE`: many tasks at once, all of them or none, from a plan, a check list or JSON."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness_lib import typed
from harness_lib.checks import check_of
from harness_lib.core import (
    add_tasks,
    held_out,
    import_parse,
    import_plan,
    ownership,
    planned,
    project,
    quoting,
    rights,
    sessions,
    trust,
)
from harness_lib.core.context import Context, Reply
from harness_lib.core.import_parse import Draft, Drafts
from harness_lib.core.planned import Order, Source
from harness_lib.errors import UsageError
from harness_lib.rules import attempts
from harness_lib.rules.plans.plan import Read
from harness_lib.state.api import Questions
from harness_lib.system.place import roots
from harness_lib.task import Task
from harness_lib.text import Strings, counted, first, some

SUMMARY = "append many tasks: a plan of another tool, a Markdown check list, or JSON"
EXAMPLE = "harness import docs/superpowers/plans/2026-11-20-greeting.md --dry-run"
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
# So many tasks of a plan are shown with their commands.
ROWS = 200
TITLE_WIDTH = 50
KEY_WIDTH = 12
COMMAND_LENGTH = 500
OTHERS = ("superpowers", "spec-kit", "openspec", "gsd", "task-master", "github")


def arguments(parser: ArgumentParser) -> None:
    parser.epilog = f"{parser.epilog}\n\n{MARKDOWN}".strip()
    parser.add_argument("file", help="a plan, a check list or JSON; a directory of plans; - for stdin")
    parser.add_argument("--dry-run", action="store_true", help="show what would be added, add nothing")
    parser.add_argument(
        "--format",
        choices=("json", "markdown", "checklist", *OTHERS),
        help="default: recognised by its content; json and checklist are formats of harness",
    )
    parser.add_argument("--check", metavar="CMD", help="the check of tasks that have none")
    order = parser.add_mutually_exclusive_group()
    order.add_argument(
        "--parallel",
        dest="order",
        action="store_const",
        const="parallel",
        help="no task of the plan waits for another",
    )
    order.add_argument(
        "--sequential",
        dest="order",
        action="store_const",
        const="sequential",
        help="each task of the plan waits for the one before",
    )
    parser.add_argument("--yes", action="store_true", help="I have read the plan's commands: they may run")


def answer(ctx: Context, args: Namespace) -> Reply:
    """Answer `harness import`; a list is made first where there is none, once the tasks can be read."""
    choices = Choices(args.format, args.order, args.check, dry_run=args.dry_run, yes=args.yes)
    if roots.find(ctx.env, ctx.cwd) or roots.elsewhere(ctx.cwd):
        return run(ctx, planned.sources(ctx, args.file), choices, args.file)
    place = Context(env={**ctx.env, "HARNESS_STATE_ROOT": str(ctx.cwd)}, cwd=ctx.cwd, clock=ctx.clock)
    found = planned.sources(place, args.file)
    looked = run(place, found, choices._replace(dry_run=True), args.file, place.no_list())
    if choices.dry_run:
        return looked
    from harness_lib.verbs import init  # noqa: PLC0415 (only a first import needs it)

    made = init.run(ctx)
    reply = run(ctx, found, choices, args.file)
    return reply._replace(message=f"{made.message}\n{reply.message}", warnings=made.warnings + reply.warnings)


class Choices(NamedTuple):
    """What was typed beside the file; see `harness import --help`."""

    form: str | None = None
    order: Order | None = None
    check: str | None = None
    dry_run: bool = False
    yes: bool = False

    def words(self) -> Strings:
        """Return what to type for the same import."""
        form = ("--format", self.form) if self.form else ()
        check = ("--check", self.check) if self.check else ()
        return (*form, *((f"--{self.order}",) if self.order else ()), *check)


def run(
    ctx: Context, found: list[Source], choices: Choices, word: str, questions: Questions | None = None
) -> Reply:
    """Append the tasks of what was `found` at `word`; with `dry_run` only say which they would be.

    `questions` are the answers for a dry run where there is no list yet.
    The commands of a plan count as trusted if a user types at a terminal, or says yes in a script.
    If anything in the file is wrong, nothing is added.
    """
    again = typed.harness("import", word, *choices.words())
    drafts = _with_files_beside(ctx, *_drafts(found, choices, ctx.git.top))
    brought = any("validation" in draft.document for draft in drafts.items if drafts.kind and not draft.done)
    drafts = drafts.with_check(choices.check) if choices.check else drafts
    drafts = held_out.imported(ctx, drafts, again, dry_run=choices.dry_run)
    spent = add_tasks.spent_ids(ctx)
    if choices.dry_run:
        questions = questions or ctx.ask()
        plan = import_plan.plan(questions, drafts, spent, again)
        return _reply(plan, drafts, _doubtful(ctx, questions, plan.tasks), then=again, dry_run=True)
    trust.prepare(ctx)
    with ctx.transaction() as tx:
        plan = import_plan.plan(tx, drafts, spent, again)
        refused = _not_for_caller(ctx, choices, len(plan.tasks)) if brought and plan.tasks else None
        mine = trust.may_trust(ctx, tx) and refused is None
        if plan.tasks:
            if refused:
                trust.keep_to_present(ctx, tx)
            add_tasks.append(tx, ctx, plan.tasks)
        for name, header in drafts.plans.items():
            tx.keep_plan(name, header)
        if mine:
            trust.know(ctx, tx, plan.tasks)
        then = "harness trust" if refused else ownership.next_command(ctx, tx)
    warnings = (*_doubtful(ctx, ctx.ask(), plan.tasks), *tx.warnings)
    if not mine:
        project.adopt(ctx)
        warnings = (*warnings, refused or trust.not_yet(ctx))
    return _reply(plan, drafts, warnings, then=then, dry_run=False)


def _not_for_caller(ctx: Context, choices: Choices, count: int) -> str | None:
    """Return why the commands of a plan are not trusted yet; None if the caller can decide that."""
    agent = rights.acting_agent(ctx)
    is_read = ctx.at_terminal and (choices.yes or count <= ROWS)
    if not agent and (is_read or (choices.yes and rights.says_yes_in_a_script(ctx))):
        return None
    said = "--yes was refused, and the commands" if choices.yes else "The commands"
    who = f", not for {agent}" if agent else ""
    return (
        f"{said} of the plan are not trusted yet: whether they may run is for the user to say{who}. "
        "Ask the user to look at them and to type, in a terminal: harness trust"
    )


def _doubtful(ctx: Context, questions: Questions, added: tuple[Task, ...]) -> Strings:
    """Return the first warnings about checks that cannot fail or that tasks share."""
    ids = {task.id for task in added}
    before = [task for task in questions.search(*project.OPEN) if task.id not in ids]
    doubts = [doubt for task in added for doubt in project.cannot_fail(ctx.git.top, task)]
    doubts += project.in_common(ctx, (*before, *added), ids)
    return tuple(first(doubts, SHOWN, " doubts: harness check"))


# -- what is imported -------------------------------------------------------------------------------------


def _drafts(found: list[Source], choices: Choices, top: Path) -> tuple[Drafts, list[Read]]:
    """Return the tasks of all sources, and the plans of other tools among these."""
    form = choices.form if choices.form in OTHERS else None
    only_own = choices.form in ("json", "checklist")
    plans, own = [], []
    for source in found:
        try:
            text = import_parse.text_of(source.data)
            read = None if only_own else planned.recognised(text, source.plan, form)
        except UsageError:
            if len(found) == 1:
                raise
            text, read = "", None
        plans += [read] if read else []
        own += [] if read else [(source, text)]
    if plans:
        for number, read in enumerate(plans):
            if _has_summary(top, read):
                tasks = tuple(task._replace(done=True) for task in read.plan.tasks)
                plans[number] = read._replace(plan=read.plan._replace(tasks=tasks))
        drafts = planned.drafts(plans, top, choices.order)
        left_out = [source.name for source, _ in own]
        if left_out:
            drafts.notes.append(f"Passed over, because they are not plans: {some(left_out)}.")
        return drafts, plans
    if choices.order:
        instead = "A check list has lines such as `- after: …`, JSON has depends_on."
        raise UsageError(f"--{choices.order} is for plans of other tools.", instead)
    if len(found) != 1:
        raise UsageError(
            f"No plan is in this directory. Looked for: {planned.looked_for()}.", "Name the file itself."
        )
    return _own(*own[0], choices.form), []


def _has_summary(top: Path, read: Read) -> bool:
    """Return whether GSD has written the summary of a finished plan beside it."""
    path = top / read.name
    numbered = re.match(r"\d+(?:\.\d+)?-\d+(?=-)", path.name)
    names = {path.name.replace("PLAN", "SUMMARY"), *([f"{numbered[0]}-SUMMARY.md"] if numbered else [])}
    return read.form.word == "gsd" and any((path.parent / name).exists() for name in names - {path.name})


def _own(source: Source, text: str, form: str | None) -> Drafts:
    if form == "json" or (form is None and _is_json(source, text)):
        return import_parse.json_tasks(source.data)
    drafts = import_parse.markdown_tasks(text, source.plan)
    if not drafts.items:
        raise UsageError(
            f"This text contains no task. Looked for: {planned.looked_for()}; lines such as `- [ ] …` "
            "(a check list).",
            import_parse.EXAMPLE,
        )
    return drafts


def _is_json(source: Source, text: str) -> bool:
    if source.name.lower().endswith((".md", ".markdown", ".txt")):
        return False
    return source.name.lower().endswith(".json") or text.lstrip()[:1] in ("[", "{")


def _with_files_beside(ctx: Context, drafts: Drafts, plans: list[Read]) -> Drafts:
    """Return `drafts` with the files beside each plan named in what it says for all of its tasks."""
    said = dict(drafts.plans)
    for read in plans:
        place = Path(read.name).parent
        names = [name for name in read.form.beside if (ctx.git.top / place / name).exists()]
        if names:
            files = ", ".join(str(place / name) for name in names)
            more = f"Read beside it, as far as it concerns the task: {files}."
            said[read.name] = "\n\n".join(filter(None, (said[read.name], more)))
    return replace(drafts, plans=said)


# -- what is said -----------------------------------------------------------------------------------------


def _reply(
    plan: import_plan.Plan, drafts: Drafts, warnings: Strings, *, then: str | None, dry_run: bool
) -> Reply:
    tasks = plan.tasks
    bare = [task for task in tasks if not check_of(task).is_given and not attempts.asks_a_person(task)]
    lines = [f"{'would add' if dry_run else 'added'} {counted(len(tasks), 'task')}{':' if tasks else ''}"]
    notes = plan.notes
    if drafts.kind:
        lines = [_recognised(drafts), *lines, *_table(plan)]
    else:
        lines += [f"  {_line(task)}" for task in tasks[:SHOWN]]
        if len(tasks) > SHOWN:
            lines.append(f"  … and {len(tasks) - SHOWN} more, up to {tasks[-1].id}")
    if drafts.kind:
        lines += _without(bare, dry_run=dry_run)
    else:
        # No verb knows the tasks of a dry run.
        notes = (*notes, *(_without(bare, dry_run=True) if dry_run else project.without_check(tasks)))
    if plan.known:
        are = "is" if plan.known == 1 else "are"
        lines.append(f"{counted(plan.known, 'task')} of the plan {are} in the list already")
    if then == sessions.START and tasks and not dry_run:
        lines.append(f"{then} lets you or the agent of this chat begin; harness run starts agents itself.")
    return Reply(
        "\n".join(lines),
        next=then if tasks else "harness status",
        warnings=(*notes, *warnings),
        extra={
            "added": 0 if dry_run else len(tasks),
            "count": len(tasks),
            "first": tasks[0].id if tasks else None,
            "last": tasks[-1].id if tasks else None,
            "dry_run": dry_run,
        },
    )


def _without(bare: list[Task], *, dry_run: bool) -> list[str]:
    """Return what to type for the tasks without a check."""
    if dry_run and bare:
        ids = some([task.id for task in bare])
        return [f"{counted(len(bare), 'task')} without a check ({ids}): --check 'COMMAND' gives them one"]
    rows = [f"{task.id} has no check: {typed.give_check(task.id)}" for task in bare]
    return first(rows, SHOWN, ": harness check")


def _recognised(drafts: Drafts) -> str:
    """Return what the plan is, and how much of it has a check, is done, or waits for a person."""
    documents = [draft.document for draft in drafts.items]
    checked = sum("validation" in document for document in documents)
    done = sum(draft.done for draft in drafts.items)
    human = sum("halt" in document for document in documents)
    parts = [counted(len(documents), "task"), f"{checked} with a check"]
    parts += [f"{human} for a person"] if human else []
    parts += [f"{done} done already"] if done else []
    return f"{drafts.kind}: {', '.join(parts)}"


def _table(plan: import_plan.Plan) -> list[str]:
    """Return a row for each task, its check last and whole, because the user decides about it."""
    rows = [("id", "plan", "title", "after", "lines", "check")] if plan.tasks else []
    for task, draft in zip(plan.tasks[:ROWS], plan.drafts, strict=False):
        after = quoting.one_line(", ".join(task.depends_on), TITLE_WIDTH) or "-"
        key = quoting.one_line(task.source.key, KEY_WIDTH) if task.source else "-"
        title = quoting.one_line(task.title, TITLE_WIDTH)
        rows.append((task.id, key, title, after, _span(draft), _asked(task)))
    wide = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    lines = [
        "  " + "  ".join([*(cell.ljust(width) for cell, width in zip(row, wide, strict=False)), row[-1]])
        for row in rows
    ]
    if len(plan.tasks) > ROWS:
        lines.append(f"  … and {len(plan.tasks) - ROWS} more, up to {plan.tasks[-1].id}: harness check")
    return lines


def _span(draft: Draft) -> str:
    first, last = draft.lines
    return "-" if not first else f"{first}-{last}" if last > first else str(first)


def _asked(task: Task) -> str:
    if attempts.asks_a_person(task):
        return f"(a person: {typed.harness('accept', task.id)})"
    text = "; ".join((task.validation.command or "-").splitlines())
    return quoting.one_line(text.replace("(; ", "(").replace("; )", ")"), COMMAND_LENGTH)


def _line(task: Task) -> str:
    after = f" (after {quoting.one_line(', '.join(task.depends_on), 60)})" if task.depends_on else ""
    check = "" if check_of(task).is_given else " (no check)"
    return f"{task.id} [{task.priority}] {quoting.one_line(task.title, 100)}{after}{check}"

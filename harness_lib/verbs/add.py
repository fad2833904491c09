"""`harness add`: append a task."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence

from harness_lib import typed
from harness_lib.attempts import check, dialogue
from harness_lib.checks import check_of
from harness_lib.core import add_tasks, held_out, ownership, project, quoting, rights, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import EnvSetupError, UsageError
from harness_lib.records import given
from harness_lib.state import api, reading
from harness_lib.task import Task
from harness_lib.terminal import options
from harness_lib.text import some

SUMMARY = "append a task"
EXAMPLE = 'harness add "Add rate limiting" --validate "pytest -q tests/test_rate.py" --depends-on task-001'
HELP_ORDER = 20


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("title", nargs="?", help="what is to be done")
    options.add_task(parser, editing=False)
    parser.add_argument(
        "--try",
        dest="try_once",
        action="store_true",
        help="run the check once first; add nothing if it cannot run here",
    )
    proposed = parser.add_argument_group("tasks proposed by unattended agents")
    proposed.add_argument(
        "--proposed", metavar="N", type=int, nargs="*", help="add these; without a number: list them"
    )
    proposed.add_argument(
        "--dismiss", action="store_true", help="with --proposed: dismiss them instead of adding them"
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    if args.proposed is not None:
        if args.title is not None:
            raise UsageError("A title is for a new task.", "See: harness add --help")
        if not args.proposed:
            return _show_proposals(ctx)
        decide = _dismiss if args.dismiss else _accept
        return decide(ctx, args.proposed)
    if args.title is None or args.dismiss:
        raise UsageError("A task needs a title.", "See: harness add --help")
    blank = Task("", args.title)
    changes = held_out.typed_with(ctx, options.typed_task(args), blank, typed.harness("add", rest="…"))
    draft = given.with_values(blank, changes)
    if ctx.env.get(ownership.SUPERVISED):
        return _propose(ctx, draft)
    return run(ctx, draft, try_once=args.try_once)


def run(ctx: Context, draft: Task, *, try_once: bool = False) -> Reply:
    """Append `draft` with a new id; with `try_once` its check runs once before."""
    if not draft.title.strip():
        raise UsageError("A task needs a title.", 'harness add "what is to be done" --validate "command"')
    tried = f"\n{_try(ctx, draft)}" if try_once else ""
    task, is_trusted, then = add_tasks.add(ctx, draft)
    warnings = [] if check_of(task).is_given else [add_tasks.no_check(task.id)]
    warnings += project.cannot_fail(ctx.git.top, task)
    warnings += project.in_common(ctx, ctx.ask().search(*project.OPEN), [task.id])
    if not is_trusted:
        project.adopt(ctx)
        warnings.append(trust.not_yet(ctx))
    return Reply(
        f"added {task.id} [{task.priority}]: {quoting.title(task)}{tried}" + _where_it_runs(ctx, task),
        task=task,
        next=then,
        warnings=tuple(warnings),
    )


def _try(ctx: Context, draft: Task) -> str:
    """Run the check of `draft` once, and return its result; EnvSetupError if it cannot run here."""
    if not check_of(draft).is_given:
        raise UsageError("There is no check to try.", "Give one: --validate COMMAND")
    checked = check.run_once(ctx, draft, "try")
    if checked.verdict == "ENV_SETUP":
        raise EnvSetupError(
            f"The check cannot run here. {checked.message} Nothing was added.",
            "Install what is missing, or give another check: --validate COMMAND",
        )
    if checked.passed:
        return "Its check passes before any work, so it cannot tell whether the work is done."
    return f"Its check ran once. {quoting.one_line(checked.failure())}"


def _where_it_runs(ctx: Context, task: Task) -> str:
    """Say where the check will run if the current directory suggests another place."""
    top = ctx.git.top
    beside = ctx.root.path != top and ctx.root.path.is_relative_to(top)
    if not check_of(task).is_given or task.validation.cwd or not beside:
        return ""
    cwd = typed.word(ctx.root.path.relative_to(top))
    return f"\nIts check runs at the top of the repository, {top}; with --cwd {cwd} it runs beside the list."


def _propose(ctx: Context, draft: Task) -> Reply:
    """Propose `draft` for an agent of a run. Raises what `add_tasks.propose` does."""
    by = ctx.env[ownership.SUPERVISED]
    try:
        task = add_tasks.propose(ctx, by, draft)
    except (EnvSetupError, OSError) as error:
        return dialogue.leave_letter(ctx, error, "add", by, json.dumps(reading.written(draft)))
    return Reply(f"proposed: {quoting.title(task)}\nThe user decides about it; go on with your task.")


def _show_proposals(ctx: Context) -> Reply:
    """List the proposals, without a lock."""
    waiting = ctx.ask().proposals()
    lines = [line for task in waiting for line in _lines_of(task)]
    return Reply(
        "\n".join(lines) or "No task is proposed.",
        next="harness add --proposed N" if waiting else "harness status",
        extra={
            "proposals": [
                {"number": add_tasks.number_of(t), "title": t.title, "check": check_of(t).text}
                for t in waiting
            ]
        },
    )


def _lines_of(task: Task) -> Iterator[str]:
    yield f"{add_tasks.number_of(task)}. [{task.priority}] {quoting.title(task)} ({'; '.join(task.notes)})"
    if task.description:
        yield f"   description: {quoting.one_line(task.description, quoting.REASON_LENGTH)}"
    if task.depends_on:
        yield f"   depends on: {some(task.depends_on)}"
    yield f"   check: {quoting.one_line(check_of(task).text or 'none', quoting.REASON_LENGTH)}"
    if task.on_failure.cleanup:
        yield f"   cleanup: {quoting.one_line(task.on_failure.cleanup, quoting.REASON_LENGTH)}"


def _accept(ctx: Context, numbers: Sequence[int]) -> Reply:
    """Add the proposed tasks with these numbers to the list, at a user's request.

    Raises UsageError (no such number; it depends on nothing that exists), RefusedError (inside an agent).
    """
    rights.require_user(ctx, "Which proposed task is added", typed.harness("add", "--proposed", *numbers))
    spent = add_tasks.spent_ids(ctx)
    added: list[Task] = []
    trust.prepare(ctx)
    with ctx.transaction() as tx:
        mine = trust.may_trust(ctx, tx)
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
        task=added[-1],
        next=then,
        warnings=(*warnings, *tx.warnings),
    )


def _dismiss(ctx: Context, numbers: Sequence[int]) -> Reply:
    """Remove the proposed tasks with these numbers. Raises what `_accept` does."""
    rights.require_user(
        ctx, "Which proposed task is dismissed", typed.harness("add", "--proposed", *numbers, "--dismiss")
    )
    with rights.change(ctx) as tx:
        for each in numbers:
            chosen = _find(tx, each)
            tx.drop_proposal(chosen.id)
            rights.log(tx, ctx, f"dismissed {chosen.id}: {quoting.title(chosen)}")
    return Reply(f"dismissed: {len(numbers)}", next="harness status", warnings=tuple(tx.warnings))


def _find(questions: api.Questions, asked: int) -> Task:
    proposal = next((task for task in questions.proposals() if add_tasks.number_of(task) == asked), None)
    if not proposal:
        raise UsageError(f"There is no proposed task {asked}.", "List them: harness add --proposed")
    return proposal

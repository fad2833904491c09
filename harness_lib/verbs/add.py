"""`harness add`: append a task."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib import typed
from harness_lib.attempts import check
from harness_lib.checks import check_of
from harness_lib.core import add_tasks, held_out, ownership, project, quoting, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import EnvSetupError, UsageError
from harness_lib.records import given
from harness_lib.task import Task
from harness_lib.terminal import options
from harness_lib.terminal.render import Screen

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


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    if args.proposed is not None:
        if args.title is not None:
            raise UsageError("A title is for a new task.", "See: harness add --help")
        if not args.proposed:
            return add_tasks.show_proposals(ctx)
        decide = add_tasks.dismiss if args.dismiss else add_tasks.accept
        return decide(ctx, args.proposed)
    if args.title is None or args.dismiss:
        raise UsageError("A task needs a title.", "See: harness add --help")
    blank = Task("", args.title)
    changes = held_out.typed_with(ctx, options.typed_task(args), blank, typed.harness("add", rest="…"))
    draft = given.with_values(blank, changes)
    if ctx.env.get(ownership.SUPERVISED):
        return add_tasks.propose(ctx, draft)
    return run(ctx, draft, try_once=args.try_once)


def run(ctx: Context, draft: Task, *, try_once: bool = False) -> Reply:
    """Append `draft` with a new id; with `try_once` its check runs once before."""
    if not draft.title.strip():
        raise UsageError("A task needs a title.", 'harness add "what is to be done" --validate "command"')
    tried = f"\n{_try(ctx, draft)}" if try_once else ""
    task, is_trusted, then = add_tasks.add(ctx, draft)
    warnings = [] if check_of(task).is_given else [add_tasks.no_check(task.id)]
    warnings += project.cannot_fail(ctx.git.top, task)
    warnings += project.in_common(ctx, ctx.store.ask().search(*project.OPEN), [task.id])
    if not is_trusted:
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
    return f"Its check ran once. {quoting.one_line(checked.failure(), quoting.FAILURE_LENGTH)}"


def _where_it_runs(ctx: Context, task: Task) -> str:
    """Say where the check will run if the current directory suggests another place."""
    top = ctx.git.top
    beside = ctx.root.path != top and ctx.root.path.is_relative_to(top)
    if not check_of(task).is_given or task.validation.cwd or not beside:
        return ""
    cwd = typed.word(ctx.root.path.relative_to(top))
    return f"\nIts check runs at the top of the repository, {top}; with --cwd {cwd} it runs beside the list."

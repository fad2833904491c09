"""`harness edit`: correct a task, or the settings of the list."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, Namespace

from harness_lib.cli import task_options
from harness_lib.cli.screen import Screen
from harness_lib.core import edit_settings
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import UsageError
from harness_lib.task import MODES
from harness_lib.verbs import edit

SUMMARY = "correct a task, or the settings of the list"
EXAMPLE = 'harness edit task-001 --validate "pytest -q tests/test_rate.py" --priority P0'
HELP_ORDER = 230


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", nargs="?", help="the task; without it the options of the whole list apply")
    task = parser.add_argument_group("the task (an empty text clears a field)")
    task_options.add(task, editing=True)
    whole = parser.add_argument_group("the whole list (0 is no limit)")
    whole.add_argument("--mode", choices=MODES, help="one session at a time, or many workers")
    whole.add_argument("--max-tasks-per-session", metavar="N", type=int)
    whole.add_argument("--max-sessions", metavar="N", type=int)
    whole.add_argument(
        "--final-check",
        action=BooleanOptionalAction,
        help="hold an agent in a chat until the checks of all tasks have run once more at the end",
    )


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness edit`."""
    changes = task_options.typed(args)
    whole = (args.mode, args.max_tasks_per_session, args.max_sessions, args.final_check)
    of_list = any(value is not None for value in whole)
    if args.id is None and changes:
        raise UsageError("Which task?", "Name it: harness edit task-001 …")
    if args.id is not None and of_list:
        raise UsageError("This is set for the whole list, not for a task.", "Leave the id out.")
    if not of_list and not changes:
        raise UsageError("What shall be changed?", "See: harness edit --help")
    if args.id is not None:
        return edit.run(ctx, args.id, changes)
    return edit_settings.run(
        ctx,
        mode=args.mode,
        max_tasks_per_session=args.max_tasks_per_session,
        max_sessions=args.max_sessions,
        final_check=args.final_check,
    )

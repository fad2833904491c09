"""`harness edit`: correct a task, or the settings of the list."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.cli.verb import names
from harness_lib.core import edit_settings
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import UsageError
from harness_lib.task import MODES, PRIORITIES
from harness_lib.verbs import edit


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", nargs="?", help="the task; without it the options of the whole list apply")
    task = parser.add_argument_group("the task (an empty text clears a field)")
    task.add_argument("--title", metavar="TEXT")
    task.add_argument("--description", metavar="TEXT")
    task.add_argument("--priority", choices=PRIORITIES)
    task.add_argument(
        "--depends-on",
        metavar="ID",
        type=names,
        action="extend",
        help="instead of what it depended on; may be repeated or ID,ID",
    )
    task.add_argument("--validate", metavar="CMD", help="the check")
    task.add_argument("--timeout", metavar="SEC", type=int, help="for the check")
    task.add_argument("--cwd", metavar="DIR", help="where the check runs, from the top of the work tree")
    task.add_argument(
        "--protect",
        metavar="GLOB",
        action="append",
        help="instead of what was protected; may be repeated",
    )
    task.add_argument(
        "--red-first", action=BooleanOptionalAction, help="the check must fail before work starts"
    )
    task.add_argument("--cleanup", metavar="CMD", help="run after a failed attempt was rolled back")
    task.add_argument("--max-attempts", metavar="N", type=int)
    whole = parser.add_argument_group("the whole list (0 is no limit)")
    whole.add_argument("--mode", choices=MODES, help="one session at a time, or many workers")
    whole.add_argument("--max-tasks-per-session", metavar="N", type=int)
    whole.add_argument("--max-sessions", metavar="N", type=int)


def answer(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    """Answer `harness edit`."""
    changes = _changes(args)
    whole = (args.mode, args.max_tasks_per_session, args.max_sessions)
    of_list = any(value is not None for value in whole)
    if args.id is None and changes != edit.Changes():
        raise UsageError("Which task?", "Name it: harness edit task-001 …")
    if args.id is not None and of_list:
        raise UsageError("This is set for the whole list, not for a task.", "Leave the id out.")
    if not of_list and changes == edit.Changes():
        raise UsageError("What shall be changed?", "See: harness edit --help")
    if args.id is not None:
        return edit.run(ctx, args.id, changes, at_terminal=screen.is_answerable)
    return edit_settings.run(
        ctx,
        mode=args.mode,
        max_tasks_per_session=args.max_tasks_per_session,
        max_sessions=args.max_sessions,
    )


def _changes(args: Namespace) -> edit.Changes:
    return edit.Changes(
        title=args.title,
        description=args.description,
        priority=args.priority,
        depends_on=None if args.depends_on is None else tuple(args.depends_on),
        validate=args.validate,
        timeout_seconds=args.timeout,
        cwd=args.cwd,
        protect=None if args.protect is None else tuple(glob for glob in args.protect if glob),
        red_first=args.red_first,
        cleanup=args.cleanup,
        max_attempts=args.max_attempts,
    )

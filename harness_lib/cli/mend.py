"""The verbs that people need after a mistake."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, Namespace

from harness_lib import typed
from harness_lib.cli.screen import Screen
from harness_lib.cli.verb import Verb, names
from harness_lib.errors import UsageError
from harness_lib.ops import configuring, edit, pause, remove, rescue, retry, show, trust, validate
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply
from harness_lib.task import MODES, PRIORITIES


def _id(parser: ArgumentParser) -> None:
    parser.add_argument("id", help="the task")


def _edit_arguments(parser: ArgumentParser) -> None:
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


def _edit(ctx: Context, args: Namespace, screen: Screen) -> Reply:
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
    return configuring.run(
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


def _retry(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return retry.run(ctx, args.id)


def _remove(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return remove.run(ctx, args.id)


def _show(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return show.run(ctx, args.id)


def _pause(ctx: Context, _args: Namespace, _screen: Screen) -> Reply:
    return pause.run(ctx)


def _validate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="the task")
    parser.add_argument("--all", action="store_true", help="every task, the completed ones too")


def _validate(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return validate.run(ctx, args.id, everything=args.all)


def _trust_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="I have read them and they are mine")
    parser.add_argument("--all", action="store_true", help="show every command, however many there are")


def _trust(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    ask = screen.ask if screen.is_answerable and not screen.json else None
    return trust.run(ctx, yes=args.yes, everything=args.all, ask=ask)


def _rescue_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "show", "apply", "drop"), default="list")
    parser.add_argument(
        "what", nargs="?", help="a ref, ID/ATTEMPT, or an id for the newest of that task (not for drop)"
    )
    parser.add_argument("only", nargs="*", metavar="PATH", help="with apply: only these, not everything")


def _rescue(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    if args.only and args.action != "apply":
        raise UsageError(f"rescue {args.action} takes one at a time.", "Type it once for each.")
    if args.action == "list":
        return rescue.show_all(ctx, args.what)
    if args.what is None:
        raise UsageError(
            "Of which attempt?",
            f"{typed.harness('rescue', args.action, 'task-001')}, or see: harness rescue list",
        )
    if args.action == "apply":
        return rescue.apply(ctx, args.what, tuple(args.only))
    return rescue.show(ctx, args.what) if args.action == "show" else rescue.drop(ctx, args.what)


VERBS = (
    Verb("show", "everything about one task", "harness show task-001", _show, _id),
    Verb(
        "edit",
        "correct a task, or the settings of the list",
        'harness edit task-001 --validate "pytest -q tests/test_rate.py" --priority P0',
        _edit,
        _edit_arguments,
    ),
    Verb(
        "retry",
        "give a failed or completed task a new start, and what it had blocked",
        "harness retry task-001",
        _retry,
        _id,
    ),
    Verb("remove", "take a task off the list", "harness remove task-001", _remove, _id),
    Verb(
        "validate",
        "run checks, record nothing",
        "harness validate task-001",
        _validate,
        _validate_arguments,
    ),
    Verb(
        "trust",
        "let the commands of a list run that came with a clone",
        "harness trust",
        _trust,
        _trust_arguments,
    ),
    Verb(
        "rescue",
        "the work of failed attempts: list, show, apply, drop",
        "harness rescue show task-001",
        _rescue,
        _rescue_arguments,
    ),
    Verb("pause", "switch the hooks off until the next start", "harness pause", _pause),
)

"""The verbs that make and change a list."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from harness_lib.cli.screen import Screen
from harness_lib.cli.verb import Verb, names
from harness_lib.ops import add, import_, init
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply
from harness_lib.task import DEFAULT_MAX_ATTEMPTS, DEFAULT_TIMEOUT_SECONDS, MODES, PRIORITIES


def _init_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", type=Path, help="the project (default: here)")
    parser.add_argument(
        "--mode", choices=MODES, help="one session at a time, or many workers (default: exclusive)"
    )
    parser.add_argument("--init-script", action="store_true", help="also write a template of harness-init.sh")
    parser.add_argument(
        "--gitignore", action="store_true", help="ignore our files in .gitignore, not in .git/info/exclude"
    )
    parser.add_argument(
        "--git", action="store_true", help="make the git repository and a first commit if there is none"
    )


def _init(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    return init.run(
        ctx,
        args.path,
        mode=args.mode,
        init_script=args.init_script,
        gitignore=args.gitignore or _ask_about_gitignore(screen),
        make_git=args.git,
    )


def _ask_about_gitignore(screen: Screen) -> bool:
    """Ask as the seed does, but only where a person can answer."""
    if screen.json or not screen.is_answerable:
        return False
    return screen.ask("Add the harness files to .gitignore? (else only .git/info/exclude is used) [y/N] ")


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("title", help="what is to be done")
    parser.add_argument("--description", help="more for the agent to know")
    parser.add_argument("--priority", choices=PRIORITIES, default="P1")
    parser.add_argument(
        "--depends-on",
        metavar="ID",
        type=names,
        action="extend",
        default=[],
        help="finish this first; may be repeated or ID,ID",
    )
    parser.add_argument(
        "--validate", metavar="CMD", help="the check: it exits 0 exactly when the task is done"
    )
    parser.add_argument("--cwd", metavar="DIR", help="where the check runs, from the top of the work tree")
    parser.add_argument(
        "--timeout",
        metavar="SEC",
        type=int,
        default=DEFAULT_TIMEOUT_SECONDS,
        help="for the check (default: %(default)s)",
    )
    parser.add_argument("--cleanup", metavar="CMD", help="run after a failed attempt was rolled back")
    parser.add_argument(
        "--max-attempts", metavar="N", type=int, default=DEFAULT_MAX_ATTEMPTS, help="(default: %(default)s)"
    )
    parser.add_argument(
        "--protect",
        metavar="GLOB",
        action="append",
        default=[],
        help="files that an attempt may not change; may be repeated",
    )
    parser.add_argument("--red-first", action="store_true", help="the check must fail before work starts")


def _add(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return add.run(
        ctx,
        add.Wish(
            title=args.title,
            description=args.description,
            priority=args.priority,
            depends_on=tuple(args.depends_on),
            validate=args.validate,
            cwd=args.cwd,
            timeout_seconds=args.timeout,
            cleanup=args.cleanup,
            max_attempts=args.max_attempts,
            protect=tuple(args.protect),
            red_first=args.red_first,
        ),
    )


def _import_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", help="JSON, a Markdown check list, or - for standard input")
    parser.add_argument("--dry-run", action="store_true", help="say what would be added, add nothing")
    parser.add_argument("--format", choices=("json", "markdown"), help="(default: by name or content)")


def _import(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    if args.file == "-":
        source = import_.Source("standard input", sys.stdin.buffer.read())
    else:
        source = import_.read_file(ctx, args.file)
    return import_.run(ctx, source, form=args.format, dry_run=args.dry_run)


VERBS = (
    Verb("init", "make a task list in a project", "harness init --init-script", _init, _init_arguments),
    Verb(
        "add",
        "append a task",
        'harness add "Add rate limiting" --validate "pytest -q tests/test_rate.py" --depends-on task-001',
        _add,
        _add_arguments,
    ),
    Verb(
        "import",
        "append many tasks from JSON or a Markdown check list",
        "harness import tasks.md --dry-run",
        _import,
        _import_arguments,
    ),
)

"""`harness init`: make a task list in a project."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.task import MODES
from harness_lib.verbs import init

SUMMARY = "make a task list in a project"
EXAMPLE = "harness init --init-script"
HELP_ORDER = 10


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
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
    parser.add_argument(
        "--no-final-check",
        action="store_true",
        help="do not hold an agent in a chat until the checks of all tasks have run once more at the end",
    )
    parser.add_argument(
        "--start-over", action="store_true", help="begin an empty list; the old one is kept beside it"
    )


def answer(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    """Answer `harness init`."""
    return init.run(
        ctx,
        args.path,
        mode=args.mode,
        init_script=args.init_script,
        gitignore=args.gitignore or _ask_about_gitignore(screen),
        make_git=args.git,
        final_check=not args.no_final_check,
        start_over=args.start_over,
    )


def _ask_about_gitignore(screen: Screen) -> bool:
    """Ask as the protocol does, but only where a person can answer."""
    if screen.json or not screen.is_answerable:
        return False
    return screen.ask("Add the harness files to .gitignore? (else only .git/info/exclude is used) [y/N] ")

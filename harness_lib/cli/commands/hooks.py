"""`harness hooks`: switch on the hooks that keep an agent at work: install, status, uninstall."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib import typed
from harness_lib.agents.hook_host import SCOPES
from harness_lib.agents.registry import HOSTS, WITHOUT_HOOKS
from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import UsageError
from harness_lib.verbs import hooks

SUMMARY = "switch on the hooks that keep an agent at work: install, status, uninstall"
EXAMPLE = "harness hooks install --agent codex --dry-run"
HELP_ORDER = 310


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument(
        "action",
        nargs="?",
        choices=("install", "status", "uninstall"),
        default="status",
        help="default: status",
    )
    parser.add_argument("--agent", choices=(*HOSTS, *WITHOUT_HOOKS), help="whose hooks")
    parser.add_argument(
        "--scope",
        choices=SCOPES,
        help="install: for all projects of yours (user, the default) or for this one; uninstall: only there",
    )
    parser.add_argument("--dry-run", action="store_true", help="show the difference, write nothing")


def answer(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    """Answer `harness hooks`."""
    if args.action == "status":
        return hooks.status(ctx, args.agent)
    if args.agent is None:
        raise UsageError("For which agent?", typed.harness("hooks", args.action, "--agent", "claude"))
    ask = screen.ask if screen.is_answerable and not screen.json else None
    if args.action == "install":
        return hooks.install(ctx, args.agent, args.scope or "user", dry_run=args.dry_run, ask=ask)
    return hooks.uninstall(ctx, args.agent, args.scope, dry_run=args.dry_run, ask=ask)

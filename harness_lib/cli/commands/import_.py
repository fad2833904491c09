"""`harness import`: append many tasks from JSON or a Markdown check list."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import import_

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


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.epilog = f"{parser.epilog or ''}\n\n{MARKDOWN}".strip()
    parser.add_argument("file", help="JSON, a Markdown check list, or - for standard input")
    parser.add_argument("--dry-run", action="store_true", help="say what would be added, add nothing")
    parser.add_argument("--format", choices=("json", "markdown"), help="(default: by name or content)")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness import`."""
    if args.file == "-":
        source = import_.Source("standard input", sys.stdin.buffer.read(), "-")
    else:
        source = import_.read_file(ctx, args.file)
    return import_.run(ctx, source, form=args.format, dry_run=args.dry_run)

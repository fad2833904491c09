"""The words of the command line: one table of verbs, read by argparse."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

import harness_lib
from harness_lib.cli import lists, look, machine, mend, running, show, work
from harness_lib.cli.verb import Verb
from harness_lib.errors import UsageError

VERBS: tuple[Verb, ...] = (
    *lists.VERBS,
    *work.VERBS,
    *running.VERBS,
    *look.VERBS,
    *mend.VERBS,
    *machine.VERBS,
    *show.VERBS,
)

EPILOG = """\
exit codes:
  0 done                     5 held by another session    9 stop: nothing to go on with
  1 the check said no        6 the lease was lost        70 a bug of ours
  2 wrong arguments          7 the machine lacks something
  3 a person must edit       8 refused: it would lose work,
  4 the list is unreadable     or run what nobody trusted

A first run: harness init && harness add "Say hello" --validate "grep -q hello README.md" && harness start
"""


class _Parser(argparse.ArgumentParser):
    """An argparse parser that fails as every other part does."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", f"See: {self.prog} --help")


def build() -> argparse.ArgumentParser:
    """Return the parser of every verb, each with `--json`, `--help` and an example."""
    parser = _Parser(
        prog="harness",
        description="A task list on disk that keeps agents working until it is done.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"harness {harness_lib.__version__}")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object (before or after the verb)"
    )
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in VERBS:
        sub = verbs.add_parser(
            verb.name,
            help=verb.summary,
            description=verb.summary,
            epilog=f"example: {verb.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.add_argument("--json", action="store_true", help="print one JSON object")
        verb.arguments(sub)
        sub.set_defaults(verb=verb)
    return parser


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments, `verb` among them; UsageError if they are wrong."""
    return build().parse_args(argv)

"""The words of the command line: one table of verbs, read by argparse."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

import harness_lib
from harness_lib import typed
from harness_lib.cli.screen import Screen
from harness_lib.cli.verb import Verb
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import UsageError

# Each has a file in `commands/`; the order is that of the help.
VERBS = (
    Verb("init", "make a task list in a project", "harness init --init-script"),
    Verb(
        "add",
        "append a task",
        'harness add "Add rate limiting" --validate "pytest -q tests/test_rate.py" --depends-on task-001',
    ),
    Verb(
        "import", "append many tasks from JSON or a Markdown check list", "harness import tasks.md --dry-run"
    ),
    Verb("start", "open a session: recover, check the environment, name the next task", "harness start"),
    Verb("claim", "take the next task and print its brief", "harness claim"),
    Verb(
        "checkpoint",
        "record how far the work has come",
        'harness checkpoint task-001 2/4 "routes created, tests pending"',
    ),
    Verb(
        "note",
        "leave a line for the tasks that come later",
        'harness note task-001 "the test server needs a port of its own"',
    ),
    Verb("finish", "run the check: commit and complete, or roll back", "harness finish task-001"),
    Verb(
        "fail",
        "give up this attempt: roll back, keep the work in a rescue ref",
        'harness fail task-001 --category TASK_EXEC --message "the API has no such call"',
    ),
    Verb("release", "hand a claim back; no attempt is counted", "harness release task-001"),
    Verb("recover", "recover what was interrupted", "harness recover"),
    Verb("beat", "a sign of life: renew the lease of what you hold (hooks do it for you)", "harness beat"),
    Verb("stop", "end the session", "harness stop"),
    Verb(
        "run",
        "work unattended: start agents and go on until all is done (inside an agent: the same as start)",
        "harness run -j 2 --max-hours 8",
    ),
    Verb(
        "budget",
        "what a run may use up and has; changes its limits while it goes on",
        "harness budget --max-cost 20",
    ),
    Verb("status", "where the list stands", "harness status"),
    Verb("log", "the end of the log", "harness log -n 50 --type ERROR"),
    Verb("graph", "which task waits for which", "harness graph --format mermaid"),
    Verb("why", "why a task can or cannot be claimed", "harness why task-003"),
    Verb("check", "what is wrong with the list, and what it would run", "harness check"),
    Verb("doctor", "the usual troubles, each with its cure", "harness doctor"),
    Verb("show", "everything about one task", "harness show task-001"),
    Verb(
        "edit",
        "correct a task, or the settings of the list",
        'harness edit task-001 --validate "pytest -q tests/test_rate.py" --priority P0',
    ),
    Verb(
        "retry",
        "give a failed or completed task a new start, and what it had blocked",
        "harness retry task-001",
    ),
    Verb("remove", "take a task off the list", "harness remove task-001"),
    Verb("validate", "run checks, record nothing", "harness validate task-001"),
    Verb("trust", "let the commands of a list run that came with a clone", "harness trust"),
    Verb("rescue", "the work of failed attempts: list, show, apply, drop", "harness rescue show task-001"),
    Verb("tidy", "show what of old logs and rescued work would go, and take it", "harness tidy --days 30"),
    Verb("pause", "switch the hooks off until the next start", "harness pause"),
    Verb(
        "hooks",
        "switch on the hooks that keep an agent at work: install, status, uninstall",
        "harness hooks install --agent codex --dry-run",
    ),
    Verb("demo", "the whole job in a temporary project, with a scripted agent", "harness demo"),
)

# What other programs call these; only words that are not spelt like the verb.
ELSEWHERE = {
    **dict.fromkeys(("list", "ls", "tasks", "cost"), "status --all"),
    **dict.fromkeys(("undo", "revert", "rollback"), "show ID"),
    **dict.fromkeys(("delete", "rm"), "remove ID"),
    **dict.fromkeys(("resume", "continue"), "start"),
    **dict.fromkeys(("clear", "reset"), "init --start-over"),
    "done": "finish",
    "next": "claim",
    "uninstall": "hooks uninstall --help",
}

COLUMNS = 80

EPILOG = """\
exit codes:
  0 done                     5 held by another session    9 stop: nothing to go on with
  1 the check said no        6 the lease was lost        70 a bug of ours
  2 wrong arguments          7 the machine lacks something
  3 a person must edit       8 refused: it would lose work,
  4 the list is unreadable     or run what nobody trusted

A first run: harness init && harness add "Say hello" --validate "grep -q hello README.md" && harness start
"""


FIRST_STEPS = """\
harness keeps a task list on disk and coding agents at work until it is done. The first things to type:

  harness init                                                    make a list in this project
  harness add "Say hello" --validate "grep -q hello README.md"    a task and its check
  harness run                                                     let an agent do it, checked and committed
  harness status                                                  see where the list stands
  harness demo                                                    watch the whole job on a sample

All verbs: harness --help. In an agent's chat: /harness run."""


class _FirstSteps:
    """What is answered to who types no verb."""

    def answer(self, ctx: Context, _args: argparse.Namespace, _screen: Screen) -> Reply:
        from harness_lib.system.place import roots  # noqa: PLC0415 (each verb loads what it needs)

        others = [] if roots.find(ctx.env, ctx.cwd) else roots.elsewhere(ctx.cwd)
        elsewhere = (
            [f"\nThis repository has its list in {others[0]}: {typed.change_to(others[0])}"] if others else []
        )
        return Reply("harness", "\n".join([FIRST_STEPS, *elsewhere]))


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal.

    argparse makes one of these for every argument that it learns, and to know how wide the terminal is it
    would load all that packs archives.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    said = os.environ.get("COLUMNS", "")
    try:
        return int(said) if said.isdecimal() else os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        # No terminal: a pipe, or a test that has put something else in the place of stdout.
        return COLUMNS


class _Parser(argparse.ArgumentParser):
    """An argparse parser that fails as every other part does."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", f"See: {self.prog} --help")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments, `verb` and its `command` among them; UsageError if they are wrong."""
    if not argv:
        return argparse.Namespace(command=_FirstSteps())
    verb = _typed(argv)
    first = next((word for word in argv if word != "--json"), None)
    if verb is None and first is not None and not first.startswith("-"):
        raise UsageError(f"There is no verb {first!r}.", _meant(first))
    args, unknown = _parser(verb).parse_known_args(argv)
    if unknown:
        raise UsageError(
            f"Unrecognized arguments: {' '.join(unknown)}.", _meant_option(args.syntax, unknown[0])
        )
    return args


def _meant_option(syntax: argparse.ArgumentParser, word: str) -> str:
    """Return a hint to the option of a verb that somebody may have meant by `word`, and to its help."""
    from difflib import get_close_matches  # noqa: PLC0415 (only who mistypes pays for it)

    options = re.findall(r"--[a-z][a-z-]*", syntax.format_usage())
    close = get_close_matches(word.partition("=")[0], options, n=1)
    return " ".join([*(f"Did you mean {option}?" for option in close), f"See: {syntax.prog} --help"])


def _meant(word: str) -> str:
    """Return a hint to the verb that somebody may have meant by `word`."""
    ours = ELSEWHERE.get(word.lower())
    if ours:
        return f"Did you mean: harness {ours}"
    from difflib import get_close_matches  # noqa: PLC0415 (only who mistypes pays for it)

    close = get_close_matches(word.lower(), [verb.name for verb in VERBS], n=1)
    return f"Did you mean: {typed.harness(close[0])}" if close else "See which there are: harness --help"


def _typed(argv: Sequence[str]) -> Verb | None:
    """Return the verb that `argv` begins with; None if it begins with none."""
    first = next((word for word in argv if word != "--json"), None)
    return next((verb for verb in VERBS if verb.name == first), None)


def _parser(chosen: Verb | None) -> argparse.ArgumentParser:
    """Return a parser of `chosen` alone, which is all that is needed then, or of the names of all verbs."""
    parser = _Parser(
        prog="harness",
        description="A task list on disk that keeps agents working until it is done.",
        epilog=EPILOG,
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"harness {harness_lib.__version__}")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object (before or after the verb)"
    )
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in VERBS if chosen is None else (chosen,):
        sub = verbs.add_parser(
            verb.name,
            help=verb.summary,
            description=verb.summary,
            epilog=f"example: {verb.example}",
            formatter_class=_Help,
        )
        if verb is chosen:
            command = verb.load()
            sub.add_argument("--json", action="store_true", help="print one JSON object")
            command.arguments(sub)
            sub.set_defaults(verb=verb, command=command, syntax=sub)
    return parser

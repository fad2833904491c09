"""Parse the command line with argparse; each verb is a file in `verbs/`, loaded when it is typed."""

from __future__ import annotations

import argparse
import keyword
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol, cast

import harness_lib
from harness_lib import typed
from harness_lib.core.context import Reply
from harness_lib.errors import UsageError
from harness_lib.system.place import roots
from harness_lib.system.processes import environment
from harness_lib.terminal import render
from harness_lib.text import closest, without_credentials

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from harness_lib.core.context import Context

# Words of other programs for our verbs, where they are not spelled alike.
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

# Options of other programs, and ours with the same meaning.
OPTIONS_ELSEWHERE = {
    **dict.fromkeys(("--workers", "--parallel", "--threads"), "--jobs"),
    **dict.fromkeys(("--test", "--command", "--cmd", "--verify"), "--validate"),
    **dict.fromkeys(("--needs", "--requires", "--blocked-by"), "--depends-on"),
    **dict.fromkeys(("--budget", "--max-budget", "--max-usd"), "--max-cost"),
    **dict.fromkeys(("--follow", "-f", "-w"), "--watch"),
    # Of 0.1.0, which took a branch; no option of ours does.
    "--target": "",
}

# Verbs of earlier versions and their new names; they keep working.
FORMER = {"why": "show"}

OPTIONS = ("--help", "--version", "--json", "-h")
COLUMNS = 80
LEAST_COLUMNS = 40

EPILOG = """\
exit codes:
  0 done                     5 held by another session    9 stop: nothing to go on with
  1 the check failed         6 the lease was lost        70 a bug in harness
  2 wrong arguments          7 the machine lacks something
  3 the user must edit       8 refused: it would lose work,
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
    """Shown when no verb is given."""

    def answer(self, ctx: Context, _args: argparse.Namespace) -> Reply:
        others = [] if roots.find(ctx.env, ctx.cwd) else roots.elsewhere(ctx.cwd)
        elsewhere = (
            [f"\nThis repository has its list in {others[0]}: {typed.change_to(others[0])}"] if others else []
        )
        missing = render.advice(ctx.env.get("PATH", ""))
        return Reply("\n".join([FIRST_STEPS, *([missing] if missing else []), *elsewhere]))


class _Parser(argparse.ArgumentParser):
    """An argparse parser that raises UsageError."""

    def error(self, message: str) -> NoReturn:
        said = without_credentials(message)
        raise UsageError(f"{said[:1].upper()}{said[1:]}.", f"See: {self.prog} --help")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        # argparse swallows the error of a help that cannot be written, or leaves it to the interpreter's end.
        print(message, end="", file=file)
        sys.stdout.flush()


class _Program(_Parser):
    """The parser of the whole program. Only its help loads the file of every verb."""

    def format_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        verbs = sorted(((name, load(name)) for name in known()), key=lambda verb: verb[1].HELP_ORDER)
        for hundreds, heading in enumerate(GROUPS):
            rows = [_row(name, verb.SUMMARY) for name, verb in verbs if hundreds == verb.HELP_ORDER // 100]
            formatter.start_section(heading)
            formatter.add_text("\n".join(rows))
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


def _row(name: str, summary: str) -> str:
    """Return a row of the list of verbs, wrapped at the width of the terminal."""
    from textwrap import fill  # noqa: PLC0415 (only the help needs it)

    width = max(LEAST_COLUMNS, environment.columns(COLUMNS) - 4)
    return fill(summary, width, initial_indent=f"  {name:<12}", subsequent_indent=" " * 14)


def current(argv: Sequence[str], say: Callable[[str], None]) -> list[str]:
    """Return `argv` with an old verb replaced by its new name; `say` gets the notice."""
    words = list(argv)
    at = next((place for place, word in enumerate(words) if word != "--json"), None)
    if at is not None and words[at] in FORMER:
        old, words[at] = words[at], FORMER[words[at]]
        say(f"harness {old} is now: harness {words[at]}")
    return words


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments, `verb` and its `command` among them; UsageError if they are wrong."""
    if not argv:
        return argparse.Namespace(command=_FirstSteps())
    first = next((word for word in argv if word != "--json"), "--help")
    if first == "help":
        # As in git, `help VERB` is the help of VERB.
        return parse([*argv[argv.index(first) + 1 :], "--help"])
    names = known()
    if first.startswith("-") and not any(option.startswith(first) for option in OPTIONS):
        close = closest(first, OPTIONS)
        meant = f"Did you mean {close}?" if close else "Put the options of a verb after it."
        raise UsageError(f"There is no option {first!r} before the verb.", f"{meant} See: harness --help")
    if first not in names and not first.startswith("-"):
        raise UsageError(f"There is no verb {first!r}.", _meant(first, names))
    parser = _parser(first if first in names else None)
    args, unknown = parser.parse_known_args(argv)
    if unknown and not any(word.startswith("-") for word in unknown):
        args, unknown = parser.parse_known_args(_words_first(argv, unknown))
    if unknown:
        words = without_credentials(" ".join(unknown))
        raise UsageError(f"Unrecognized arguments: {words}.", _meant_option(args.syntax, unknown))
    return args


def _words_first(argv: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return `argv` with `words` of it before the first option.

    Before 3.13, argparse takes words that may be left out only there.
    """
    rest = [*reversed(argv)]
    for word in words:
        rest.remove(word)
    rest.reverse()
    at = next(
        (place for place, word in enumerate(rest) if word.startswith("-") and word != "--json"), len(rest)
    )
    return [*rest[:at], *words, *rest[at:]]


def _meant_option(syntax: argparse.ArgumentParser, unknown: Sequence[str]) -> str:
    """Suggest an option of the verb for the first of `unknown`, and name its help."""
    takes_a_sentence = re.search(r"[ \[](title|text)\b", syntax.format_usage())
    if takes_a_sentence and not any(word.startswith("-") for word in unknown):
        return f"Put words that belong together in quotes. See: {syntax.prog} --help"
    # Without the dashes, by which all resemble each other.
    options = dict.fromkeys(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", syntax.format_help()))
    typed_one = unknown[0].partition("=")[0]
    takes_it = re.search(rf"--([a-z-]+) {{(?:[^}}]*,)?{re.escape(typed_one)}[,}}]", syntax.format_usage())
    word = OPTIONS_ELSEWHERE.get(typed_one, typed_one).lstrip("-")
    close = f"{takes_it[1]} {word}" if takes_it else closest(word, options)
    return f"{f'Did you mean --{close}? ' if close else ''}See: {syntax.prog} --help"


def _meant(word: str, names: Sequence[str]) -> str:
    """Suggest the one of `names` that is closest to `word`."""
    ours = ELSEWHERE.get(word.lower())
    if ours:
        return f"Did you mean: harness {ours}"
    close = closest(word.lower(), names)
    return f"Did you mean: {typed.harness(close)}" if close else "List the verbs: harness --help"


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """Return the parser of the program with the verb `chosen` only, as no other is needed."""
    # argparse makes one for every argument, and would import shutil to ask for the terminal's width.
    as_wide = partial(argparse.RawDescriptionHelpFormatter, width=environment.columns(COLUMNS) - 2)
    parser = _Program(
        prog="harness",
        description="A task list on disk that keeps agents working until it is done.",
        epilog=EPILOG,
        formatter_class=as_wide,
    )
    parser.add_argument("--version", action="version", version=f"harness {harness_lib.__version__}")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object (before or after the verb)"
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True, parser_class=_Parser)
    if chosen:
        command = load(chosen)
        sub = verbs.add_parser(
            chosen,
            description=command.SUMMARY,
            epilog=f"example: {command.EXAMPLE}",
            formatter_class=as_wide,
        )
        sub.add_argument("--json", action="store_true", help="print one JSON object")
        if add := getattr(command, "arguments", None):
            add(sub)
        sub.set_defaults(verb=chosen, command=command, syntax=sub)
    return parser


# The groups of `harness --help`, in order.
GROUPS = (
    "first",
    "while a task is worked on (agents type these)",
    "look",
    "change the list",
    "when something is wrong",
    "set up",
)
VERBS = Path(__file__).parents[1] / "verbs"


class Command(Protocol):
    """The interface of a verb's file.

    SUMMARY is one line for the list of verbs, EXAMPLE a command that a newcomer can type, and HELP_ORDER
    its place in that list; its hundreds are the group. `arguments(parser)` adds the arguments, if it has any.
    """

    SUMMARY: str
    EXAMPLE: str
    HELP_ORDER: int

    def answer(self, ctx: Context, args: Namespace, /) -> Reply:
        """Run the verb and return its reply; `args.screen` is where it may print and ask."""


def known() -> list[str]:
    """Return the names of all verbs; none of their files is loaded."""
    files = (path for path in VERBS.iterdir() if path.suffix == ".py" and not path.name.startswith("_"))
    return sorted(path.stem.rstrip("_") for path in files)


def load(name: str) -> Command:
    """Return the file of the verb `name`, which is known."""
    file = f"{name}_" if keyword.iskeyword(name) else name
    return cast("Command", import_module(f"harness_lib.verbs.{file}"))

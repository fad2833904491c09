"""`harness trust`: let the user allow the commands of a list."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import NamedTuple

from harness_lib.core import quoting, rights, sessions, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import Exit, HeldError, RefusedError
from harness_lib.state.api import Questions
from harness_lib.terminal.render import Screen
from harness_lib.text import first, some

SUMMARY = "allow the commands of a cloned task list"
EXAMPLE = "harness trust"
HELP_ORDER = 520

SHOWN = 20
LENGTH = 500


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="I have read them and they are mine")
    parser.add_argument("--all", action="store_true", help="show every command, however many there are")


def answer(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    ask = screen.ask if screen.is_answerable and not screen.json else None
    return run(ctx, yes=args.yes, everything=args.all, ask=ask)


class Command(NamedTuple):
    """A command that would run: its purpose, its text, and how many tasks share it."""

    purpose: str
    text: str
    tasks: tuple[str, ...]

    def line(self) -> str:
        """Return the command as one line for the user."""
        whose = f" of {some(self.tasks, 1)}" if self.tasks else ""
        cut = f" (cut; {len(self.text)} characters in all)" if len(self.text) > LENGTH else ""
        return f"{self.purpose}{whose}: {quoting.one_line(self.text, LENGTH)}{cut}"


def run(
    ctx: Context,
    *,
    yes: bool = False,
    everything: bool = False,
    ask: Callable[[str], bool] | None = None,
) -> Reply:
    """Show the commands of the list, and record the user's trust after `yes` or their answer.

    `ask` shows a text and returns the answer of the user at a terminal; None where there is none.
    `everything`: all commands, not the first 20. Of a list that machines share, else only those that are new
    here. Exit 8 if nobody has said yes.
    `yes` counts at a terminal, or where the user has set HARNESS_TRUST: an agent that we do not know has
    neither, and types whatever it is shown.
    """
    questions = ctx.store.ask()
    commands = _commands(ctx, questions, everything=everything)
    listing = _listing(commands, None if everything else SHOWN)
    extra = {
        "trusted": True,
        "commands": [
            {"what": each.purpose, "command": each.text, "tasks": list(each.tasks[:SHOWN])}
            for each in (commands if everything else commands[:SHOWN])
        ],
        "count": len(commands),
    }
    if trust.is_whole(ctx, questions):
        return Reply(
            f"{listing}\nThese are trusted already.",
            next=sessions.unless_held(questions, ctx, "harness start"),
            extra=extra,
        )
    agent = rights.acting_agent(ctx)
    if yes and (agent or (not ctx.at_terminal and not rights.says_yes_in_a_script(ctx))):
        raise RefusedError(
            f"Whether the commands of {ctx.store.list_file} may run is for the user to say"
            + (f", not for {agent}." if agent else ", at a terminal."),
            "Ask the user to type it in a terminal of their own: harness trust",
        )
    question = f"{listing}\nMay these run as you, on this machine? [y/N] "
    if not yes and (agent or ask is None or not ask(question)):
        return Reply(
            f"{listing}\nNot trusted: none of these is run. The user who knows them types, in a terminal: "
            "harness trust",
            exit=Exit.REFUSED,
            extra={**extra, "trusted": False},
        )
    _note(ctx, questions)
    return Reply(
        f"{listing}\nTrusted on this machine.",
        next=sessions.unless_held(questions, ctx, "harness start"),
        extra=extra,
    )


def _note(ctx: Context, shown: Questions) -> None:
    """Record trust for what the user has seen, not for changes made while they read."""
    questions = ctx.store.ask()
    seen, present = (trust.runs_of(ctx, each.commands()).fingerprint for each in (shown, questions))
    if seen != present:
        raise HeldError("The commands have changed while you read them.", "Read them again: harness trust")
    trust.note(ctx, questions)


def _commands(ctx: Context, questions: Questions, *, everything: bool) -> list[Command]:
    """Return each different command once, in the order of the list; unless `everything`, as `run` says."""
    tasks_by_command: dict[tuple[str, str], list[str]] = {}
    shows_new = trust.is_trusted(ctx, questions) and not everything
    new = frozenset(trust.unknown(ctx, questions) if shows_new else ())
    for row in questions.commands():
        if new and row.task not in new:
            continue
        where = f" in {row.cwd}" if row.cwd else ""
        if row.check:
            tasks_by_command.setdefault((f"check{where}", row.check), []).append(row.task)
        if row.cleanup:
            tasks_by_command.setdefault(("cleanup", row.cleanup), []).append(row.task)
    commands = [Command(purpose, text, tuple(tasks)) for (purpose, text), tasks in tasks_by_command.items()]
    script = ctx.root.init_script
    if script.is_file() and not new:
        size = f"{script.stat().st_size} bytes; read it before you say yes"
        commands.insert(0, Command("init script", f"{script} ({size})", ()))
    return commands


def _listing(commands: list[Command], limit: int | None) -> str:
    if not commands:
        return "This list runs nothing yet."
    number = "1 command" if len(commands) == 1 else f"{len(commands)} different commands"
    most = len(commands) if limit is None else limit
    rows = first([each.line() for each in commands], most, ": harness trust --all")
    return "\n".join([f"This list would run {number}:", *(f"  {row}" for row in rows)])

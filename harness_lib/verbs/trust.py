"""`harness trust`: let the user allow the commands of a list."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from harness_lib.core import project, rights, sessions, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import Exit, HeldError, RefusedError
from harness_lib.state.api import Questions

SUMMARY = "allow the commands of a cloned task list"
EXAMPLE = "harness trust"
HELP_ORDER = 520


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="I have read them and they are mine")
    parser.add_argument("--all", action="store_true", help="show every command, however many there are")


def answer(ctx: Context, args: Namespace) -> Reply:
    return run(ctx, yes=args.yes, everything=args.all, ask=args.screen.may_ask)


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
    questions = ctx.ask()
    commands = trust.commands(ctx, questions, only_new=not everything)
    listing = "\n".join(trust.listing(commands, None if everything else "harness trust --all"))
    facts = [
        {"what": each.purpose, "command": each.text, "tasks": list(each.tasks[: trust.SHOWN])}
        for each in (commands if everything else commands[: trust.SHOWN])
    ]
    reply = Reply(
        f"{listing}\nIt is trusted already." if commands else listing,
        next=sessions.unless_held(questions, ctx, "harness start"),
        extra={"trusted": True, "commands": facts, "count": len(commands)},
    )
    if trust.is_whole(ctx, questions):
        return reply
    doubt = {**reply.extra, "trusted": False}
    if not (commands or yes):
        return reply._replace(extra=doubt)
    agent = rights.acting_agent(ctx)
    if yes and (agent or (not ctx.at_terminal and not rights.says_yes_in_a_script(ctx))):
        raise RefusedError(
            f"Whether the commands of {ctx.store.list_file} may run is for the user to say"
            + (f", not for {agent}." if agent else ", at a terminal."),
            "Ask the user to type it in a terminal of their own: harness trust",
        )
    question = f"{listing}\nMay these run as you, on this machine? [y/N] "
    said = ask(question) if ask and not (yes or agent) else None
    # Who was asked has just read them.
    shown = f"{listing}\n" if said is None else ""
    if not (yes or said):
        refused = "Not trusted: none of these is run. The user who knows them types, in a terminal: "
        return Reply(f"{shown}{refused}harness trust", exit=Exit.REFUSED, extra=doubt)
    _note(ctx, questions)
    return reply._replace(message=f"{shown}Trusted on this machine.")


def _note(ctx: Context, shown: Questions) -> None:
    """Record trust for what the user has seen, not for changes made while they read."""
    questions = ctx.ask()
    seen, present = (trust.runs_of(ctx, each.commands()).fingerprint for each in (shown, questions))
    if seen != present:
        raise HeldError("The commands have changed while you read them.", "Read them again: harness trust")
    trust.note(ctx, questions)
    project.adopt(ctx)

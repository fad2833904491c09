"""The verbs of the command line: each is a file in `verbs/`, loaded when the verb is typed."""

from __future__ import annotations

import keyword
from argparse import ArgumentParser, Namespace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from harness_lib.core.context import Context
    from harness_lib.core.reply import Reply
    from harness_lib.terminal.screen import Screen

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
    its place in that list; its hundreds are the group.
    """

    SUMMARY: str
    EXAMPLE: str
    HELP_ORDER: int

    def arguments(self, parser: ArgumentParser, /) -> None:
        """Add the arguments of the verb."""

    def answer(self, ctx: Context, args: Namespace, screen: Screen, /) -> Reply:
        """Run the verb and return its reply."""


def known() -> list[str]:
    """Return the names of all verbs; none of their files is loaded."""
    files = (path for path in VERBS.iterdir() if path.suffix == ".py" and not path.name.startswith("_"))
    return sorted(path.stem.rstrip("_") for path in files)


def load(name: str) -> Command:
    """Return the file of the verb `name`, which is known."""
    file = f"{name}_" if keyword.iskeyword(name) else name
    return cast("Command", import_module(f"harness_lib.verbs.{file}"))


def groups_of_help() -> list[tuple[str, list[tuple[str, Command]]]]:
    """Return the headings of the help, each with its verbs in order, whose files are loaded for it."""
    verbs = sorted(((name, load(name)) for name in known()), key=lambda verb: verb[1].HELP_ORDER)
    return [
        (heading, [verb for verb in verbs if hundreds == verb[1].HELP_ORDER // 100])
        for hundreds, heading in enumerate(GROUPS)
    ]

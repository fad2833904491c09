"""One verb of the command line; its code is loaded when it is typed."""

from __future__ import annotations

import keyword
from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from harness_lib.cli.screen import Screen
    from harness_lib.core.context import Context
    from harness_lib.core.reply import Reply


class Command(Protocol):
    """What the file of a verb has."""

    def arguments(self, parser: ArgumentParser, /) -> None:
        """Add what may be typed after the verb."""

    def answer(self, ctx: Context, args: Namespace, screen: Screen, /) -> Reply:
        """Do what was typed and return what is to be said."""


class Verb(NamedTuple):
    """`summary` is one line for the list of verbs; `example` a command that a newcomer can type."""

    name: str
    summary: str
    example: str

    def load(self) -> Command:
        """Return its file in `commands/`, named as it is typed."""
        file = f"{self.name}_" if keyword.iskeyword(self.name) else self.name
        return cast("Command", import_module(f"harness_lib.cli.commands.{file}"))


def names(text: str) -> tuple[str, ...]:
    """Return the names in `ID, ID`; for an option with `action="extend"`, which may stand more than once."""
    return tuple(name for part in text.split(",") if (name := part.strip()))

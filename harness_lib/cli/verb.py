"""A verb of the command line: its words, its arguments, and the function that answers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

from harness_lib.cli.screen import Screen
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply

Handler = Callable[[Context, Namespace, Screen], Reply]


def no_arguments(_parser: ArgumentParser) -> None:
    """Leave the parser as it is."""


def names(given: str) -> tuple[str, ...]:
    """Return the names in `ID, ID`; for an option with `action="extend"`, which may stand more than once."""
    return tuple(name for part in given.split(",") if (name := part.strip()))


@dataclass(frozen=True)
class Verb:
    """`summary` is one line for the list of verbs; `example` a command that a newcomer can type."""

    name: str
    summary: str
    example: str
    handler: Handler
    arguments: Callable[[ArgumentParser], None] = no_arguments

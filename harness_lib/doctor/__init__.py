"""The checks of `harness doctor`: machine, hooks and list. Never writes and takes no lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.errors import HarnessError

Level = Literal["ok", "warn", "bad"]

LENGTH = 300


class Diagnosis(NamedTuple):
    """`bad` stops harness from working, `warn` may stop it or surprise the user."""

    level: Level
    what: str
    cure: str | None = None

    def line(self) -> str:
        """Return `level  what -> cure`."""
        text = f"{self.level:<4}  {quoting.one_line(self.what, LENGTH)}"
        return f"{text} -> {quoting.one_line(self.cure, LENGTH)}" if self.cure else text


Diagnoses = Iterator[Diagnosis]
Examination = Callable[[Context], Diagnoses]


def has_root(ctx: Context) -> bool:
    """Return whether the current directory is in a project with a list."""
    try:
        return ctx.root.path.is_dir()
    except HarnessError:
        return False


def ok(what: str) -> Diagnosis:
    """Return an ok line."""
    return Diagnosis("ok", what)


def warn(what: str, cure: str | None) -> Diagnosis:
    """Return a warning."""
    return Diagnosis("warn", what, cure)


def bad(what: str, cure: str | None) -> Diagnosis:
    """Return an error."""
    return Diagnosis("bad", what, cure)


def failed(error: HarnessError) -> Diagnosis:
    """Turn `error` into a diagnosis; its hint is the cure."""
    return bad(error.message, error.hint)

"""The checks of `harness doctor`: machine, hooks and list. Never writes and takes no lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness_lib.core.context import Context
from harness_lib.errors import HarnessError
from harness_lib.state.api import Oddity

Diagnoses = Iterator[Oddity]
Examination = Callable[[Context], Diagnoses]


def has_root(ctx: Context) -> bool:
    """Return whether the current directory is in a project with a list."""
    try:
        return ctx.root.path.is_dir()
    except HarnessError:
        return False


def ok(what: str, cure: str | None = None) -> Oddity:
    """Return an ok line."""
    return Oddity("ok", what, cure)


def warn(what: str, cure: str | None) -> Oddity:
    """Return a warning."""
    return Oddity("warn", what, cure)


def bad(what: str, cure: str | None) -> Oddity:
    """Return an error."""
    return Oddity("bad", what, cure)


def failed(error: HarnessError) -> Oddity:
    """Turn `error` into a diagnosis; its hint is the cure."""
    return bad(error.message, error.hint)

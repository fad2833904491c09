"""How one JSON value is read strictly: a small reader for each kind of `records/fields.py`.

A reader takes (value, path, problems), appends to `problems` what is wrong, and returns the value for the
dataclass; what it returns beside a problem is never used.
Standard library only: hooks read the list with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from harness_lib import timestamps
from harness_lib.records.fields import LARGEST, MOMENT_PATTERN

SHOWN = 60


class Problem(NamedTuple):
    """Where in the document (`tasks[2].validation.command`), and what is wrong there."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or '(top level)'}: {self.message}"


Problems = list[Problem]
Reader = Callable[[Any, str, Problems], Any]


@cache
def _matches(pattern: str) -> Callable[[str], object]:
    """Return what tries `pattern`, made once it is needed: a list that we wrote last is read without any."""
    return re.compile(pattern).match


def show(value: object) -> str:
    """Return `value` for a message: as Python writes it, cut at 60 characters."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value[: SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def text(limit: int | None = None, pattern: str = "", expected: str = "", least: int = 0) -> Reader:
    """Read a string of `least` to `limit` characters; `expected` says in words what `pattern` asks for."""

    def read(value: Any, path: str, problems: Problems) -> Any:
        if type(value) is not str:
            problems.append(Problem(path, f"is {show(value)}, must be a string"))
        elif limit is not None and len(value) > limit:
            problems.append(Problem(path, f"has {len(value)} characters, at most {limit} are allowed"))
        elif len(value) < least:
            problems.append(Problem(path, "must not be empty"))
        elif pattern and not _matches(pattern)(value):
            problems.append(Problem(path, f"is {show(value)}, must be {expected}"))
        return value

    return read


def moment(value: Any, path: str, problems: Problems) -> Any:
    """Read an ISO-8601 moment; it is kept as it is written."""
    if type(value) is not str:
        problems.append(Problem(path, f"is {show(value)}, must be a string"))
    elif not is_moment(value):
        problems.append(Problem(path, f"is {show(value)}, must be a moment such as 2025-07-01T10:00:00Z"))
    return value


def is_moment(value: str) -> bool:
    """Say whether `value` is a moment that every supported Python reads alike."""
    if not _matches(MOMENT_PATTERN)(value):
        return False
    try:
        timestamps.parse(value)
    except (ValueError, OverflowError):
        return False
    return True


def integer(least: int, most: int = LARGEST) -> Reader:
    """Read a whole number; 3.0 is one, as JSON Schema says, `true` and "3" are none."""

    def read(value: Any, path: str, problems: Problems) -> Any:
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int:
            problems.append(Problem(path, f"is {show(value)}, must be a whole number"))
        elif not least <= value <= most:
            bound = f"at least {least}" if value < least else f"at most {most}"
            problems.append(Problem(path, f"is {show_number(value)}, must be {bound}"))
        return value

    return read


def amount(value: Any, path: str, problems: Problems) -> Any:
    """Read a number that is none less than 0; `true` and "3" are none."""
    if type(value) not in (int, float):
        problems.append(Problem(path, f"is {show(value)}, must be a number"))
    elif not 0 <= value <= LARGEST:
        problems.append(Problem(path, f"must be from 0 to {LARGEST}"))
    return value


def show_number(value: int) -> str:
    """Return `value` in digits unless it has so many that Python refuses to write them."""
    return str(value) if abs(value) <= 10**SHOWN else "a number of more than 60 digits"


def flag(value: Any, path: str, problems: Problems) -> Any:
    """Read true or false."""
    if type(value) is not bool:
        problems.append(Problem(path, f"is {show(value)}, must be true or false"))
    return value


def choice(*allowed: str) -> Reader:
    """Read one of a few words."""

    def read(value: Any, path: str, problems: Problems) -> Any:
        if value not in allowed:
            problems.append(Problem(path, f"is {show(value)}, must be one of {', '.join(allowed)}"))
        return value

    return read


def items(reader: Reader) -> Reader:
    """Read a list into a tuple."""

    def read(value: Any, path: str, problems: Problems) -> Any:
        if type(value) is not list:
            problems.append(Problem(path, f"is {show(value)}, must be a list"))
            return ()
        return tuple([reader(item, f"{path}[{index}]", problems) for index, item in enumerate(value)])

    return read

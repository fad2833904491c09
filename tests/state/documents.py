"""Documents that are made from the table of fields, so that a new field is in them without a word."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness_lib.errors import HarnessError
from harness_lib.records.fields import Kind, Record, columns
from harness_lib.state import codec
from harness_lib.state.codec import ContractError

EXAMPLES: dict[str, Any] = {"": "text", "id": "task-1", "moment": "2025-03-04T08:00:00Z", "revision": "0a1b"}


def every_field(record: Record) -> dict[str, Any]:
    """Return a valid document of a record in which every field says something."""
    return {
        column.name: not column.default if column.kind.form == "flag" else example(column.kind)
        for column in columns(record)
    }


Place = tuple[str | int, ...]


def places(record: Record, above: Place = ()) -> Iterator[tuple[Place, Kind]]:
    """Yield every place in `every_field(record)`, with what may stand there."""
    for column in columns(record):
        yield from _places(column.kind, (*above, column.name))


def _places(kind: Kind, place: Place) -> Iterator[tuple[Place, Kind]]:
    yield place, kind
    if kind.of is not None:
        yield from _places(kind.of, (*place, 0))
    if kind.record is not None:
        yield from places(kind.record, place)


def example(kind: Kind) -> Any:
    """Return a value of this kind that is no default."""
    if kind.record is not None:
        return every_field(kind.record)
    if kind.of is not None:
        # What a task depends on must be there: its own id is.
        return ["task-1" if kind.of.form == "text" else example(kind.of)]
    if kind.words:
        return kind.words[-1]
    plain = {"integer": 7, "number": 0.5, "version": 2}
    return plain.get(kind.form, EXAMPLES.get(kind.definition, "text"))


def changed(document: Any, place: Place, *values: object) -> Any:
    """Return the document with the value at `place`, or without what stands there if none is given."""
    if not place:
        return values[0]
    copied = copy.deepcopy(document)
    holder = copied
    for key in place[:-1]:
        holder = holder[key]
    if values:
        holder[place[-1]] = values[0]
    else:
        del holder[place[-1]]
    return copied


def one(**fields: object) -> dict[str, Any]:
    """Return a list of one task with these fields."""
    return {"tasks": [{"id": "t1", "status": "pending", **fields}]}


def error(act: Callable[[], object]) -> tuple[type[HarnessError], str, str | None]:
    """Return kind, message and hint of the error that `act` ends with."""
    with pytest.raises(HarnessError) as caught:
        act()
    return type(caught.value), caught.value.message, caught.value.hint


def said(document: object) -> list[str]:
    """Return all that is said of `document`, which is refused."""
    with pytest.raises(ContractError) as caught:
        codec.decode(document)
    return [str(problem) for problem in caught.value.problems]

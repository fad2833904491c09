"""A record as the table of its fields. Standard library only: hooks read by it."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, cast

from harness_lib.records.fields import About, Kind, Record, Typed


class Column(NamedTuple):
    """A field of a record: its name, its default in a new one (None: it has none), and what is said of it."""

    name: str
    default: Any
    about: About

    @property
    def kind(self) -> Kind:
        """What it may hold."""
        return self.about.kind

    @property
    def typed(self) -> Typed | None:
        """How a person gives it, if one may."""
        return self.about.typed


@cache
def columns(record: Record) -> tuple[Column, ...]:
    """Return the fields of `record` in the order in which they are written."""
    fields = cast("Any", record)
    return tuple(
        Column(name, fields._field_defaults.get(name), fields.__annotations__[name].__metadata__[0])
        for name in fields._fields
        if name != "extra"
    )


def names(record: Record) -> frozenset[str]:
    """Return the names of the fields of `record`."""
    return frozenset(column.name for column in columns(record))

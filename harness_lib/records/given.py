"""The fields of a task that a user gives, by their paths, such as `validation.command`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from harness_lib.records.fields import Kind, Record, Typed, columns
from harness_lib.records.task import Task


class Given(NamedTuple):
    """A field that a user may give: its path in a task, its kind, and how it is typed."""

    path: str
    kind: Kind
    default: Any
    null: bool
    typed: Typed


def _given(record: Record, within: str) -> Iterator[Given]:
    for column in columns(record):
        path = f"{within}{column.name}"
        if column.typed:
            yield Given(path, column.kind, column.default, bool(column.null), column.typed)
        elif column.kind.record and column.default is not None:
            yield from _given(column.kind.record, f"{path}.")


FIELDS = tuple(_given(Task, ""))
# The fields of a task that say what it is; every other one tells how it has fared.
NAMES = frozenset(field.path.partition(".")[0] for field in FIELDS)


def values(task: Task) -> dict[str, Any]:
    """Return the values of `task` that options can change, by path."""
    return {field.path: attrgetter(field.path)(task) for field in FIELDS if field.typed.option}


def with_values(task: Task, changes: Mapping[str, Any]) -> Task:
    """Return `task` with each path of `changes` set to its value."""
    for path, new in changes.items():
        within, _, name = path.rpartition(".")
        if within:
            task = task._replace(**{within: getattr(task, within)._replace(**{name: new})})
        else:
            task = task._replace(**{name: new})
    return task

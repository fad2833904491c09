"""Any list there may be: strategies made of the table of fields, with keys of others among them."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from harness_lib.records.fields import COMMAND_PATTERN, About, Kind, Record, columns
from harness_lib.task import State, Task

texts = st.text(max_size=12)
moments = st.datetimes().map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20))
# These are ids and names of objects of git.
names = st.from_regex(r"[a-zA-Z0-9_:ä]{1,8}", fullmatch=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
extras = st.dictionaries(texts.map(lambda name: f"x-{name}") | st.just("extra"), json_values, max_size=2)


def tuples(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=3).map(tuple)


def _text(kind: Kind) -> st.SearchStrategy[str]:
    if kind.pattern == COMMAND_PATTERN:
        allowed = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
        return st.text(allowed, min_size=kind.least, max_size=12)
    return names if kind.pattern else texts


@cache
def values(kind: Kind) -> st.SearchStrategy[Any]:
    """Draw what a field of this kind may hold."""
    if kind.record is not None:
        return records(kind.record)
    if kind.of is not None:
        return tuples(values(kind.of))
    if kind.words:
        return st.sampled_from(kind.words)
    forms = {
        "integer": st.integers(kind.least, kind.most),
        "number": st.floats(kind.least, kind.most),
        "flag": st.booleans(),
        "moment": moments,
        "version": st.just(2),
    }
    return forms[kind.form] if kind.form in forms else _text(kind)


def records(record: Record, **known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw records of which some fields are as they are by default; those in `known` are drawn so."""

    def drawn(column: About) -> st.SearchStrategy[Any]:
        may_lack = column.default is None and not column.required
        return values(column.kind) | st.none() if may_lack else values(column.kind)

    every = {column.name: drawn(column) for column in columns(record) if column.name not in known}
    needed = {
        each.name: every.pop(each.name) for each in columns(record) if each.required and each.name in every
    }
    fields = st.fixed_dictionaries({**needed, **known}, optional={**every, "extra": extras})
    return fields.map(lambda chosen: record(**chosen))


@st.composite
def tasks(draw: st.DrawFn) -> tuple[Task, ...]:
    ids = draw(st.lists(names, max_size=4, unique=True))
    needs = tuples(st.sampled_from(ids)) if ids else st.just(())
    return tuple(draw(records(Task, id=st.just(name), depends_on=needs)) for name in ids)


states = records(State, tasks=tasks(), proposals=tasks())

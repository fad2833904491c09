"""Codec and published schema say the same of every document.

Except: only the codec knows that ids are unique and that dependencies exist.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.state import codec, schema
from harness_lib.state.codec import ContractError
from harness_lib.task import State
from tests.state.documents import Place, every_field, places

EXAMPLES = Path(__file__).parents[1] / "schemas" / "valid"
DOCUMENTS = {file.stem: json.loads(file.read_bytes()) for file in sorted(EXAMPLES.glob("*.json"))}
EVERY_FIELD = every_field(State)
LINKS = ("which another task has already", "but no task has this id")

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1.5, 2.0, 2**53, 1e300, "", "x", "-x", "a b", "\n", "\0", "P1", "pending",
    "2025-03-04T08:00:00Z", "2025-02-30", "x" * 4097, "x" * 20001, [], [None], ["x"], [{}], {}, {"x": 1},
)  # fmt: skip


def codec_refuses(document: object) -> list[str]:
    try:
        codec.decode(document)
    except ContractError as error:
        return [str(problem) for problem in error.problems if not problem.message.endswith(LINKS)]
    return []


def assert_same(document: object) -> None:
    by_codec, by_schema = codec_refuses(document), schema.problems(document)

    assert bool(by_codec) == bool(by_schema), (by_codec, by_schema, document)


def within(value: Any, above: Place = ()) -> Iterator[Place]:
    """Yield every place in a document."""
    yield above
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from within(inner, (*above, key))


def changed(document: Any, place: Place, value: object) -> Any:
    if not place:
        return value
    copied = copy.deepcopy(document)
    holder = copied
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return copied


def without(document: Any, place: Place) -> Any:
    copied = copy.deepcopy(document)
    holder = copied
    for key in place[:-1]:
        holder = holder[key]
    del holder[place[-1]]
    return copied


def test_schema_takes_a_valid_example(valid: Any) -> None:
    assert schema.problems(valid) == []


def test_schema_refuses_a_broken_example_at_its_path(invalid: tuple[str, Any]) -> None:
    path, document = invalid

    assert path in [problem.path for problem in schema.problems(document)]


# One table says what may stand in a field, so one field of each kind tells of the others.
KINDS = list({kind: place for place, kind in reversed([*places(State)])}.values())


def test_both_judge_every_kind_of_field_alike_whatever_it_holds() -> None:
    """Each value in every fourth kind, and the next ones in the others; all in all is for a release."""
    for number, odd in enumerate(ODD):
        for place in ((), *KINDS[number % 4 :: 4]):
            assert_same(changed(EVERY_FIELD, place, odd))


@pytest.mark.release
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:24])
def test_both_judge_every_field_alike_when_it_holds(odd: object) -> None:
    for place, _ in places(State):
        assert_same(changed(EVERY_FIELD, place, odd))


def test_both_judge_alike_when_a_field_is_missing() -> None:
    for place, _ in places(State):
        assert_same(without(EVERY_FIELD, place))


@given(st.data())
def test_both_judge_alike_whatever_stands_anywhere(data: st.DataObject) -> None:
    document = data.draw(st.sampled_from(list(DOCUMENTS.values())))
    place = data.draw(st.sampled_from(list(within(document))))
    value = data.draw(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
            ),
            max_leaves=4,
        )
    )

    assert_same(changed(document, place, value))


@given(st.text(st.characters(), max_size=110))
def test_both_judge_an_id_alike(name: str) -> None:
    assert_same({"tasks": [{"id": name, "status": "pending"}]})


@given(st.from_regex(r"\A[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-9:.]{5,12}([Zz+-][0-9:]{0,5})?)?\n?\Z"))
def test_both_judge_a_moment_alike(text: str) -> None:
    assert_same({"created": text, "tasks": []})

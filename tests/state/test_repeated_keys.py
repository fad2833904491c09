"""A key that stands twice is refused at its path: only one of the two can be meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from harness_lib.state import codec
from harness_lib.state.codec import ContractError
from tests.state.any_state import json_values


def repeated(text: str) -> list[str]:
    with pytest.raises(ContractError) as caught:
        codec.parse(text.encode())
    return [str(problem) for problem in caught.value.problems]


def test_a_key_that_stands_twice_is_an_error_at_its_path() -> None:
    text = """{"tasks": [{"id": "a", "status": "pending"},
                         {"id": "b", "status": "completed", "status": "pending"}]}"""

    assert repeated(text) == ["tasks[1].status: stands 2 times; only one can be meant"]


def test_every_repeated_key_is_told_in_its_order_at_any_depth() -> None:
    text = """{"x-mine": {"deep": [[{"a": 1, "a": {"b": 2, "b": 3}}]]},
               "version": 2, "version": 2, "version": 2, "tasks": []}"""

    assert [problem.split(":")[0] for problem in repeated(text)] == [
        "version",
        "x-mine.deep[0][0].a",
        "x-mine.deep[0][0].a.b",
    ]


def test_what_a_repeated_key_hid_is_told_by_its_name() -> None:
    assert repeated('{"tasks": [{"id": "a", "id": "b"}], "tasks": []}') == [
        "tasks: stands 2 times; only one can be meant"
    ]


def test_a_long_repeated_key_makes_a_short_message() -> None:
    key = "x" * 1_000_000

    assert len(repeated(f'{{"{key}": {{"{key}": 1, "{key}": 2}}}}')[0]) < 200


def test_a_repeated_key_of_sixty_characters_is_shown_whole() -> None:
    for key, shown in {"x" * 60: "x" * 60, "x" * 61: "x" * 60 + "…"}.items():
        inner = f'{{"{key}": 1, "{key}": 2}}'
        problem = "stands 2 times; only one can be meant"
        assert repeated(inner) == [f"{shown}: {problem}"]
        assert repeated(f'{{"{key}": [{inner}]}}') == [f"{shown}[0].{shown}: {problem}"]


def nested(names: list[str]) -> list[str]:
    """Return what is said of a key that stands twice below `names`."""
    inside = '{"a": 1, "a": 2}'
    for name in reversed(names):
        inside = f'{{"{name}": {inside}}}'
    return [problem.partition(":")[0] for problem in repeated(inside)]


def test_of_a_path_that_never_ends_a_thousand_characters_are_told() -> None:
    just = ["bb", *["c"] * 499]
    more = ["b", *just]

    assert nested(just) == [f"{'.'.join(just)}.a"]
    assert len(".".join(just)) == 1000
    assert nested(more) == [f"…{'.'.join(more)[-1000:]}.a"]


def test_deep_nesting_under_a_repeated_key_breaks_nothing() -> None:
    inner = '{"a": ' * 900 + "1" + "}" * 900

    assert len(repeated(f'{{"tasks": [], "tasks": {inner}}}')) == 1


@given(json_values)
def test_what_json_writes_repeats_nothing(value: Any) -> None:
    assert codec.parse(json.dumps(value).encode()) == value

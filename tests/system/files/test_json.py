"""JSON with comments is read as hosts read it, and an edit keeps every byte that it is not about."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lib.system.files import json_edit
from harness_lib.system.files.json_edit import MalformedError

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.sampled_from([None, 2, "\t"]))
def test_json_is_read_as_the_standard_library_reads_it(value: Any, indent: int | str | None) -> None:
    assert json_edit.parse(json.dumps(value, indent=indent)).plain() == value


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, // why\n "b": [2]}', '/* why */ {"a": 1, "b": [2,],}', '{"a"/**/:1,"b":[/* [ */2]}\r\n// end'],
)
def test_comments_and_trailing_commas_are_accepted(text: str) -> None:
    assert json_edit.parse(text).plain() == {"a": 1, "b": [2]}


def test_what_looks_like_a_comment_in_a_text_is_text() -> None:
    assert json_edit.parse('{"a": "https://x /* y */"}').plain() == {"a": "https://x /* y */"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ('{\n"a": 1', 2),
        ('{\n"a": 1\n"b": 2}', 3),
        ("{\na: 1}", 2),
        ('{"a" 1}', 1),
        ("[1,,2]", 1),
        ("{}\n\n}", 3),
        ('{"a": "open}', 1),
        ("{ /* open }", 1),
        ("[" * 200, 1),
        ("[" + "9" * 10_000 + "]", 1),
        ("nope", 1),
    ],
)
def test_the_line_of_what_is_wrong_is_named(text: str, line: int) -> None:
    with pytest.raises(MalformedError) as caught:
        json_edit.parse(text)
    assert caught.value.line == line


@given(st.text(alphabet='{}[]:,"/*\n 1a\\', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(MalformedError):
        json_edit.parse(text)


# -- edits


ADDED = {"x": [{"c": "d"}]}

TEXTS = [
    "{}",
    "{}\n",
    '{"a":1}',
    '{"a": 1, "b": [1, 2]}',
    '{\n  "a": 1 // why\n}\n',
    '{\n\t"a": 1, // why\n\t// "b": off\n}\n',
    "{ // why\n}",
    '{"a": 1,\n "b": 2 }',
    '{\r\n    "a": {"b": []}\r\n}\r\n',
    '// first\n{\n  "a": [\n    1\n  ]\n}\n// last',
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_was_added_can_be_taken_back_to_the_byte(text: str) -> None:
    added = json_edit.add(text, (), ADDED, "hooks")
    before = json_edit.parse(text).plain()
    assert isinstance(before, dict)
    assert json_edit.parse(added).plain() == {**before, "hooks": ADDED}
    assert json_edit.remove(added, ("hooks",)) == text


def test_line_breaks_and_indentation_are_those_of_the_file() -> None:
    text = '{\r\n\t"a": 1\r\n}\r\n'
    expected = '{\r\n\t"a": 1,\r\n\t"b": [\r\n\t\t2\r\n\t]\r\n}\r\n'
    assert json_edit.add(text, (), [2], "b") == expected


def test_an_element_goes_from_anywhere() -> None:
    text = "[\n  1, // one\n  2, // two\n  3 // three\n]"
    assert json_edit.remove(text, (0,)) == "[ // one\n  2, // two\n  3 // three\n]"
    assert json_edit.remove(text, (1,)) == "[\n  1, // one\n   // two\n  3 // three\n]"
    assert json_edit.remove(text, (2,)) == "[\n  1, // one\n  2 // two\n   // three\n]"


def test_no_comment_swallows_what_stood_behind_the_removed() -> None:
    assert json_edit.parse(json_edit.remove('{ // c\n "a": 1, "b": 2}', ("a",))).plain() == {"b": 2}
    assert json_edit.parse(json_edit.remove('{ // c\n "a": 1}', ("a",))).plain() == {}


def test_a_value_is_replaced_in_its_place() -> None:
    text = '{\n  "a": [\n    1, // one\n    2\n  ]\n}'
    assert json_edit.replace(text, ("a", 0), "x") == text.replace("1,", '"x",')


def test_there_must_be_a_container() -> None:
    with pytest.raises(KeyError):
        json_edit.add('{"a": 1}', ("a",), 2)
    with pytest.raises(KeyError):
        json_edit.add('{"a": 1}', ("b",), 2)


SPACES = st.sampled_from(["", " ", "\n", "\r\n", "\t", " // c\n", "/* c */"])


@st.composite
def written(draw: Any, value: Any) -> str:
    """Write `value` as some person might."""
    if isinstance(value, dict | list):
        parts = []
        for item in value:
            name = json.dumps(item) + draw(SPACES) + ":" if isinstance(value, dict) else ""
            inner = draw(written(value[item] if isinstance(value, dict) else item))
            parts.append(draw(SPACES) + name + draw(SPACES) + inner + draw(SPACES))
        last = "," if parts and draw(st.booleans()) else ""
        body = ",".join(parts) + last + draw(SPACES)
        return f"{{{body}}}" if isinstance(value, dict) else f"[{body}]"
    return json.dumps(value)


@settings(max_examples=60)
@given(st.data(), st.dictionaries(st.text(max_size=3), VALUES, max_size=4))
def test_an_edit_changes_what_it_says_and_nothing_else(data: Any, value: dict[str, Any]) -> None:
    text = data.draw(written(value))
    assert json_edit.parse(text).plain() == value
    added = json_edit.add(text, (), ADDED, "a new name")
    assert json_edit.parse(added).plain() == {**value, "a new name": ADDED}
    assert json_edit.parse(json_edit.remove(added, ("a new name",))).plain() == value
    for name in value:
        less = {key: each for key, each in value.items() if key != name}
        assert json_edit.parse(json_edit.remove(text, (name,))).plain() == less
        assert json_edit.parse(json_edit.replace(text, (name,), [1])).plain() == {**value, name: [1]}

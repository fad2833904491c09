"""JSON with comments: read as hosts read it, and what is wrong is named with its line."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.system.files import json_text
from harness_lib.system.files.json_text import MalformedError

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, 2, "\t"]))
def test_json_is_read_as_the_standard_library_reads_it(value: Any, indent: int | str | None) -> None:
    assert json_text.parse(json.dumps(value, indent=indent)).plain() == value


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, // why\n "b": [2]}', '/* why */ {"a": 1, "b": [2,],}', '{"a"/**/:1,"b":[/* [ */2]}\r\n// end'],
)
def test_comments_and_trailing_commas_are_accepted(text: str) -> None:
    assert json_text.parse(text).plain() == {"a": 1, "b": [2]}


def test_what_looks_like_a_comment_in_a_text_is_text() -> None:
    assert json_text.parse('{"a": "https://x /* y */"}').plain() == {"a": "https://x /* y */"}


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
        json_text.parse(text)
    assert caught.value.line == line


@given(st.text(alphabet='{}[]:,"/*\n 1a\\', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(MalformedError):
        json_text.parse(text)

"""What is no JSON, or more than Python can hold, is told from a list that is only wrong."""

from __future__ import annotations

import pytest

from harness_lib.state import codec
from harness_lib.state.codec import ContractError, UnparseableError


@pytest.mark.parametrize("data", [b"", b"{", b'{"tasks": [NaN]}', b"\xff\xfe\x00", b"{'tasks': []}", b"[1,]"])
def test_what_is_not_json_is_unparseable(data: bytes) -> None:
    with pytest.raises(UnparseableError):
        codec.parse(data)


def test_a_word_that_only_python_reads_is_named() -> None:
    with pytest.raises(UnparseableError, match=r"^NaN is not JSON: line 1 column 1 \(char 0\)$"):
        codec.parse(b'{"tasks": [NaN]}')


@pytest.mark.parametrize(
    "data", [b"[" * 100_000 + b"]" * 100_000, b"9" * 5000], ids=["nested deep", "5000 digits"]
)
def test_json_that_python_cannot_hold_is_no_reason_to_restore(data: bytes) -> None:
    with pytest.raises(ContractError):
        codec.parse(data)


def test_a_byte_order_mark_does_no_harm() -> None:
    assert codec.parse(b'\xef\xbb\xbf{"tasks": []}') == {"tasks": []}


def test_an_unknown_number_beyond_floating_point_does_not_break_the_file() -> None:
    state = codec.decode(codec.parse(b'{"tasks": [], "x-big": -1e999}'))

    assert codec.decode(codec.parse(codec.render(state).encode())) == state


@pytest.mark.parametrize("data", [b"[" * 200_000, b'{"a": ' + b"9" * 10_000 + b"}"], ids=["deep", "long"])
def test_what_cannot_be_held_is_a_problem_of_the_whole_document(data: bytes) -> None:
    with pytest.raises(ContractError) as raised:
        codec.parse(data)

    assert [problem.path for problem in raised.value.problems] == [""]

"""What others wrote can be shown, and reads as they wrote it."""

from __future__ import annotations

import pytest

from harness_lib.text import cut, escape, first, harmless, in_one_line, sentence, some

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"


@pytest.mark.parametrize("text", [FAMILY, PERSIAN, "\u0915\u094d\u200d\u0937", "naïve 日本語"])
def test_words_and_emoji_that_need_joiners_stay_whole(text: str) -> None:
    assert harmless(text) == text
    assert in_one_line(f" {text}\n{text} ") == f"{text} {text}"


@pytest.mark.parametrize("char", ["\x1b", "\x07", "\x00", "\x9b", "\u202e", "\u2066", "\ufeff", "\u2028"])
def test_what_moves_or_hides_on_a_terminal_is_replaced(char: str) -> None:
    assert harmless(f"a{char}b") == "a\ufffdb"
    assert harmless(f"a{char}b", instead="") == "ab"
    assert char not in in_one_line(f"a{char}b")


def test_what_is_cut_says_so_within_its_limit() -> None:
    assert [cut(text, 3) for text in ("", "abc", "abcd")] == ["", "abc", "ab…"]


def test_of_many_some_are_named_and_the_others_counted() -> None:
    assert [some(list("abc")[:count], 2) for count in range(4)] == ["", "a", "a, b", "a, b and 1 more"]


def test_what_breaks_a_line_or_moves_a_cursor_is_written_out() -> None:
    assert escape("a\tb\nc\x1b[2J\x9b\u2028\u202e é") == r"a\tb\nc\x1b[2J\x9b\u2028\u202e é"


def test_a_text_of_another_program_ends_like_a_sentence() -> None:
    said = [sentence(text) for text in ("Overloaded", "Overloaded.", "Why?", "No!", "cut of…")]
    assert said == ["Overloaded.", "Overloaded.", "Why?", "No!", "cut of…"]


def test_of_many_rows_the_first_are_shown_and_the_others_counted() -> None:
    assert [first(list("abc")[:count], 2, " tasks") for count in range(4)] == [
        [],
        ["a"],
        ["a", "b"],
        ["a", "b", "… and 1 more tasks"],
    ]

"""docs/hs-protocol.md tells the plugin protocol sentence by sentence, each with tests that exist and run."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from tests.conftest import CHECKOUT
from tests.docs import cited_tests
from tests.docs.cited_tests import CITATION

PAGE = (CHECKOUT / "docs/hs-protocol.md").read_text()
CHAPTERS = 19
HEAD = ["", "the sentence", "shown by"]
OURS = {"test_our_hooks.py", "test_our_tools.py", "test_our_providers.py"}


class Row(NamedTuple):
    chapter: int
    number: str
    sentence: str
    shown: str


ROWS = [
    Row(chapter, *cells)
    for chapter, text in enumerate(PAGE.split("\n## ")[1:], 1)
    for cells in cited_tests.rows(text, HEAD)
]


def test_the_sentences_of_each_chapter_are_numbered_one_after_another() -> None:
    for chapter in range(1, CHAPTERS + 1):
        numbers = [row.number for row in ROWS if row.chapter == chapter]
        assert numbers == [f"{chapter}.{place}" for place in range(1, len(numbers) + 1)] != []


def test_every_sentence_is_one_and_shown_by_tests_that_exist() -> None:
    for row in ROWS:
        assert row.sentence.endswith("."), row
        assert cited_tests.cited(row.shown), row


def test_each_plugin_of_ours_is_shown_as_a_program() -> None:
    """Those tests take `ours`, which runs it as one."""
    programs = [
        name
        for row in ROWS
        for name in CITATION.findall(row.shown)
        if re.search(rf"def {name.split('::')[1]}\(\s*ours: Ours", source(name.split("::")[0]))
    ]
    shown = {name.split("::")[0].split("/")[-1] for name in programs}
    assert shown == OURS


def test_no_test_of_our_plugins_stands_for_nothing() -> None:
    for name in OURS:
        path = f"tests/loop/protocol/{name}"
        cited = {test.split("::")[1] for test in CITATION.findall(PAGE) if test.startswith(f"{path}::")}
        assert cited == set(re.findall(r"^def (test_\w+)", source(path), re.MULTILINE))


@cache
def source(path: str) -> str:
    return (CHECKOUT / path).read_text()

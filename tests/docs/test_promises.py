"""Each sentence of docs/promises.md and docs/hs-protocol.md has tests that exist, and that bin/test runs."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import tomlkit

from tests.conftest import CHECKOUT
from tests.docs import cited_tests
from tests.docs.cited_tests import CITATION
from tests.docs.pages import page

TABLE = "tests/docs/promises.toml"
REASONS = ("explains", "links")


def _sentences() -> list[str]:
    """Return the sentences of the page as one reads them: without bold type, each on one line."""
    _, *blocks = re.split(r"\n\n|\n- ", page("promises.md").replace("**", "").rstrip())
    lines = (" ".join(block.removeprefix("- ").split()) for block in blocks)
    return [sentence for line in lines for sentence in re.split(r"(?<=\.) ", line)]


def _table() -> dict[str, list[str] | str]:
    return tomlkit.parse((CHECKOUT / TABLE).read_text()).unwrap()


def test_each_sentence_has_its_line_in_the_table() -> None:
    sentences, table = _sentences(), list(_table())
    without = [each for each in sentences if len([key for key in table if each.startswith(key)]) != 1]
    stale = [key for key in table if len([each for each in sentences if each.startswith(key)]) != 1]

    assert without == [], f"add one line to {TABLE} for each: its first words, and the tests that hold it"
    assert stale == [], (
        f"no sentence of docs/promises.md, or more than one, begins so: change the key in {TABLE}"
    )
    assert [next(each for each in sentences if each.startswith(key)) for key in table] == sentences, (
        "sort the table"
    )


def test_each_sentence_is_held_by_tests_that_run_without_release() -> None:
    cited = {key: tests for key, tests in _table().items() if tests not in REASONS}
    assert [key for key, tests in cited.items() if isinstance(tests, str) or not tests] == [], (
        "name a test, or a reason"
    )

    gone = [(key, test) for key, tests in cited.items() for test in tests if not cited_tests.exists(test)]
    assert gone == [], f"name in {TABLE} the test that holds the sentence now, or keep this one"
    rare = [
        (key, test) for key, tests in cited.items() for test in tests if cited_tests.for_release_only(test)
    ]
    assert rare == [], f"a promise needs a test in bin/test: unmark one case, or name another test in {TABLE}"


# -- docs/hs-protocol.md tells the plugin protocol sentence by sentence


PAGE = (CHECKOUT / "docs/hs-protocol.md").read_text()
CHAPTERS = 19
HEAD = ["", "the sentence", "shown by"]
OURS = {"test_our_hooks.py", "test_ours.py"}


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

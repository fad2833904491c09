"""Each sentence of docs/promises.md has a test that `bin/test` runs."""

from __future__ import annotations

import re

import tomlkit

from tests.conftest import CHECKOUT
from tests.docs import cited_tests
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

"""docs/protocol.md covers every chapter of the original skill, and each row names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests.docs import cited_tests

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs/protocol.md").read_text()
CHAPTERS = [
    "Hooks in the front matter",
    "Design Principles",
    "Commands",
    "Activation Marker",
    "Progress Persistence",
    "Concurrency Control",
    "Infinite Loop Protocol",
    "Session Start",
    "Task Selection Algorithm",
    "Task Execution Cycle",
    "Stopping Conditions",
    "Context Window Recovery Protocol",
    "Error Handling",
    "Environment Initialization",
    "Standardized Log Format",
    "Session Statistics",
    "Init Command",
    "Status Command",
    "Add Command",
    "Tool Dependencies",
]
HEAD = ["the original skill says", "we", "shown by"]
VERDICTS = ("same", "better: ", "not yet")


class Row(NamedTuple):
    statement: str
    verdict: str
    shown: str


ROWS = [Row(*cells) for cells in cited_tests.rows(PAGE, HEAD)]


def test_every_chapter_is_there_in_the_order_of_the_legacy_protocol() -> None:
    assert re.findall(r"^###? (.+)$", PAGE, re.MULTILINE) == CHAPTERS


def test_it_begins_with_what_it_is_for() -> None:
    assert PAGE.splitlines()[2].startswith("This page is for ")


def test_every_row_says_what_we_do_and_why_where_it_differs() -> None:
    for row in ROWS:
        assert row.statement, row
        assert row.verdict.startswith(VERDICTS), row
        if row.verdict.startswith("better"):
            assert "because" in row.verdict, row


def test_every_row_is_shown_by_tests_that_exist_or_not_yet_done() -> None:
    for row in ROWS:
        assert cited_tests.cited(row.shown) or row.verdict.startswith("not yet"), row

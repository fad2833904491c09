"""What the code cites is in the repository, under the name that it is cited by."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import CHECKOUT

SOURCES = sorted(
    path for room in ("harness_lib", "hooks", "tests") for path in (CHECKOUT / room).rglob("*.py")
)
CITED = re.compile(r'(docs/[a-z-]+\.md), ("[^"\n]+"(?:,? and "[^"\n]+")?)')
ELSEWHERE = re.compile(r"\bdesign,? sections? \d|\bsource: seed\b", re.IGNORECASE)


def test_a_cited_heading_stands_in_its_page() -> None:
    cited = {
        (page, heading)
        for path in SOURCES
        for page, headings in CITED.findall(path.read_text())
        for heading in re.findall('"([^"]+)"', headings)
    }
    assert cited
    for page, heading in sorted(cited):
        text = (CHECKOUT / page).read_text()
        found = re.search(rf"^#+ {re.escape(heading)}$", text, re.MULTILINE)
        assert found, f"{page} has no heading {heading!r}"


def test_nothing_cites_a_text_that_is_not_here() -> None:
    own = Path(__file__)
    strays = [
        f"{path.relative_to(CHECKOUT)}: {citation.group()}"
        for path in SOURCES
        if path != own
        for citation in ELSEWHERE.finditer(path.read_text())
    ]
    assert strays == []


def test_the_glossary_is_in_order() -> None:
    words = re.findall(r"^\| \*\*([a-z ]+)\*\* \|", (CHECKOUT / "docs/glossary.md").read_text(), re.MULTILINE)
    assert words == sorted(words)
    assert len(words) > 20

"""The picture in README shows a demo that kept its promises."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

PICTURE = Path(__file__).parents[2] / "docs" / "demo.svg"


def drawn() -> str:
    """Return the text in the picture, one line after another."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", PICTURE.read_text(encoding="utf-8"))
    return html.unescape("\n".join(texts)).replace("\xa0", " ")


@pytest.mark.parametrize(
    "promised",
    ["task-006 failed", "killed with SIGKILL", "recovered task-001", "[failed] task-005", "log:"],
)
def test_it_shows_what_the_demo_promises(promised: str) -> None:
    assert promised in drawn()


def test_it_loads_nothing() -> None:
    """No font and no picture of another host."""
    assert "url(" not in re.sub(r"url\(#[^)]*\)", "", PICTURE.read_text(encoding="utf-8"))

"""The pages of the project, as tests read them."""

from __future__ import annotations

import re

from tests.conftest import CHECKOUT

README = (CHECKOUT / "README.md").read_text()


def page(name: str) -> str:
    """Return the text of a page of `docs`."""
    return (CHECKOUT / "docs" / name).read_text()


def section(title: str) -> str:
    """Return the text below a heading of the second level of README."""
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def block(page: str, title: str, language: str = "sh") -> str:
    """Return the first block of `language` below a heading of `page`, or below a bold title."""
    text = (CHECKOUT / page).read_text()
    below = re.split(rf"^(?:## |1\. \*\*|\*\*){re.escape(title)}", text, maxsplit=1, flags=re.MULTILINE)[1]
    return below.split(f"```{language}\n")[1].split("```")[0]

"""The pages of the project, as tests read them."""

from __future__ import annotations

from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")


def page(name: str) -> str:
    """Return the text of a page of `docs`."""
    return (CHECKOUT / "docs" / name).read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return the text below a heading of the second level of README."""
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]

"""SKILL.md and its pages: hosts can load them, and every command in them can be typed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from harness_lib.errors import Exit

CHECKOUT = Path(__file__).parents[2]
SKILL = CHECKOUT / "SKILL.md"
TEXT = SKILL.read_text()
PAGES = [SKILL, *sorted((CHECKOUT / "references").glob("*.md"))]


def frontmatter() -> dict[str, Any]:
    """Return what stands between the first two lines of dashes."""
    parsed = yaml.safe_load(TEXT.split("---\n")[1])
    assert isinstance(parsed, dict)
    return parsed


def test_the_frontmatter_is_what_hosts_require() -> None:
    """`name` and `description` are strings within the limits of the Agent Skills specification."""
    fields = frontmatter()

    assert fields["name"] == "harness"
    assert isinstance(fields["description"], str)
    assert len(fields["description"]) <= 500


def test_its_hooks_are_those_of_the_plugin() -> None:
    """Claude Code runs a command once that stands in both, and only if both are spelled alike."""
    plugin = json.loads((CHECKOUT / "hooks/hooks.json").read_text())["hooks"]
    page = frontmatter()["hooks"]

    # A host fires no others that a page of a skill names.
    assert {"Stop", "TeammateIdle"} == set(page)
    for event, groups in page.items():
        assert commands(groups) == commands(plugin[event])


def commands(groups: list[dict[str, Any]]) -> list[str]:
    """Return the command lines of an event."""
    return [hook["command"] for group in groups for hook in group["hooks"]]


def test_the_page_is_short() -> None:
    """An agent pays for every line each time it is told to work."""
    assert len(TEXT.splitlines()) <= 150


def test_every_page_is_named_with_its_condition() -> None:
    """No page is orphaned, and none is missing."""
    rows = [line for line in TEXT.splitlines() if line.startswith("|")]
    named = set(re.findall(r"references/(\w+)\.md", "\n".join(rows)))

    assert named == {page.stem for page in PAGES[1:]}


def test_every_exit_code_has_its_row() -> None:
    """The agent knows what to do for each code."""
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)}

    assert codes == {int(code) for code in Exit}


def test_the_page_has_no_algorithm() -> None:
    """What a command does is not told twice: no lock recipe, no git surgery, no JSON."""
    for word in ("mkdir", "reset --hard", "git clean", "sha256", '"status"'):
        assert word not in TEXT

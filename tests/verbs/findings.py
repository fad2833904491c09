"""What `harness doctor` says it has found, for the tests that ask for one of its findings."""

from __future__ import annotations

from typing import Any


def finding(reply: dict[str, Any], words: str) -> dict[str, Any]:
    """Return the one finding that says `words`."""
    hits = [each for each in reply["found"] if words in each["what"]]
    assert len(hits) == 1, (words, reply["message"])
    hit: dict[str, Any] = hits[0]
    return hit


def troubles(reply: dict[str, Any]) -> list[str]:
    """Return what is not as it should be."""
    return [each["what"] for each in reply["found"] if each["level"] != "ok"]

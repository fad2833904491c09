"""Pass data from hook to hook: JSON objects between our own, text where a foreign program stands between."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
Piped = Json | str


def as_object(piped: Piped) -> Json | None:
    """Return the JSON object, or None where it is none."""
    if isinstance(piped, dict):
        return piped
    try:
        value = json.loads(piped)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def as_text(piped: Piped) -> str:
    """Return the text without the line breaks at its end."""
    return piped.rstrip("\n") if isinstance(piped, str) else dumps(piped)


def dumps(value: object) -> str:
    """Return compact JSON in the order of the keys, as foreign readers of `.stream` compare it."""
    # Half a surrogate pair of a model's escapes cannot be written as UTF-8.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode("utf-8")

"""Pass data from hook to hook: JSON objects between built-in hooks, text to and from foreign programs."""

from __future__ import annotations

import json
import math
from typing import Any

Json = dict[str, Any]
Piped = Json | str


def as_object(piped: Piped) -> Json | None:
    """Return the JSON object; None if it is not one, also for NaN and Infinity, which no host reads."""
    if isinstance(piped, dict):
        return piped
    value = parse_object(piped, _STRICT)
    return value if value is None or "\\u" not in piped else writable(value)


def parse_object(text: str, decoder: json.JSONDecoder | None = None) -> Json | None:
    """Return the JSON object in `text`, or None; half surrogate pairs stay as they are, for `writable`."""
    try:
        value = (decoder or _LENIENT).decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        message = f"{text} is no number of JSON"
        raise ValueError(message)
    return float(text)


_LENIENT = json.JSONDecoder()
_STRICT = json.JSONDecoder(parse_constant=_finite, parse_float=_finite)


def writable(value: Json) -> Json:
    """Return `value` so that UTF-8 can encode it: join halves of surrogate pairs, replace single ones."""
    if "\\ud" not in json.dumps(value):
        return value
    return dict(json.loads(dumps(value)))


def as_text(piped: Piped) -> str:
    """Return the text without the line breaks at its end."""
    return piped.rstrip("\n") if isinstance(piped, str) else dumps(piped)


def dumps(value: object) -> str:
    """Return compact JSON in the order of the keys, as foreign readers of `.stream` compare it.

    Models write halves of surrogate pairs, which UTF-8 cannot encode: they are replaced.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text

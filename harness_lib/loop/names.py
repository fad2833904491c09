"""Names that come from a model or a person and end up in paths."""

from __future__ import annotations

import re

_LONGEST = 64
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def is_name(text: str) -> bool:
    """Return whether `text` names something in a directory and leads nowhere else."""
    return bool(text) and text not in {".", ".."} and not any(c == "/" or ord(c) < ord(" ") for c in text)


def for_hosts(text: str) -> str:
    """Return the name of a tool as hosts take it: they refuse every request in which one has another."""
    return _OTHER.sub("_", text)[:_LONGEST] or "_"

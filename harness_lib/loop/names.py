"""Names that come from a model or a person and end up in paths."""

from __future__ import annotations


def is_name(text: str) -> bool:
    """Return whether `text` names something in a directory and leads nowhere else."""
    return bool(text) and text not in {".", ".."} and not any(c == "/" or ord(c) < ord(" ") for c in text)

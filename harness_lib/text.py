"""Text of somebody else, made harmless to show: nothing in it moves the cursor or hides what follows."""

from __future__ import annotations

# What shows that something was there and is not shown.
REPLACED = "\ufffd"
# They print nothing, but without them Persian and Hindi words and many emoji fall apart.
_JOINERS = "\u200c\u200d"


def harmless(text: str, *, instead: str = REPLACED, keep: str = "") -> str:
    """Return `text` with every character that is no print replaced by `instead`, but for those in `keep`."""
    return "".join(c if c.isprintable() or c in _JOINERS or c in keep else instead for c in text)


def in_one_line(text: str, *, instead: str = " ") -> str:
    """Return what `harmless` does, with every run of blanks and line breaks as one blank."""
    return " ".join(harmless("".join(" " if c.isspace() else c for c in text), instead=instead).split())

"""Tell from an error of a host whether the request was too long for its model.

No host has a status for it alone, and each has words of its own.
"""

from __future__ import annotations

_TOO_LARGE = 413
_WORDS = (
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "context limit",
    "context size",
    "prompt is too long",
    "input is too long",
    "reduce the length of the messages",
    "request_too_large",
)


def is_overflow(message: str, status: int = 0) -> bool:
    """Return whether `message`, the whole error as it came, is about the length of the request."""
    text = message.lower()
    return status == _TOO_LARGE or any(words in text for words in _WORDS)

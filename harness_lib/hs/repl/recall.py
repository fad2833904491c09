"""Show what was said last in a session to a person who comes back to it."""

from __future__ import annotations

from collections.abc import Sequence

from harness_lib.loop.sessions.message import Message, Text
from harness_lib.text import in_one_line

_LONGEST = 300


def last_exchange(messages: Sequence[Message]) -> tuple[str, str]:
    """Return the beginning of what was asked last, in one line, and the answer; "" for what is not there."""
    asked = next((message for message in reversed(messages) if message.role == "user"), None)
    if asked is None:
        return "", ""
    answers = [message for message in messages if message.role == "assistant" and message.seq > asked.seq]
    texts = [block.text for block in answers[-1].blocks if isinstance(block, Text)] if answers else []
    return in_one_line(asked.body)[:_LONGEST], "\n".join(texts)

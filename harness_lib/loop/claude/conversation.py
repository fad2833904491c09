"""The conversation of Claude Code that a session goes on in.

Claude Code keeps its own transcript. It counts as long as nobody else has spoken in the session and nobody
has edited it; otherwise a new conversation begins, and is told what has been said.
"""

from __future__ import annotations

import hashlib
import uuid
from typing import NamedTuple

from harness_lib.loop import disk
from harness_lib.loop.piped import dumps
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import context
from harness_lib.loop.sessions.context import Answered, Entry, User
from harness_lib.loop.sessions.message import Call, Message, Text
from harness_lib.loop.sessions.session import CONVERSATION, Session

_ROLES = frozenset({"user", "assistant", "tool_result"})
_GO_ON = "Go on."
_BEGAN = "This conversation began elsewhere. What was said and done so far:"
_NOW = "Now:"
# In characters, about a quarter as many tokens; the newest part is kept.
_LONGEST = 200_000
_LONGEST_RESULT = 2_000


class Conversation(NamedTuple):
    """`id` is Claude Code's; `known`: it was started before; `prompt` is the next message.

    `cost` is what it has cost so far, in US dollars: Claude Code tells sums.
    """

    id: str
    known: bool
    prompt: str
    cost: float = 0.0


def conversation(runtime: Runtime) -> Conversation:
    """Return the conversation that the session continues."""
    if runtime.session is None:
        return Conversation(str(uuid.uuid4()), known=False, prompt=_GO_ON)
    messages = _messages(runtime.session)
    kept = disk.read_object(runtime.session.directory / CONVERSATION)
    seq, session_id = kept.get("seq"), kept.get("session")
    if isinstance(seq, int) and isinstance(session_id, str) and kept.get("cwd") == str(runtime.session.cwd):
        seen = [message for message in messages if message.seq <= seq]
        news = [message for message in messages if message.seq > seq]
        if kept.get("sha256") == _hash(seen) and all(message.role == "user" for message in news):
            prompt = "\n\n".join(message.body for message in news if message.body.strip())
            cost = kept.get("cost")
            before = float(cost) if isinstance(cost, int | float) else 0.0
            return Conversation(session_id, known=True, prompt=prompt or _GO_ON, cost=before)
    return anew(runtime)


def anew(runtime: Runtime) -> Conversation:
    """Return a new conversation whose prompt holds the whole session."""
    entries = context.entries(runtime.session.messages(), {}) if runtime.session else []
    place = len(entries)
    while place and isinstance(entries[place - 1], User):
        place -= 1
    asked = "\n\n".join(entry.text for entry in entries[place:] if isinstance(entry, User)) or _GO_ON
    before = "\n\n".join(_as_text(entry) for entry in entries[:place])
    prompt = f"{_BEGAN}\n\n{before[-_LONGEST:]}\n\n{_NOW}\n\n{asked}" if before else asked
    return Conversation(str(uuid.uuid4()), known=False, prompt=prompt)


def keep(runtime: Runtime, session_id: str, cost: float) -> None:
    """Store that the conversation `session_id` knows the session as it is now, and its cost so far."""
    if runtime.session is None:
        return
    messages = _messages(runtime.session)
    value = {
        "session": session_id,
        "seq": messages[-1].seq if messages else 0,
        "sha256": _hash(messages),
        "cwd": str(runtime.session.cwd),
        "cost": cost,
    }
    runtime.session.write(CONVERSATION, dumps(value).encode())


def _messages(session: Session) -> list[Message]:
    return [message for message in session.messages() if message.role in _ROLES]


def _hash(messages: list[Message]) -> str:
    digest = hashlib.sha256()
    for message in messages:
        digest.update(f"{message.seq}\0{message.role}\0{message.body}\0".encode("utf-8", "replace"))
    return digest.hexdigest()


def _as_text(entry: Entry) -> str:
    if isinstance(entry, User):
        return f"User: {entry.text}"
    if isinstance(entry, Answered):
        return f"Result of {entry.call.name}: {entry.text[:_LONGEST_RESULT]}"
    parts = [block.text for block in entry.blocks if isinstance(block, Text)]
    parts += [f"[{block.name} {block.arguments}]" for block in entry.blocks if isinstance(block, Call)]
    return "Assistant: " + "\n".join(parts)

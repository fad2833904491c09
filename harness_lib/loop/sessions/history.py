"""Make the history for a model from a session: every call is answered once, right after its message.

Hosts refuse a history in which that is not so for ever, whatever killed the run that left it. An answer as
its host wrote it is kept beside the Markdown: signed thinking and encrypted reasoning survive there. It
counts for the same API, provider and model only, and as long as the Markdown was not edited.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, NamedTuple

from harness_lib.loop import disk
from harness_lib.loop.piped import Json, dumps
from harness_lib.loop.sessions import context
from harness_lib.loop.sessions.message import Block, Call, Message, Text
from harness_lib.loop.sessions.session import Session
from harness_lib.system.files import atomic

INTERRUPTED = "interrupted: this call did not finish, and may have done part of its work."


class User(NamedTuple):
    """What the user said."""

    text: str


class Assistant(NamedTuple):
    """An answer of the model; `native` is its form of the host, if that may be replayed."""

    blocks: list[Block]
    native: list[Json] | None = None


class Answered(NamedTuple):
    """The result of a call."""

    call: Call
    text: str
    error: bool


Entry = User | Assistant | Answered


def entries(messages: list[Message], native: dict[int, list[Json]]) -> list[Entry]:
    """Return the history in `messages`; `native` holds by number what may be replayed as it came."""
    seen = context.view(messages)
    entries: list[Entry] = [User(seen.summary.body)] if seen.summary else []
    messages = seen.messages
    for place, message in enumerate(messages):
        if message.role == "user" and message.body.strip():
            entries.append(User(message.body))
        elif message.role == "assistant":
            blocks = [block for block in message.blocks if not isinstance(block, Text) or block.text.strip()]
            # No host takes an empty message.
            if not blocks:
                continue
            replayable = [
                replace(block, name=name)
                if isinstance(block, Call) and block.name != (name := disk.for_hosts(block.name))
                else block
                for block in blocks
            ]
            entries.append(Assistant(replayable, native.get(message.seq) if replayable == blocks else None))
            entries += _answers([block for block in blocks if isinstance(block, Call)], messages, place + 1)
    return entries


def _answers(calls: list[Call], messages: list[Message], first: int) -> list[Answered]:
    """Return one result for each call: its own, found before the model spoke again, or "interrupted"."""
    results: dict[str, Message] = {}
    for place in range(first, len(messages) if calls else first):
        message = messages[place]
        if message.role == "assistant":
            break
        if message.role == "tool_result":
            results.setdefault(message.fields.get("call_id", ""), message)
    return [
        Answered(call, result.body, error=result.fields.get("error") == "true")
        if (result := results.get(call.id))
        else Answered(call, INTERRUPTED, error=True)
        for call in calls
    ]


def save_native(
    session: Session, message: Message, speaker: tuple[str, str, str], blocks: list[Json]
) -> None:
    """Keep `blocks`, the native form of `message`; `speaker` is API, provider and model."""
    directory = session.directory / "native"
    value = {"speaker": list(speaker), "sha256": _hash(message), "blocks": blocks}
    path = directory / f"{message.seq:04d}.json"
    with session.writing():
        directory.mkdir(mode=0o700, exist_ok=True)
        atomic.write(path, dumps(value).encode(), durable=False, mode=0o600)


def load_native(
    session: Session, messages: list[Message], speaker: tuple[str, str, str], kept: dict[str, Any]
) -> dict[int, list[Json]]:
    """Return by number what may be replayed to `speaker`; `kept` remembers files that were read before."""
    known: dict[tuple[str, int], Json] = kept.setdefault("native", {})
    replayable: dict[int, list[Json]] = {}
    for message in messages:
        if message.role != "assistant":
            continue
        key = (session.id, message.seq)
        if key not in known:
            known[key] = disk.read_object(session.directory / "native" / f"{message.seq:04d}.json")
        value = known[key]
        if value.get("speaker") != list(speaker) or not isinstance(value.get("blocks"), list):
            continue
        if value.get("sha256") == _hash(message):
            replayable[message.seq] = value["blocks"]
    return replayable


def _hash(message: Message) -> str:
    return hashlib.sha256(message.body.encode("utf-8", "replace")).hexdigest()

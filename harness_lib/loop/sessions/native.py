"""An answer as its host wrote it, beside the Markdown: signed thinking and encrypted reasoning survive there.

It counts for the same wire, provider and model only, and as long as nobody has edited the Markdown.
"""

from __future__ import annotations

import hashlib
from typing import Any

from harness_lib.loop.piped import Json, as_object, dumps
from harness_lib.loop.sessions.message import Message
from harness_lib.loop.sessions.session import Session
from harness_lib.system.files import atomic


def save(session: Session, message: Message, speaker: tuple[str, str, str], blocks: list[Json]) -> None:
    """Keep `blocks`, the native form of `message`; `speaker` is wire, provider and model."""
    directory = session.directory / "native"
    value = {"speaker": list(speaker), "sha256": _hash(message), "blocks": blocks}
    path = directory / f"{message.seq:04d}.json"
    with session.writing():
        directory.mkdir(mode=0o700, exist_ok=True)
        atomic.write(path, dumps(value).encode(), durable=False, mode=0o600)


def load(
    session: Session, messages: list[Message], speaker: tuple[str, str, str], kept: dict[str, Any]
) -> dict[int, list[Json]]:
    """Return by number what may be replayed to `speaker`; `kept` remembers files that were read before."""
    known: dict[tuple[str, int], Json | None] = kept.setdefault("native", {})
    replayable: dict[int, list[Json]] = {}
    for message in messages:
        if message.role != "assistant":
            continue
        key = (session.id, message.seq)
        if key not in known:
            known[key] = _read(session, message.seq)
        value = known[key]
        if value and value.get("speaker") == list(speaker) and value.get("sha256") == _hash(message):
            replayable[message.seq] = value["blocks"]
    return replayable


def _read(session: Session, seq: int) -> Json | None:
    try:
        text = (session.directory / "native" / f"{seq:04d}.json").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    value = as_object(text)
    return value if value and isinstance(value.get("blocks"), list) else None


def _hash(message: Message) -> str:
    return hashlib.sha256(message.body.encode("utf-8", "replace")).hexdigest()

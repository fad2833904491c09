"""Measure a session: its tokens, its cost, where to cut it for a summary; and make its history fit any host.

Decided from the messages alone, so that every process that resumes the session decides the same.
Hosts refuse a history in which calls and results do not match for ever, whatever killed the run that left it.
An answer as its host wrote it is kept beside the Markdown: signed thinking and encrypted reasoning survive.
It counts for the same API, provider and model only, and as long as the Markdown was not edited.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from harness_lib.loop import disk
from harness_lib.loop.disk import number
from harness_lib.loop.piped import Json, dumps
from harness_lib.loop.session import Block, Call, Message, Session, Text
from harness_lib.sha256 import digest

_CHARACTERS_PER_TOKEN = 4
_MOST_KEPT = 20_000
_KEPT_PART = 4
_READS = frozenset({"read_file"})
_CHANGES = frozenset({"edit_file", "replace", "write_file"})
_SKILL = r'(?s)<skill name="[^"\n]*">.*?</skill>'


class View(NamedTuple):
    """The part that is sent to a model: the newest summary, if there is one, and the messages after it."""

    summary: Message | None
    messages: list[Message]

    @property
    def tokens(self) -> int:
        """The estimated tokens of all of it."""
        return guess([*([self.summary] if self.summary else []), *self.messages])


class Cut(NamedTuple):
    """The messages that a new summary is to replace, and the number of the first that stays."""

    older: list[Message]
    keep: int


def view(messages: list[Message]) -> View:
    """Return the newest summary in `messages`, and what it does not replace."""
    for message in reversed(messages):
        keep = number(message.fields.get("keep", ""))
        if message.role == "summary" and keep and message.body.strip():
            # What came after it was never summarised, even if `keep` was edited to a later number.
            first = min(keep, message.seq)
            left = [each for each in messages if each.seq >= first and each.role != "summary"]
            return View(message, left)
    return View(None, [each for each in messages if each.role != "summary"])


def tokens(messages: list[Message]) -> int:
    """Return the estimated tokens of the next request: the host's last count, and a guess of the rest."""
    seen = view(messages)
    since = seen.summary.seq if seen.summary else 0
    for place in range(len(seen.messages) - 1, -1, -1):
        message = seen.messages[place]
        counted = number(message.fields.get("tokens_in", ""))
        # A count from before the summary includes the messages that it replaced.
        if message.role == "assistant" and counted and message.seq > since:
            said = number(message.fields.get("tokens_out", ""))
            return counted + said + guess(seen.messages[place + 1 :])
    return seen.tokens


def guess(messages: list[Message]) -> int:
    """Return a quarter of the characters of `messages`."""
    sizes = (len(message.body) for message in messages if message.role != "error")
    return sum(sizes) // _CHARACTERS_PER_TOKEN


def cut(messages: list[Message], size: int) -> Cut | None:
    """Return where to cut so that the newest part stays; None if nothing is left to summarise.

    `size` is the model's context, or what is in use where that is unknown. A cut lies before what the user or
    the model has said, never between a call and its result.
    """
    seen = view(messages)
    budget = min(size // _KEPT_PART, _MOST_KEPT)
    keep = messages[-1].seq + 1 if messages else 1
    last = next((each for each in reversed(seen.messages) if each.role != "error"), None)
    size_kept = 0
    for message in reversed(seen.messages):
        size_kept += guess([message])
        # The last question is never summarised.
        asked = message is last and message.role == "user"
        if message.role in {"user", "assistant"} and (size_kept <= budget or asked):
            keep = message.seq
        if size_kept > budget:
            break
    older = [each for each in seen.messages if each.seq < keep and each.role != "error"]
    replaced = ([seen.summary] if seen.summary else []) + older
    return Cut(replaced, keep) if older else None


def carried(older: list[Message]) -> str:
    """Return the lists that every summary ends with: the files read and changed, and loaded skills."""
    read: dict[str, None] = {}
    changed: dict[str, None] = {}
    skills: dict[str, None] = {}
    for message in older:
        if message.role == "summary":
            read |= dict.fromkeys(_listed("read-files", message.body))
            changed |= dict.fromkeys(_listed("changed-files", message.body))
        if message.role == "summary" or message.fields.get("tool") == "skill":
            skills |= dict.fromkeys(re.findall(_SKILL, message.body))
        for call in message.blocks if message.role == "assistant" else ():
            path = str((call.input or {}).get("path") or "") if isinstance(call, Call) else ""
            if path and isinstance(call, Call):
                read |= {path: None} if call.name in _READS else {}
                changed |= {path: None} if call.name in _CHANGES else {}
    parts = [_list("read-files", [path for path in read if path not in changed])]
    parts += [_list("changed-files", list(changed)), *skills]
    return "\n\n".join(part for part in parts if part)


def _list(name: str, paths: list[str]) -> str:
    lines = [f"<{name}>", *(" ".join(path.split("\n")) for path in paths), f"</{name}>"]
    return "\n".join(lines) if paths else ""


def _listed(name: str, body: str) -> list[str]:
    match = re.search(rf"^<{name}>\n(.*?)\n</{name}>$", body, re.DOTALL | re.MULTILINE)
    return match[1].split("\n") if match else []


class Account(NamedTuple):
    """A sum. `cost` is in US dollars; None: unknown, because an answer in it has no price."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0

    def shown(self) -> str:
        """Return the cost for people."""
        return "unknown" if self.cost is None else f"{self.cost:.6f}".rstrip("0").rstrip(".")


def account_fields(account: Account) -> dict[str, str]:
    """Return `account` as fields of a message."""
    tokens = {"tokens_in": str(account.tokens_in), "tokens_out": str(account.tokens_out)}
    return tokens if account.cost is None else {**tokens, "cost": f"{account.cost:.6f}"}


def total(messages: Iterable[Message]) -> Account:
    """Return the sum of all answers in `messages`, those of subagents included."""
    tokens_in = tokens_out = 0
    cost: float | None = 0.0
    for message in messages:
        if "tokens_in" not in message.fields and message.role != "assistant":
            continue
        tokens_in += number(message.fields.get("tokens_in", ""))
        tokens_out += number(message.fields.get("tokens_out", ""))
        spent = amount(message.fields.get("cost", ""))
        cost = None if cost is None or spent is None else cost + spent
    return Account(tokens_in, tokens_out, cost)


def amount(text: str) -> float | None:
    """Parse US dollars; return None for anything else, so that a typing error makes nothing free."""
    try:
        dollars = float(text)
    except ValueError:
        return None
    return dollars if 0 <= dollars < float("inf") else None


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
    seen = view(messages)
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
            replayable = [block.named_for_hosts if isinstance(block, Call) else block for block in blocks]
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
    value = {"speaker": list(speaker), "sha256": _hash(message), "blocks": blocks}
    session.write(f"native/{message.seq:04d}.json", dumps(value).encode())


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
    return digest(message.body.encode("utf-8", "replace"))

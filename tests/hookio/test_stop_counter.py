"""How often an agent was held in a row: counted up, begun anew by progress, and lost without harm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_lib.hookio import facts
from harness_lib.hookio.context import Answer, BlockCounter
from harness_lib.system.place import session_notes


def fields(kept: BlockCounter) -> tuple[str, int, str, bool]:
    return kept.progress, kept.blocks, kept.warning, kept.waited


NOTHING = ("", 0, "", False)
HELD = BlockCounter("p", 3, "told", waited=True)


@pytest.mark.parametrize(
    ("last", "answer", "kept"),
    [
        (BlockCounter(), Answer("block", progress="p"), ("p", 1, "", False)),
        (HELD, Answer("block", progress="p"), ("p", 4, "told", True)),
        (HELD, Answer("keep", progress="p"), ("p", 4, "told", True)),
        # Whoever has got on begins anew, and may be told the same again.
        (HELD, Answer("block", progress="q"), ("q", 1, "", True)),
        (HELD, Answer("keep", progress="q"), ("q", 1, "", True)),
        # Let go for want of patience: not held, but told.
        (HELD, Answer("allow", progress="p", warning="enough"), ("p", 3, "enough", True)),
        (HELD, Answer("allow", warning="halted"), ("p", 0, "halted", True)),
        # What it waits for is no progress.
        (BlockCounter("p", 3, "told"), Answer("allow", waits=True), ("p", 3, "told", True)),
        (BlockCounter(), Answer("allow", waits=True), ("", 0, "", True)),
        # Of what says nothing nothing is kept.
        (HELD, Answer("allow"), NOTHING),
        (HELD, Answer("context", "text"), NOTHING),
    ],
)
def test_what_is_kept(
    tmp_path: Path, last: BlockCounter, answer: Answer, kept: tuple[str, int, str, bool]
) -> None:
    facts.count(str(tmp_path), "me", last, answer)

    assert fields(facts.counter(str(tmp_path), "me")) == kept
    assert fields(facts.counter(str(tmp_path), "other")) == NOTHING


def test_what_was_kept_is_forgotten_when_somebody_comes_back(tmp_path: Path) -> None:
    for who in ("me", "other"):
        facts.count(str(tmp_path), who, BlockCounter(), Answer("block", progress="p"))

    facts.forget(str(tmp_path), "me")

    assert fields(facts.counter(str(tmp_path), "me")) == NOTHING
    assert fields(facts.counter(str(tmp_path), "other")) == ("p", 1, "", False)


@pytest.mark.parametrize(
    ("note", "kept"),
    [
        (b"", NOTHING),
        (b"{", NOTHING),
        (b"[" * 60_000, NOTHING),
        (b"[]", NOTHING),
        (b"{}", NOTHING),
        (json.dumps({"progress": 1, "blocks": "2", "told": 3, "waited": 1}).encode(), ("1", 0, "3", False)),
        (json.dumps({"blocks": True, "waited": True}).encode(), ("", 0, "", True)),
        (json.dumps({"progress": "p", "blocks": 2, "told": "t"}).encode(), ("p", 2, "t", False)),
    ],
)
def test_any_note_is_read(tmp_path: Path, note: bytes, kept: tuple[str, int, str, bool]) -> None:
    session_notes.write(session_notes.path(str(tmp_path), "stops", "me"), note)

    assert fields(facts.counter(str(tmp_path), "me")) == kept

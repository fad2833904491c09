"""An event of a run is the same after its way through a pipe, and its words on the wire stay as they are."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from harness_lib.rules import events
from harness_lib.rules.events import (
    Away,
    Claimed,
    Ended,
    Event,
    Gone,
    Idle,
    News,
    Notice,
    NoticeKind,
    Queued,
    Ready,
    Said,
    Started,
    Stepped,
    Stuck,
    Unstarted,
)

ENDED: dict[str, object] = {
    "task": "t1",
    "status": "completed",
    "message": "",
    "commit": "c",
    "rescue": None,
    "files": 2,
    "touched": [],
    "logs": "",
}
ALL: list[tuple[str, News, dict[str, object]]] = [
    ("started", Started(), {}),
    ("ready", Ready(), {}),
    (
        "claimed",
        Claimed("t1", "One", 2, "2026-11-29T12:00:00Z"),
        {"task": "t1", "title": "One", "attempt": 2, "claimed_at": "2026-11-29T12:00:00Z"},
    ),
    ("step", Stepped("limit", 9.5, "x"), {"step": "limit", "until": 9.5, "message": "x"}),
    ("said", Said("hm", 70, 0.5), {"last": "hm", "tokens": 70, "cost": 0.5, "session": ""}),
    ("idle", Idle("waiting"), {"why": "waiting"}),
    ("away", Away("no database"), {"message": "no database"}),
    ("queued", Queued("t1"), {"task": "t1"}),
    (
        "ended",
        Ended("t1", "completed", commit="c", warnings=("w",), files=2),
        {**ENDED, "warnings": ["w"]},
    ),
    (
        "stuck",
        Stuck("t1", "CONFIG", "see to it"),
        {"task": "t1", "kind": "CONFIG", "message": "see to it", "hint": ""},
    ),
    ("gone", Gone(-9, "killed"), {"code": -9, "message": "killed"}),
    ("unstarted", Unstarted(1, "no filelock"), {"code": 1, "message": "no filelock"}),
]
NOTICES = [(kind, Notice(kind, "told"), {"message": "told"}) for kind in get_args(NoticeKind)]


@pytest.mark.parametrize(("kind", "news", "written"), [*ALL, *NOTICES])
def test_what_is_written_is_read_again(kind: str, news: News, written: dict[str, object]) -> None:
    event = Event(None if isinstance(news, Notice) else 3, 1.5, news)
    on_the_wire = json.loads(json.dumps(events.write(event)))
    assert on_the_wire == {"event": kind, "worker": event.worker, "at": 1.5, **written}
    assert events.read(on_the_wire) == event


def test_every_kind_is_among_them() -> None:
    assert {type(news) for _, news, _ in ALL} == {*get_args(News), Unstarted} - {Notice}


@pytest.mark.parametrize(
    "written",
    [{}, {"event": "ready", "worker": 1}, {"event": "said", "worker": 1, "at": 0.0, "lasst": "x"}],
)
def test_what_is_no_event_is_said_so(written: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError)):
        events.read(written)

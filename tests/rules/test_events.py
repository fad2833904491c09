"""An event of a run is the same after its way through a pipe, and its words on the wire stay as they are."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from harness_lib.rules import events
from harness_lib.rules.events import (
    Claimed,
    Ended,
    Event,
    Gone,
    Idle,
    News,
    Notice,
    NoticeKind,
    Ready,
    Said,
    Started,
    Stepped,
    Stuck,
    Unstarted,
)

ALL: list[tuple[News, dict[str, object]]] = [
    (Started(), {"event": "started"}),
    (Ready(), {"event": "ready"}),
    (Claimed("t1", "One", 2), {"event": "claimed", "task": "t1", "title": "One", "attempt": 2}),
    (
        Stepped("limit", 9.5, "used up"),
        {"event": "step", "step": "limit", "until": 9.5, "message": "used up"},
    ),
    (Said("hm", 70, 0.5), {"event": "said", "last": "hm", "tokens": 70, "cost": 0.5}),
    (Idle("waiting"), {"event": "idle", "why": "waiting"}),
    (
        Ended("t1", "completed", commit="c", warnings=("w",), files=2),
        {
            "event": "ended",
            "task": "t1",
            "status": "completed",
            "message": "",
            "commit": "c",
            "rescue": None,
            "warnings": ["w"],
            "files": 2,
        },
    ),
    (
        Stuck("t1", "CONFIG", "see to it"),
        {"event": "stuck", "task": "t1", "kind": "CONFIG", "message": "see to it", "hint": ""},
    ),
    (Gone(-9, "killed"), {"event": "gone", "code": -9, "message": "killed"}),
    (Unstarted(1, "no filelock"), {"event": "unstarted", "code": 1, "message": "no filelock"}),
    *((Notice(kind, "told"), {"event": kind, "message": "told"}) for kind in get_args(NoticeKind)),
]


@pytest.mark.parametrize(("news", "written"), ALL, ids=[str(each["event"]) for _, each in ALL])
def test_what_is_written_is_read_again(news: News, written: dict[str, object]) -> None:
    event = Event(None if isinstance(news, Notice) else 3, 1.5, news)
    on_the_wire = json.loads(json.dumps(events.write(event)))
    assert on_the_wire == {"worker": event.worker, "at": 1.5, **written}
    assert events.read(on_the_wire) == event


def test_every_kind_is_among_them() -> None:
    assert {type(news) for news, _ in ALL} == {*get_args(News), Unstarted}


@pytest.mark.parametrize(
    "written",
    [{}, {"event": "ready", "worker": 1}, {"event": "said", "worker": 1, "at": 0.0, "lasst": "x"}],
)
def test_what_is_no_event_is_said_so(written: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError)):
        events.read(written)

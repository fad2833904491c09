"""A record of a run is read as far as it was written, and whatever else stands in it is skipped."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from harness_lib.rules import events, run_records
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
from harness_lib.rules.run_records import Closed, Opened, Ran

OPENED = Opened("run-1", 100.0, 7, "1", "boot", "claude", 2, "refs/heads/main", "abc")
TOLD: list[tuple[int | None, News]] = [
    (1, Claimed("task-001", "One", 1)),
    (2, Claimed("task-002", "Two", 3)),
    (1, Stepped("works")),
    (1, Said("hm", 70, 0.5, "conversation-1")),
    (2, Stepped("works")),
    (2, Said("so", 30, 0.25)),
    (None, Notice("warning", "a word")),
    (1, Stepped("checks")),
    (1, Ended("task-001", "completed", "", "c1", None, ("w",), 2, ("test_x.py",), "logs/task-001")),
    (1, Claimed("task-003", "Three", 1)),
    (2, Gone(-9, "killed")),
    (1, Idle("closed")),
    (1, Stuck("task-003", "CONFIG", "see to it")),
]
RECORDS: list[Opened | Closed | Event] = [
    OPENED,
    *(Event(who, 101.0 + n, news) for n, (who, news) in enumerate(TOLD)),
    Closed(120.0, "stuck", False),
]
DOCUMENTS = [json.loads(json.dumps(run_records.write(each))) for each in RECORDS]


def ran(documents: list[Any]) -> Ran:
    found = run_records.fold(documents)
    assert found is not None
    return found


def told(*events: tuple[int | None, News]) -> Ran:
    """Return a run with these events, a second after each other, that has been closed."""
    records: list[Opened | Closed | Event] = [OPENED, Closed(120.0, "stuck", False)]
    records += [Event(who, 101.0 + n, news) for n, (who, news) in enumerate(events)]
    return ran([run_records.write(each) for each in records])


def test_the_events_of_a_run_become_its_attempts() -> None:
    found = ran(DOCUMENTS)

    one, two, three = found.tried
    assert (one.task, one.number, one.worker, one.began, one.ended) == ("task-001", 1, 1, 101.0, 109.0)
    assert (one.status, one.commit, one.files, one.cost, one.tokens) == ("completed", "c1", 2, 0.5, 70)
    assert (one.touched, one.logs, one.session) == (("test_x.py",), "logs/task-001", "conversation-1")
    assert one.steps == (("works", 103.0), ("checks", 108.0))
    assert (two.status, two.ended, two.cost) == (None, 111.0, 0.25)
    assert (three.status, three.ended) == (None, 112.0)
    assert [told.kind for told in found.told] == ["warning", "stuck"]
    assert (found.closed, found.killed, found.last) == (Closed(120.0, "stuck", False), False, 120.0)


def test_an_attempt_whose_work_waits_ends_with_its_merge() -> None:
    found = told(
        (1, Claimed("task-001", "One", 1)),
        (1, Queued("task-001")),
        (1, Claimed("task-002", "Two", 1)),
        (1, Queued("task-002")),
        # It is no longer its worker's.
        (1, Said("later", 70, 0.5)),
        (0, Ended("task-001", "completed", commit="c1")),
    )

    assert [(each.task, each.worker, each.status, each.ended, each.cost) for each in found.tried] == [
        ("task-001", 1, "completed", 106.0, 0.0),
        ("task-002", 1, None, 120.0, 0.0),
    ]


def test_work_of_a_dead_worker_that_is_handed_over_is_one_attempt() -> None:
    """The run tells it, or the next worker of that number, which has begun nothing."""
    found = told(
        (1, Claimed("task-001", "One", 1)),
        (2, Claimed("task-002", "Two", 1)),
        (1, Gone(-9, "killed")),
        (2, Gone(-9, "killed")),
        (None, Queued("task-001")),
        (2, Queued("task-002")),
        (0, Ended("task-001", "completed", commit="c1")),
        (0, Ended("task-002", "completed", commit="c2")),
    )

    assert [(each.task, each.worker, each.status, each.ended) for each in found.tried] == [
        ("task-001", 1, "completed", 107.0),
        ("task-002", 2, "completed", 108.0),
    ]


def test_a_run_that_was_killed_has_no_end() -> None:
    found = ran(DOCUMENTS[:6])

    assert found.killed
    assert [each.ended for each in found.tried] == [105.0, 105.0]
    alive = run_records.cut_off(found, alive=True)
    assert not alive.killed
    assert [each.ended for each in alive.tried] == [None, None]


def test_what_is_no_event_is_skipped() -> None:
    """A torn line, other JSON, a wrong type and an event of a newer harness change nothing but themselves."""
    odd = [{**each, key: [{}]} for each in DOCUMENTS for key in each if key != "until"]
    odd += [{**each, "at": "now"} for each in DOCUMENTS]
    newer = [{**each, "mood": "good"} for each in DOCUMENTS]
    documents: list[Any] = [None, 3, {}, {"a": 1}, *odd, *DOCUMENTS, *odd, *newer]

    assert ran(documents) == ran(DOCUMENTS)


def test_long_texts_and_lists_are_cut() -> None:
    ended = Ended("task-001", "failed", "x" * 5000, warnings=("y" * 5000,) * 100)

    written = run_records.write(Event(1, 1.0, ended))

    assert len(json.dumps(written)) < 60_000
    assert len(written["message"]) == run_records.LONGEST_TEXT


def _run(at: float, *, complete: bool = False) -> Ran:
    return Ran(OPENED._replace(at=at, run=f"run-{99 - at}"), Closed(at + 5, "done", complete), at + 5, ())


def test_the_runs_in_question_are_those_since_the_list_was_complete() -> None:
    first, second, third, fourth = _run(0), _run(10, complete=True), _run(20), _run(30)

    assert run_records.window([fourth, first, second, third], None) == ((third, fourth), 15.0)
    assert run_records.window([first, second], None) == ((first, second), 0.0)
    assert run_records.window([first, second, _run(20, complete=True)], None)[1] == 15.0
    assert run_records.window([first, second, third], 12.0) == ((second, third), 12.0)
    assert run_records.window([], None) == ((), 0.0)


# -- an event is the same after its way through a pipe, and its words on the wire stay as they are


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

"""What a hook reads instead of the list, and when it must not."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest

from harness_lib.state import summary
from harness_lib.state.store import Store
from harness_lib.system.place.roots import Root
from harness_lib.task import Checkpoint, Session, SessionConfig, State, Task

NOW = datetime(2025, 7, 1, tzinfo=timezone.utc)


def build(*tasks: Task, **fields: Any) -> summary.Summary:
    return summary.build(State(tasks=tasks, **fields), NOW)


def test_the_last_failure_is_the_newest_of_tasks_still_open() -> None:
    early, late = "2025-07-01T00:00:00Z", "2025-07-02T00:00:00Z"
    digest = build(
        Task("a", status="failed", error_log=("[CONFIG] no time",)),
        Task("b", status="failed", error_log=("[TIMEOUT] old", "[TEST_FAIL] new"), failed_at=early),
        Task("c", status="completed", error_log=("[TIMEOUT] gone",), failed_at=late),
    )

    assert digest["last_failure"] == {"id": "b", "text": "[TEST_FAIL] new"}
    # Where none has a time it is the first.
    none = build(Task("a", error_log=("one",)), Task("b", error_log=("two",)))
    assert none["last_failure"] == {"id": "a", "text": "one"}
    done = build(Task("d", status="completed", error_log=("old",)))
    told = [done["last_failure"], done["next"], done["work_remains"], done["stop"]]
    assert told == [None, None, False, "done"]


def test_a_hundred_of_a_kind_are_named_and_all_are_counted() -> None:
    kinds = {
        "in_progress": [Task(f"w{n}", status="in_progress") for n in range(101)],
        "unproven": [Task(f"u{n}", status="completed", unproven=True) for n in range(101)],
        "unreachable": [Task(f"d{n}", depends_on=("f",)) for n in range(101)],
    }
    failed = Task("f", status="failed", attempts=3)

    digest: Any = build(failed, *(task for tasks in kinds.values() for task in tasks))

    for kind, tasks in kinds.items():
        names = [each if isinstance(each, str) else each["id"] for each in digest[kind]]
        assert names == [task.id for task in tasks[:100]]
    assert (digest["counts"]["unreachable"], digest["counts"]["in_progress"]) == (101, 101)


def test_it_is_written_without_blanks_for_nobody_reads_it_often_enough(store: Store, root: Root) -> None:
    text = root.summary.read_text("ascii")

    assert text == json.dumps(json.loads(text), separators=(",", ":"))
    assert summary.last(str(root.summary)) == summary.read(root)
    with store.transaction() as tx:
        tx.state = tx.state._replace(session_count=9)
    root.state.unlink()
    # Whatever has become of the list, this was the last that we wrote.
    last = summary.last(str(root.summary))
    assert last is not None
    assert last["session_count"] == 9
    assert summary.last(str(root.path / "none")) is None


def replaced(root: Root) -> None:
    other = root.path / "other"
    other.write_bytes(root.state.read_bytes())
    other.rename(root.state)


DAMAGES: dict[str, Callable[[Root], object]] = {
    "edited": lambda root: root.state.write_bytes(root.state.read_bytes().replace(b"P1", b"P0")),
    "replaced": replaced,
    "no list": lambda root: root.state.unlink(),
    "no summary": lambda root: root.summary.unlink(),
    "torn": lambda root: root.summary.write_bytes(root.summary.read_bytes()[:40]),
    "of another format": lambda root: root.summary.write_text(
        json.dumps({**json.loads(root.summary.read_bytes()), "format": 0})
    ),
    "a list": lambda root: root.summary.write_bytes(b"[]"),
    "null": lambda root: root.summary.write_bytes(b"null"),
    "no text": lambda root: root.summary.write_bytes(b"\xff"),
    "deep": lambda root: root.summary.write_bytes(b"[" * 100_000),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.usefixtures("store")
def test_it_is_not_believed_unless_it_fits(root: Root, damage: str) -> None:
    assert summary.read(root) is not None

    DAMAGES[damage](root)

    assert summary.read(root) is None


def test_the_whole_of_it() -> None:
    working = Task(
        "w",
        "W" * 301,
        status="in_progress",
        attempts=1,
        checkpoints=(Checkpoint(1, 2),),
        claimed_by="me",
        claimed_at="2025-07-01T00:00:00Z",
        lease_expires_at="2025-07-01T00:30:00Z",
        worktree="/p/w",
        halt="H" * 301,
    )
    tasks = (
        Task("a", "A" * 301),
        working,
        Task("b", depends_on=("f",)),
        Task("d", status="completed"),
        Task("u", "U" * 301, status="completed", unproven=True),
        Task(
            "f", status="failed", attempts=3, error_log=("one", "E" * 301), failed_at="2025-07-01T00:00:00Z"
        ),
    )

    short = build(Task("a", "A" * 300, status="in_progress", halt="H" * 300))["in_progress"][0]
    assert (short["title"], short["halt"]) == ("A" * 300, "H" * 300)
    assert build()["sessions"] is None
    digest = build(
        *tasks,
        sessions=(Session(2, "me", "host"),),
        session_count=2,
        session_config=SessionConfig("concurrent", max_tasks_per_session=7, max_sessions=2),
        attempts_reset=5,
    )

    assert digest == {
        "format": summary.FORMAT,
        "stamp": [],
        "ahead": 0.0,
        "version": 2,
        "mode": "concurrent",
        "counts": {
            "total": 6,
            "completed": 1,
            "failed": 1,
            "pending": 3,
            "in_progress": 1,
            "blocked": 1,
            "retryable": 0,
            "unreachable": 1,
            "attempts": 9,
            "checkpoints": 1,
        },
        "work_remains": True,
        "stop": None,
        "next": {"id": "a", "title": "A" * 300},
        "in_progress": [
            {
                "id": "w",
                "title": "W" * 300,
                "attempts": 1,
                "checkpoints": 1,
                "claimed_by": "me",
                "claimed_at": "2025-07-01T00:00:00Z",
                "lease_expires_at": "2025-07-01T00:30:00Z",
                "worktree": "/p/w",
                "halt": "H" * 300,
            }
        ],
        "unreachable": ["b"],
        "unproven": [{"id": "u", "title": "U" * 300}],
        "red": [],
        "rechecks": "0",
        "sessions": [
            {
                "number": 2,
                "worker": "me",
                "host": "host",
                "boot_id": None,
                "pid": None,
                "pid_started": None,
                "agent_session_id": None,
                "started_at": None,
                "finished_attempts": 0,
                "halt": None,
            }
        ],
        "session_count": 2,
        "sessions_spent": True,
        "max_tasks_per_session": 7,
        "last_failure": {"id": "f", "text": "E" * 300},
    }

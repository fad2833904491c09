"""What a hook reads instead of the list, and when it must not."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest

from harness_lib.state import summary
from harness_lib.state.filestore.store import Store
from harness_lib.state.summary_shape import Summary
from harness_lib.system.place.roots import Root
from harness_lib.task import Checkpoint, Session, SessionConfig, State, Task

NOW = datetime(2025, 7, 1, tzinfo=timezone.utc)


def build(*tasks: Task, **fields: Any) -> Summary:
    return summary.build(State(tasks=tasks, **fields), NOW, [1, 2, 3, 4])


def test_counts_and_the_next_task() -> None:
    digest = build(
        Task("task-1", status="completed"),
        Task("task-2", "Two", depends_on=("task-1",)),
        Task("task-3", depends_on=("task-2",)),
        Task("task-4", status="failed", attempts=1),
        Task("task-5", status="failed", attempts=3),
    )

    assert digest["next"] == {"id": "task-2", "title": "Two"}
    counts = digest["counts"]
    assert (counts["total"], counts["retryable"]) == (5, 1)
    assert digest["work_remains"] is True
    assert digest["stop"] is None


def test_who_works_on_what_and_until_when() -> None:
    task = Task(
        "t", status="in_progress", claimed_by="w", lease_expires_at="2025-07-01T00:30:00Z", halt="CONFIG: x"
    )

    working = build(task)["in_progress"]

    assert [(each["id"], each["claimed_by"], each["lease_expires_at"], each["halt"]) for each in working] == [
        ("t", "w", "2025-07-01T00:30:00Z", "CONFIG: x")
    ]


def test_mode_and_sessions_stand_as_in_the_list() -> None:
    digest = build(sessions=(Session(3, "w", "h", pid=7),), session_config=SessionConfig("concurrent"))

    assert [(each["number"], each["pid"]) for each in digest["sessions"] or ()] == [(3, 7)]
    assert digest["mode"] == "concurrent"
    assert build()["sessions"] is None


def test_tasks_that_can_never_run_are_named_before_anybody_recorded_that() -> None:
    digest = build(Task("a", depends_on=("b",)), Task("b", depends_on=("a",)))

    assert sorted(digest["doomed"]) == ["a", "b"]
    assert digest["counts"]["doomed"] == 2


def test_the_last_failure_is_the_newest_of_tasks_still_open() -> None:
    digest = build(
        Task("a", status="failed", error_log=("[CONFIG] no time",)),
        Task(
            "b",
            status="failed",
            error_log=("[TIMEOUT] old", "[TEST_FAIL] new"),
            failed_at="2025-07-01T00:00:00Z",
        ),
        Task("c", status="completed", error_log=("[TIMEOUT] gone",), failed_at="2025-07-02T00:00:00Z"),
    )

    assert digest["last_failure"] == {"id": "b", "text": "[TEST_FAIL] new"}


def test_it_stays_small_however_long_the_list_and_its_texts_are() -> None:
    long = "x" * 1000
    tasks = [Task(f"task-{n}", long, status="in_progress", halt=long, error_log=(long,)) for n in range(3000)]

    assert len(json.dumps(build(*tasks))) < 200_000


def test_a_hundred_of_a_kind_are_named_and_all_are_counted() -> None:
    kinds = {
        "in_progress": [Task(f"w{n}", status="in_progress") for n in range(101)],
        "unproven": [Task(f"u{n}", status="completed", unproven=True) for n in range(101)],
        "doomed": [Task(f"d{n}", depends_on=("f",)) for n in range(101)],
    }
    failed = Task("f", status="failed", attempts=3)

    digest: Any = build(failed, *(task for tasks in kinds.values() for task in tasks))

    for kind, tasks in kinds.items():
        names = [each if isinstance(each, str) else each["id"] for each in digest[kind]]
        assert names == [task.id for task in tasks[:100]]
    assert (digest["counts"]["doomed"], digest["counts"]["in_progress"]) == (101, 101)


def test_without_a_failure_and_work_there_is_none_to_tell_of() -> None:
    digest = build(Task("d", status="completed", error_log=("old",)))

    assert (digest["last_failure"], digest["next"], digest["work_remains"], digest["stop"]) == (
        None, None, False, "done"
    )  # fmt: skip


def test_a_failure_without_a_time_is_the_last_where_none_has_one() -> None:
    digest = build(Task("a", error_log=("one",)), Task("b", error_log=("two",)))

    assert digest["last_failure"] == {"id": "a", "text": "one"}


def test_what_is_short_is_told_whole() -> None:
    digest = build(Task("a", "A" * 300, status="in_progress", halt="H" * 300))

    assert (digest["in_progress"][0]["title"], digest["in_progress"][0]["halt"]) == ("A" * 300, "H" * 300)


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


@pytest.mark.parametrize("damage", ["edited", "replaced", "missing summary", "torn summary", "other format"])
@pytest.mark.usefixtures("store")
def test_it_is_not_believed_unless_it_fits(root: Root, damage: str) -> None:
    assert summary.read(root) is not None
    if damage == "edited":
        root.state.write_bytes(root.state.read_bytes().replace(b"P1", b"P0"))
    elif damage == "replaced":
        other = root.path / "other"
        other.write_bytes(root.state.read_bytes())
        other.rename(root.state)
    elif damage == "missing summary":
        root.summary.unlink()
    elif damage == "torn summary":
        root.summary.write_bytes(root.summary.read_bytes()[:40])
    else:
        root.summary.write_text(json.dumps({**json.loads(root.summary.read_bytes()), "format": 0}), "utf-8")

    assert summary.read(root) is None


@pytest.mark.parametrize("data", [b"[]", b"null", b"\xff", b"[" * 100_000])
@pytest.mark.usefixtures("store")
def test_nonsense_in_its_place_is_no_summary(root: Root, data: bytes) -> None:
    root.summary.write_bytes(data)

    assert summary.read(root) is None


@pytest.mark.usefixtures("store")
def test_without_a_list_there_is_no_summary(root: Root) -> None:
    root.state.unlink()

    assert summary.read(root) is None


def test_every_change_renews_it(store: Store, root: Root) -> None:
    with store.transaction() as tx:
        tx.state = tx.state._replace(tasks=())

    digest = summary.read(root)
    assert digest is not None
    assert (digest["counts"]["total"], digest["stop"]) == (0, "done")


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

    digest = build(
        *tasks,
        sessions=(Session(2, "me", "host"),),
        session_count=2,
        session_config=SessionConfig("concurrent", max_tasks_per_session=7, max_sessions=2),
        attempts_reset=5,
    )

    assert digest == {
        "format": summary.FORMAT,
        "stamp": [1, 2, 3, 4],
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
            "doomed": 1,
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
        "doomed": ["b"],
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

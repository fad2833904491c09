"""The files of a machine follow the list in the database, also what other machines did; nobody obeys them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_lib.state import summary
from harness_lib.state.pgstore import mirror, setup
from harness_lib.state.pgstore.store import PgStore, opened
from harness_lib.system import fs
from harness_lib.system.clock import SYSTEM
from harness_lib.task import Task
from tests.state.pgstore.machines import Shared


def log(store: PgStore, text: str) -> None:
    with store.transaction() as tx:
        tx.log("WARN", text, 0)


def texts(store: PgStore) -> list[str]:
    """Return the messages in the file of the log."""
    return [
        line.partition("] WARN ")[2] for line in store.log_file.read_text().splitlines() if "WARN" in line
    ]


def cache(store: PgStore) -> summary.Summary:
    found = summary.read(store.root)
    assert found is not None
    return found


def listed(store: PgStore) -> list[str]:
    return [task["id"] for task in json.loads(store.root.state.read_text())["tasks"]]


def test_they_follow_at_each_look_and_each_change(shared: Shared) -> None:
    one, two = shared.with_tasks(), shared.machine("second")
    log(one, "by the first")
    two.ask()
    assert listed(two) == ["task-001", "task-002"]
    assert texts(two) == ["by the first"]
    with one.transaction() as tx:
        tx.add([Task("task-003", "More")])
        tx.log("WARN", "by the first again", 0)
    log(two, "by the second")
    assert listed(two) == ["task-001", "task-002", "task-003"]
    assert texts(two) == ["by the first", "by the first again", "by the second"]
    assert cache(two)["counts"]["pending"] == 3
    assert one.log_tail() == two.log_tail()


def test_hooks_find_by_how_much_the_clock_of_the_database_is_ahead(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda real=time.time: real() - 3600)
    assert 3500 < cache(shared.with_tasks())["ahead"] < 3700


def test_processes_of_one_machine_write_each_line_once_and_never_go_back(shared: Shared) -> None:
    """A worker of a run has the list of hours ago in its memory."""
    one = shared.with_tasks()
    other = opened(one.root, SYSTEM)
    other.ask()
    expected = []
    for number in range(6):
        log((one, other)[number % 2], f"line {number}")
        expected.append(f"line {number}")
    one.ask()
    other.ask()
    assert texts(one) == expected
    earlier = one.look()
    with other.transaction() as tx:
        tx.add([Task("task-003", "More")])
    one.mirror.follow(earlier)
    assert listed(one) == ["task-001", "task-002", "task-003"]


def write_summary_of_another_harness(store: PgStore) -> None:
    """Harness 0.1.0, which knows no databases, takes the file for the list."""
    store.root.summary.write_text(json.dumps({"format": 6}))


def in_place(store: PgStore, text: str) -> None:
    store.root.state.write_text(text)


def by_an_older_harness(store: PgStore, text: str) -> None:
    fs.write(store.root.state, text.encode())
    write_summary_of_another_harness(store)


def without_a_summary(store: PgStore, text: str) -> None:
    fs.write(store.root.state, text.encode())
    store.root.summary.unlink()


@pytest.mark.parametrize("edit", [in_place, by_an_older_harness, without_a_summary])
@pytest.mark.parametrize("moves_back", [False, True])
def test_an_edit_is_kept_beside_them_and_not_applied(
    shared: Shared, edit: Callable[[PgStore, str], None], moves_back: bool
) -> None:
    """Also when the list moves back to the file."""
    store = shared.with_tasks()
    edited = store.root.state.read_text().replace("Task 1", "Edited")
    edit(store, edited)
    if moves_back:
        setup.to_file(store, SYSTEM.now())
    else:
        answers = store.ask()
        assert [task.title for task in answers.search()] == ["Task 1", "Task 2"]
        (warning,) = answers.warnings
        assert "the edit was not applied" in warning
        assert store.ask().warnings == ()
    (kept,) = Path(store.root.path).glob("harness-tasks.json.edited-*")
    assert kept.read_text() == edited
    assert "Edited" not in store.root.state.read_text()


def test_a_list_that_an_older_harness_has_only_read_was_not_edited(shared: Shared) -> None:
    store = shared.with_tasks()
    write_summary_of_another_harness(store)
    assert store.ask().warnings == ()
    log(store, "a change")
    assert not list(Path(store.root.path).glob("harness-tasks.json.edited-*"))


def test_the_file_of_a_long_list_says_where_the_list_is(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would make each change slow; hooks decide as if all of it were there."""
    store = shared.with_tasks()
    whole = cache(store)
    monkeypatch.setattr(mirror, "MOST_TASKS", 1)
    log(store, "one more line")
    short = cache(store)
    document = json.loads(store.root.state.read_text())
    assert document["tasks"] == []
    assert shared.name in document["mirror_of"]
    for name in ("counts", "work_remains", "stop", "unreachable"):
        assert short[name] == whole[name]
    assert [task.id for task in store.ask().search()] == ["task-001", "task-002"]
    log(store, "and another")
    assert cache(store)["rechecks"] != short["rechecks"]
    with store.transaction() as tx:
        for task in tx.search():
            tx.replace(task._replace(halt="ENV_SETUP: no make"))
    assert cache(store)["next"] is None


def test_files_that_are_gone_are_made_again(shared: Shared) -> None:
    store = shared.with_tasks()
    store.root.state.unlink()
    store.root.summary.unlink()
    store.ask()
    assert listed(store) == ["task-001", "task-002"]
    assert summary.read(store.root) is not None

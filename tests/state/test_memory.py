"""A list that this process has read before is not decoded again; what others changed is seen at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_lib.state import codec, load, reading
from harness_lib.state.store import Store
from harness_lib.system.place.roots import Root
from harness_lib.task import State, Task

if TYPE_CHECKING:
    import pytest


def test_what_did_not_change_stays_the_same_object(store: Store) -> None:
    before = store.whole()

    with store.transaction() as tx:
        tx.replace(tx.state.tasks[0]._replace(title="New"))

    after = store.whole()
    assert after.tasks[0].title == "New"
    assert after.tasks[1] is before.tasks[1]
    assert after.tasks[2] is before.tasks[2]


def test_what_this_process_has_read_or_written_is_not_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    content = load._content

    def reading(path: Path) -> Any:
        opened.append(path)
        return content(path)

    monkeypatch.setattr(load, "_content", reading)
    for title in ("One", "Two"):
        with store.transaction() as tx:
            tx.replace(tx.state.tasks[0]._replace(title=title))
        assert store.whole().tasks[0].title == title

    assert opened == []


def test_of_a_change_only_the_changed_task_is_written_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.ask()
    encoded: list[Task] = []
    encode = reading.task_text

    def encoding(task: Task) -> str:
        encoded.append(task)
        return encode(task)

    monkeypatch.setattr(reading, "task_text", encoding)
    with store.transaction() as tx:
        tx.replace(tx.state.tasks[1]._replace(title="New"))
    with store.transaction() as tx:
        tx.remove(tx.state.tasks[-1].id)

    assert [task.title for task in encoded] == ["New"]
    assert store.whole() == codec.decode(codec.parse(store.list_file.read_bytes()))


def test_two_lists_are_not_mixed_up(store: Store, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Store(Root(tmp_path.resolve() / "other"), timeout=10)
    other.create(State(tasks=(Task("task-001", "Other"),), sessions=()))

    titles = [[task.title for task in each.whole().tasks] for each in (store, other, store)]

    assert titles == [["First", "Second", ""], ["Other"], ["First", "Second", ""]]

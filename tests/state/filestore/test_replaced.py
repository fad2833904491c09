"""Another program, such as git, replaces the list by an older one: that is said, and nothing is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness_lib.state.store import Store
from harness_lib.system.place.roots import Root
from harness_lib.task import Session, Task
from tests.state.clock import NOON

NAME = "harness-tasks.json"
STAMP = "2025-07-01T10:00:00Z"


@pytest.fixture
def committed(store: Store, root: Root, tmp_path: Path) -> Path:
    """Return the list as git has it: then a task was completed, one claimed, one added, a session begun."""
    kept = tmp_path / "committed.json"
    shutil.copyfile(root.state, kept)
    with store.transaction() as tx:
        done = tx.state.tasks[0]._replace(status="completed", completed_at=STAMP)
        tx.replace(done)
        tx.replace(tx.state.tasks[1]._replace(status="in_progress"))
        tx.add((Task("task-004", "Fourth"),))
        tx.add_session(Session(5, "worker", STAMP))
    return kept


LACKING = (
    "(gone: task-004; no longer completed: task-001; no longer in progress: task-002;"
    " no longer open: session 5)"
)


def old_lists(root: Root) -> list[Path]:
    return sorted(root.path.glob(f"{NAME}.old-*"))


def test_one_who_looks_is_told_what_it_lacks_and_how_it_comes_back(
    store: Store, root: Root, committed: Path
) -> None:
    shutil.copyfile(committed, root.state)

    (warning,) = store.ask().warnings

    assert LACKING in warning
    assert warning.endswith("harness check --restore")
    assert not old_lists(root)


def test_another_list_with_the_same_ids_is_another_list(store: Store, root: Root) -> None:
    """A merge may bring one."""
    text = root.state.read_text().replace(f'"created": "{NOON}"', f'"created": "{STAMP}"')
    root.state.write_text(text)

    (warning,) = store.ask().warnings

    assert f"(another list, made: {STAMP})" in warning


def test_while_a_change_is_under_way_or_after_it_nobody_is_told(
    store: Store, root: Root, committed: Path
) -> None:
    """The writer replaces the list first, and its copies after that."""
    shutil.copyfile(committed, root.state)

    root.lock_file.write_text("pid 1 on here since now\n")

    assert store.ask().warnings == ()


def test_the_first_change_keeps_the_list_as_it_was_and_says_so_once(
    store: Store, root: Root, committed: Path
) -> None:
    before = root.state.read_bytes()
    shutil.copyfile(committed, root.state)

    with store.transaction() as first:
        pass
    with store.transaction() as second:
        second.replace(second.state.tasks[1]._replace(title="New"))
    with store.transaction() as third:
        third.replace(third.state.tasks[1]._replace(title="Newer"))

    (kept,) = old_lists(root)
    assert kept.read_bytes() == before
    assert first.warnings[1:] == []
    assert [LACKING in text and kept.name in text for text in first.warnings] == [True]
    assert second.warnings == third.warnings == []
    assert sum(kept.name in line and "WARN" in line for line in store.log_tail()) == 1
    assert store.ask().warnings == ()
    assert [task.title for task in store.whole().tasks] == ["First", "Newer", ""]


def test_what_the_user_puts_back_is_the_last_list_and_the_other_one_is_kept(
    store: Store, root: Root, committed: Path
) -> None:
    last = store.whole()
    shutil.copyfile(committed, root.state)
    examined = store.examine()
    assert examined.questions is not None
    assert examined.questions.warnings == store.ask().warnings

    store.restore()

    assert store.whole() == last
    (other,) = root.path.glob(f"{NAME}.broken-*")
    assert other.read_bytes() == committed.read_bytes()


def test_an_edit_that_takes_nothing_away_is_no_replacement(store: Store, root: Root) -> None:
    text = root.state.read_text().replace('"Second"', '"Mine!!"')
    root.state.write_text(text)

    assert store.ask().warnings == ()
    with store.transaction() as tx:
        pass
    assert tx.warnings == []
    assert not old_lists(root)

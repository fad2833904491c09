"""What is said of a change of the list, to whoever makes it and in the log, to the letter."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_lib.errors import AwayError, EnvSetupError
from harness_lib.rules.selection import UNPROVEN
from harness_lib.state import journal
from harness_lib.state.codec import ContractError
from harness_lib.state.store import Store
from harness_lib.system import fs
from harness_lib.system.place.roots import Root
from harness_lib.task import Session, State, Task
from tests.state.clock import NOON
from tests.state.documents import error
from tests.state.filestore.changes import rename

NAME = "harness-tasks.json"
LONG, LOST = Task("a", "x" * 1001), Task("a", depends_on=("x",))
MINUS = Session(-1, "w", "h")


def change(store: Store) -> list[str]:
    return rename(store, "New")


def test_what_is_made_keeps_the_contract(root: Root) -> None:
    with pytest.raises(ContractError, match=r"tasks\[0\]\.title"):
        Store(root).create(State(tasks=(LONG,)))

    assert not root.state.exists()


BELOW = "is -1, must be at least 0"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tasks": (LONG,)}, "tasks[0].title: has 1001 characters, at most 1000 are allowed"),
        ({"tasks": (Task("a"), Task("a"))}, "tasks[1].id: is 'a', which another task has already"),
        ({"tasks": (LOST,)}, "tasks[0].depends_on[0]: is 'x', but no task has this id"),
        ({"session_count": -1}, f"session_count: {BELOW}"),
        ({"sessions": (MINUS,)}, f"sessions[0].number: {BELOW}"),
        (
            {"sessions": (MINUS,), "session_count": -1},
            f"session_count: {BELOW}\nthe change would break {NAME}: sessions[0].number: {BELOW}",
        ),
        ({"proposals": (Task("a", attempts=-1),)}, f"proposals[0].attempts: {BELOW}"),
    ],
)
def test_a_change_that_would_break_the_contract_is_named_and_nothing_is_written(
    store: Store, root: Root, change: dict[str, object], problem: str
) -> None:
    before = root.state.read_bytes()

    with pytest.raises(ContractError) as caught, store.transaction() as tx:
        tx.state = tx.state._replace(**change)  # type: ignore[arg-type]

    assert root.state.read_bytes() == before
    assert caught.value.message == f"the change would break {NAME}: {problem}"


def test_only_what_has_changed_is_looked_at(store: Store, root: Root) -> None:
    """What the user has written was read strictly before, and a change costs what it changes."""
    document = json.loads(root.state.read_bytes())
    document["sessions"] = [{"number": 1, "worker": "w", "host": "h"}]
    root.state.write_text(json.dumps(document))
    with store.transaction() as tx:
        tx.state = tx.state._replace(sessions=(*(tx.state.sessions or ()), Session(2, "w", "h")))

    assert [each.number for each in store.whole().sessions or ()] == [1, 2]


def test_a_disk_that_takes_nothing_is_named_with_the_place(store: Store, root: Root) -> None:
    root.backup.mkdir()
    before = root.state.read_bytes()

    kind, message, hint = error(lambda: change(store))

    assert kind is EnvSetupError
    assert message.startswith(f"{root.path}/.{root.backup.name}.")
    assert message.endswith(" cannot be written, so nothing was changed: Is a directory")
    assert hint == "Look at that place; then type it again."
    assert root.state.read_bytes() == before


def full(*_args: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_failure_without_a_file_is_told(store: Store, root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    before = root.state.read_bytes()
    monkeypatch.setattr(os, "fsync", full)

    kind, message, hint = error(lambda: change(store))

    assert kind is AwayError
    assert message == f"{root.path} cannot be written, so nothing was changed: No space left on device"
    assert hint is not None
    assert hint.endswith("; then type it again.")
    assert root.state.read_bytes() == before


def start_over(store: Store) -> None:
    with store.transaction() as tx:
        tx.start_over()


@pytest.mark.parametrize(("act", "torn"), [(change, False), (change, True), (start_over, False)])
def test_so_is_a_failure_to_keep_what_was_there_before(
    store: Store,
    root: Root,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Store], object],
    *,
    torn: bool,
) -> None:
    if torn:
        root.state.write_bytes(b"{ torn")
    before, write = root.state.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda to, data: full() if data == before else write(to, data))

    message = f"{root.path} cannot be written, so nothing was changed: No space left on device"
    assert error(lambda: act(store))[:2] == (AwayError, message)
    assert root.state.read_bytes() == before


def test_a_list_that_was_not_synced_is_said_to_be(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs, "sync_directory", full)

    assert change(store) == [f"{NAME} was written, but may not survive a power cut: No space left on device"]
    assert store.whole().tasks[0].title == "New"


def a_directory(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.touch()


@pytest.mark.parametrize(
    ("block", "warning"),
    [
        (
            lambda root: a_file(root.generations),
            "the generation for a later repair could not be written: File exists",
        ),
        (
            lambda root: a_directory(root.summary),
            "the summary for hooks could not be written: Is a directory",
        ),
        (
            lambda root: a_directory(root.log),
            "the log could not be written: [Errno 21] Is a directory: '{root}/harness-progress.txt'",
        ),
        (
            lambda root: os.mkfifo(root.log),
            "the log could not be written: The log is not a regular file: {root}/harness-progress.txt",
        ),
    ],
    ids=["generation", "summary", "log", "log that is none"],
)
def test_what_fails_after_the_change_is_a_warning(
    store: Store, root: Root, block: Callable[[Root], object], warning: str
) -> None:
    block(root)

    with store.transaction() as tx:
        tx.replace(tx.state.tasks[0]._replace(title="New"))
        tx.log("WARN", "x", 1)

    assert tx.warnings == [f"The change is made, but {warning.format(root=root.path)}"]
    assert store.whole().tasks[0].title == "New"


def test_what_nothing_proves_is_told_once_to_whoever_changes_the_list(store: Store, root: Root) -> None:
    document = json.loads(root.state.read_bytes())
    document["tasks"][1]["status"] = "completed"
    root.state.write_text(json.dumps(document))

    assert change(store) == [f"task-002: {UNPROVEN}; only its check can prove it."]
    assert journal.tail(root.log) == [f"[{NOON}] [SESSION-4] WARN [task-002] {UNPROVEN}"]
    with store.transaction() as tx:
        tx.state = tx.state._replace(session_count=5)
    assert tx.warnings == []

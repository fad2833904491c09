"""A lost or broken list comes back, the user's edit is never replaced, and nothing broken is thrown away.

What is said of it, to people and in the log, is held to the letter.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import weakref
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

from harness_lib.errors import EnvSetupError, StateUnreadableError
from harness_lib.state import journal, load, publishing, summary
from harness_lib.state.codec import ContractError
from harness_lib.state.store import Store
from harness_lib.system import fs
from harness_lib.system.place import roots
from harness_lib.system.place.roots import Root
from harness_lib.task import State
from tests.state.clock import NOON, NOON_IN_NAMES, TASKS
from tests.state.documents import error

NAME = "harness-tasks.json"
NEWEST = ".harness/generations/0000000001.json"
TORN = "is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"


def broken_files(root: Root) -> list[Path]:
    return sorted(root.path.glob("harness-tasks.json.broken-*"))


def change(store: Store) -> list[str]:
    with store.transaction() as tx:
        tx.replace(tx.state.tasks[0]._replace(attempts=tx.state.tasks[0].attempts + 1))
    return tx.warnings


def write(text: str) -> Callable[[Root], object]:
    return lambda root: root.state.write_text(text)


def no_earlier_state(root: Root) -> None:
    for path in (root.backup, *root.generations.glob("*")):
        path.unlink(missing_ok=True)


# An object without tasks is nobody's edit of the tasks: something has written over them.
DAMAGES: dict[str, tuple[Callable[[Root], object], str]] = {
    "missing": (lambda root: root.state.unlink(), "is missing"),
    "torn": (write("{"), TORN),
    "emptied": (write('{"a": 1}'), "has no tasks in it"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_lost_or_broken_list_is_shown_with_one_sentence(store: Store, root: Root, damage: str) -> None:
    act, why = DAMAGES[damage]
    act(root)

    shown = store.ask()

    assert shown.state.tasks == TASKS
    warning = f"{NAME} {why}; this is the state of {NEWEST}. Restore it with: harness check --repair"
    assert (
        shown.warnings == tuple(store.ask().warnings) == tuple(store.ask_to_change().warnings) == (warning,)
    )
    assert broken_files(root) == []


def test_a_list_cut_off_anywhere_is_shown_whole_and_stays_as_it_is(store: Store, root: Root) -> None:
    whole, data = store.whole(), root.state.read_bytes()
    # All but the last brace and line break; without the line break alone it is whole.
    for length in range(len(data) - 1):
        root.state.write_bytes(data[:length])

        snapshot = store.ask()

        assert snapshot.state == whole
        assert len(snapshot.warnings) == 1
        assert root.state.read_bytes() == data[:length]
    assert broken_files(root) == []


@pytest.mark.parametrize("damage", ["torn", "emptied"])
def test_a_broken_list_is_restored_and_the_log_says_the_same(store: Store, root: Root, damage: str) -> None:
    act, why = DAMAGES[damage]
    kept = [f"{NAME}.broken-{NOON_IN_NAMES}{more}" for more in ("", "-1", "-2")]
    said = [
        f"{NAME} {why}: restored from .harness/generations/{n:010}.json (3 tasks); "
        f"what only the broken file holds is kept in {name} (diff -u {NAME} {name})"
        for n, name in zip((1, 3, 5), kept, strict=True)
    ]
    for sentence in said:
        act(root)
        assert change(store) == [sentence]

    assert [path.name for path in broken_files(root)] == kept
    assert all(any(path.match(name) for name in roots.HARNESS_NAMES) for path in broken_files(root)), (
        "one may enter a commit"
    )
    act(root)
    assert {path.read_bytes() for path in broken_files(root)} == {root.state.read_bytes()}
    assert journal.tail(root.log) == [f"[{NOON}] [SESSION-4] WARN {sentence}" for sentence in said]
    # All that this store has had to say, in its order.
    assert store.warnings == tuple(said)


def test_a_store_keeps_what_it_has_said_and_no_list_of_before(store: Store, root: Root) -> None:
    """A run makes thousands of changes, and each of them has a whole list of tasks."""
    root.state.unlink()

    def change_again(title: str) -> weakref.ref[object]:
        with store.transaction() as tx:
            tx.replace(tx.state.tasks[0]._replace(title=title))
        return weakref.ref(tx)

    lists = [change_again(title) for title in ("one", "two", "three")]
    gc.collect()

    assert [each() for each in lists] == [None, None, None]
    assert len(store.warnings) == 1


def test_a_store_says_each_thing_once(store: Store, root: Root) -> None:
    root.log.mkdir()
    for _ in range(2):
        with store.transaction() as tx:
            tx.log("WARN", "x", 1)

    (warning,) = store.warnings
    assert warning.startswith("The change is made, but the log could not be written: ")


def test_a_backup_that_the_legacy_protocol_wrote_after_our_last_change_goes_first(
    store: Store, root: Root
) -> None:
    document = json.loads(root.state.read_bytes())
    document["tasks"][0]["title"] = "Changed by the legacy protocol"
    root.backup.write_text(json.dumps(document))
    root.state.write_text("{")

    assert store.whole().tasks[0].title == "Changed by the legacy protocol"


def test_with_nothing_good_left_only_the_seed_s_line_is_written(store: Store, root: Root) -> None:
    no_earlier_state(root)
    root.backup.write_text("{}")
    root.state.write_text("{")

    message = f"{root.state} {TORN}, and no good earlier state is left."
    said = (StateUnreadableError, message, "Correct the file by hand, then look at it: harness check")
    assert error(store.ask) == said
    assert journal.tail(root.log) == []
    assert error(store.ask_to_change) == said
    assert error(lambda: change(store)) == error(store.repair) == said
    line = f"[{NOON}] [SESSION-0] ERROR [ENV_SETUP] {NAME} corrupted and unrecoverable"
    assert journal.tail(root.log) == [line] * 3
    assert [path.read_text() for path in (root.state, root.backup)] == ["{", "{}"]


def test_where_no_list_is_it_is_said_how_to_make_one_and_nothing_is_logged(root: Root) -> None:
    store = Store(root)

    message = f"{root.state} is missing, and no earlier state is left."
    for act in (store.ask, store.ask_to_change, lambda: change(store), store.restore):
        assert error(act) == (StateUnreadableError, message, "Make a new list: harness init")
    assert not root.log.exists()


def test_a_list_that_cannot_be_opened_is_said_to_be_so(root: Root) -> None:
    root.state.mkdir()

    message = f"{root.state} cannot be read: Is a directory"
    hint = "See what is there and who may read it: harness doctor"
    assert error(Store(root).ask) == (EnvSetupError, message, hint)


@pytest.mark.parametrize("text", ["[]", '"tasks"', "null", '{"tasks": [{"id": "a"}]}', '{"tasks": {}}'])
def test_what_parses_is_the_user_s_edit_and_never_replaced(store: Store, root: Root, text: str) -> None:
    root.state.write_text(text)

    with pytest.raises(ContractError):
        store.ask()
    with pytest.raises(ContractError):
        change(store)

    assert root.state.read_text() == text
    assert broken_files(root) == []


def test_the_user_can_give_up_an_edit_and_nothing_of_it_is_lost(store: Store, root: Root) -> None:
    text = '{"tasks": [{"id": "mine"}]}'
    root.state.write_text(text)

    said = (
        f"{NAME} is not as it must be: restored from {NEWEST} (3 tasks); "
        f"what only the broken file holds is kept in {NAME}.broken-{NOON_IN_NAMES} "
        f"(diff -u {NAME} {NAME}.broken-{NOON_IN_NAMES})"
    )
    assert store.restore() == (said,)
    assert journal.tail(root.log) == [f"[{NOON}] [SESSION-4] WARN {said}"]
    assert store.whole().tasks == TASKS
    assert [path.read_text() for path in broken_files(root)] == [text]
    assert store.restore()[0].startswith(f"{NAME} is not as it must be: restored from ")

    root.state.unlink()
    assert store.restore()[0].startswith(f"{NAME} is missing: restored from ")
    assert store.whole().tasks == TASKS


def test_the_broken_bytes_never_become_the_backup(store: Store, root: Root) -> None:
    change(store)
    before = root.backup.read_bytes()
    root.state.write_text("{")

    with store.transaction():
        pass

    assert root.backup.read_bytes() == before


def test_twenty_generations_are_kept_each_a_file_of_its_own(store: Store, root: Root) -> None:
    for _ in range(25):
        change(store)

    kept = sorted(root.generations.iterdir())
    assert len(kept) == load.KEPT
    assert len({path.stat().st_ino for path in (*kept, root.state, root.backup)}) == load.KEPT + 2
    assert [path.stem for path in kept] == [f"{number:010}" for number in range(7, 27)]


def test_of_large_generations_the_newest_stays(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "KEPT_BYTES", 1000)
    for size in (400, 400, 400, 5000):
        load.save(root, b"x" * size)

    assert [path.name for path in root.generations.iterdir()] == ["0000000004.json"]
    load.save(root, b"y")
    assert [path.name for path in root.generations.iterdir()] == ["0000000005.json"]
    # What fits exactly is kept.
    load.save(root, b"z" * 999)
    assert len(list(root.generations.iterdir())) == 2


def test_files_of_others_among_the_generations_are_left_alone(root: Root) -> None:
    root.generations.mkdir(parents=True)
    theirs = {"mine.json", "12.json", "notes.txt", "abcdefghij.json", "12345678901.json", "²²²²²²²²²².json"}
    for name in theirs:
        (root.generations / name).write_text("{}")
    for _ in range(load.KEPT + 5):
        load.save(root, b"{}")

    assert theirs <= {path.name for path in root.generations.iterdir()}


def test_one_that_goes_while_they_are_counted_keeps_no_older_one(root: Root) -> None:
    for _ in range(load.KEPT):
        load.save(root, b"{}")
    oldest = min(root.generations.iterdir())
    # A link to nothing is there in a listing and not there to be measured, as one that goes in between.
    (root.generations / "0000000021.json").symlink_to("gone")

    load.save(root, b"{}")

    assert not oldest.exists()


def test_a_list_comes_back_in_which_a_task_can_never_run(store: Store, root: Root) -> None:
    with store.transaction() as tx:
        first, second, *_ = tx.state.tasks
        tx.replace(first._replace(depends_on=(second.id,)))
        tx.replace(second._replace(depends_on=(first.id,)))
    root.state.write_text("{")

    store.restore()

    assert summary.read(root) is not None


def test_a_first_list_on_a_full_disk_is_an_error(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(fs, "write", full)

    with pytest.raises(EnvSetupError, match="No space left"):
        publishing.publish(root, State(), datetime.now(timezone.utc), old=None)


def test_many_tasks_of_somebody_else_are_changed(store: Store, root: Root) -> None:
    document = json.loads(root.state.read_bytes())
    document["tasks"] = [{"id": f"theirs-{number}", "status": "pending"} for number in range(200)]
    root.state.write_text(json.dumps(document))

    change(store)

    assert store.whole().tasks[0].attempts == 1

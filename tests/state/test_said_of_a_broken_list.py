"""What is said of a list that is lost or broken, to people and in the log, to the letter."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from harness_lib.errors import EnvSetupError, HarnessError, StateUnreadableError
from harness_lib.state.filestore.store import Store
from harness_lib.system.files import append_log
from harness_lib.system.place.roots import Root
from harness_lib.task import State, Task
from tests.state.clock import NOON, NOON_IN_NAMES, Noon

NAME = "harness-tasks.json"
NEWEST = ".harness/generations/0000000001.json"
TORN = "is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"


@pytest.fixture
def store(root: Root) -> Store:
    """Return the store of a list with two tasks, made at noon."""
    made = Store(root, timeout=10, clock=Noon())
    assert made.create(State(tasks=(Task("a"), Task("b")), sessions=(), session_count=4)) == ()
    return made


def change(store: Store) -> list[str]:
    with store.transaction() as tx:
        tx.replace(tx.state.tasks[0]._replace(title="New"))
    return tx.warnings


def write(text: str) -> Callable[[Root], object]:
    return lambda root: root.state.write_text(text, encoding="utf-8")


DAMAGES: dict[str, tuple[Callable[[Root], object], str]] = {
    "missing": (lambda root: root.state.unlink(), "is missing"),
    "torn": (write("{"), TORN),
    "emptied": (write('{"a": 1}'), "has no tasks in it"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_list_that_is_lost_or_broken_is_shown_with_one_sentence(
    store: Store, root: Root, damage: str
) -> None:
    act, why = DAMAGES[damage]
    act(root)

    warning = f"{NAME} {why}; this is the state of {NEWEST}. Restore it with: harness check --repair"
    assert store.read().warnings == (warning,)
    assert store.read_to_change() == store.read()


@pytest.mark.parametrize("damage", ["torn", "emptied"])
def test_a_broken_list_is_restored_with_one_sentence_and_the_same_in_the_log(
    store: Store, root: Root, damage: str
) -> None:
    act, why = DAMAGES[damage]
    kept = [f"{NAME}.broken-{NOON_IN_NAMES}{more}" for more in ("", "-1", "-2")]
    said = [
        f"{NAME} {why}: restored from .harness/generations/{n:010}.json (2 tasks); "
        f"what only the broken file holds is kept in {name}"
        for n, name in zip((1, 3, 5), kept, strict=True)
    ]
    for sentence in said:
        act(root)
        assert change(store) == [sentence]

    assert sorted(path.name for path in root.path.glob("*.broken-*")) == sorted(kept)
    assert append_log.tail(root.log) == [f"[{NOON}] [SESSION-4] WARN {sentence}" for sentence in said]
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
            tx.log("WARN", "x", session=1)

    (warning,) = store.warnings
    assert warning.startswith("The change is made, but the log could not be written: ")


def test_a_list_that_a_person_gives_up_is_restored_with_one_sentence(store: Store, root: Root) -> None:
    root.state.write_text('{"tasks": [7]}', encoding="utf-8")

    said = (
        f"{NAME} is not as it must be: restored from {NEWEST} (2 tasks); "
        f"what only the broken file holds is kept in {NAME}.broken-{NOON_IN_NAMES}"
    )
    assert store.restore() == (said,)
    assert append_log.tail(root.log) == [f"[{NOON}] [SESSION-4] WARN {said}"]
    assert store.restore()[0].startswith(f"{NAME} is not as it must be: restored from ")


def test_a_missing_list_can_be_given_up_too(store: Store, root: Root) -> None:
    root.state.unlink()

    assert store.restore()[0].startswith(f"{NAME} is missing: restored from {NEWEST} (2 tasks); what was")
    assert len(store.read().state.tasks) == 2


def error(act: Callable[[], object]) -> tuple[type[HarnessError], str, str | None]:
    with pytest.raises(HarnessError) as caught:
        act()
    return type(caught.value), caught.value.message, caught.value.hint


def only_the_list(root: Root) -> None:
    for path in (root.backup, *root.generations.glob("*")):
        path.unlink(missing_ok=True)


def test_with_nothing_good_left_it_is_said_what_to_do(store: Store, root: Root) -> None:
    only_the_list(root)
    root.state.write_text("{", encoding="utf-8")

    message = f"{root.state} {TORN}, and no good earlier state is left."
    hint = "Correct the file by hand, then look at it: harness check"
    assert error(store.read) == (StateUnreadableError, message, hint)
    assert append_log.tail(root.log) == []
    assert error(store.read_to_change) == (StateUnreadableError, message, hint)
    assert error(lambda: change(store)) == (StateUnreadableError, message, hint)
    line = f"[{NOON}] [SESSION-0] ERROR [ENV_SETUP] {NAME} corrupted and unrecoverable"
    assert append_log.tail(root.log) == [line, line]


def test_where_no_list_is_it_is_said_how_to_make_one_and_nothing_is_logged(root: Root) -> None:
    store = Store(root)

    message = f"{root.state} is missing, and no earlier state is left."
    for act in (store.read, store.read_to_change, lambda: change(store), store.restore):
        assert error(act) == (StateUnreadableError, message, "Make a new list: harness init")
    assert not root.log.exists()


def test_a_list_that_cannot_be_opened_is_said_to_be_so(root: Root) -> None:
    root.state.mkdir()

    message = f"{root.state} cannot be read: Is a directory"
    hint = "See what lies there and who may read it: harness doctor"
    assert error(Store(root).read) == (EnvSetupError, message, hint)


def test_a_list_that_is_a_link_is_not_followed(root: Root) -> None:
    (root.path / "other").write_text('{"tasks": []}', encoding="utf-8")
    root.state.symlink_to(root.path / "other")

    with pytest.raises(EnvSetupError):
        Store(root).read()

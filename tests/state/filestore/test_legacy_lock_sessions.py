"""The lock directory stands for an exclusive session: whose process it carries, and who inherits it."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from harness_lib.state.filestore.store import Store
from harness_lib.system.locks import mkdir_lock
from harness_lib.system.place.roots import Root
from harness_lib.system.processes import process
from harness_lib.task import SessionConfig
from tests.state.filestore.lock_directory import begin, carried_pid, session, touch

pytestmark = pytest.mark.usefixtures("lock_directory_removed")
CONCURRENT = SessionConfig("concurrent")


def test_between_changes_of_an_exclusive_session_it_carries_its_owner(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    begin(store, owner.pid)

    assert carried_pid(root) == owner.pid
    touch(store)
    assert carried_pid(root) == owner.pid


def test_at_the_end_of_the_session_it_is_gone(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    begin(store, owner.pid)
    with store.transaction() as tx:
        tx.state = tx.state._replace(sessions=())
        tx.drop_session(owner.pid)

    assert not mkdir_lock.path_for(root.path).exists()


def test_a_failed_change_leaves_the_session_its_directory(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    begin(store, owner.pid)
    with pytest.raises(KeyError), store.transaction() as tx:  # noqa: PT012 (what is left undone is the promise)
        tx.drop_session(owner.pid)
        raise KeyError

    assert carried_pid(root) == owner.pid


def test_the_directory_of_a_session_whose_owner_died_is_given_up(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    begin(store, owner.pid)
    owner.communicate()

    touch(store)

    assert not mkdir_lock.path_for(root.path).exists()


def test_a_concurrent_session_does_not_keep_it(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    with store.transaction() as tx:
        tx.state = tx.state._replace(session_config=CONCURRENT, sessions=(session(owner.pid),))

    assert not mkdir_lock.path_for(root.path).exists()


@pytest.mark.parametrize(
    ("fields", "carried"),
    [
        ({}, True),
        ({"boot_id": process.boot_id()}, True),
        ({"boot_id": "another start of this machine"}, False),
        ({"host": "another machine"}, False),
        ({"pid": None}, False),
    ],
)
def test_it_stands_for_a_process_of_this_machine_alone(
    store: Store, root: Root, owner: subprocess.Popen[bytes], fields: dict[str, Any], *, carried: bool
) -> None:
    with store.transaction() as tx:
        tx.state = tx.state._replace(sessions=(session(owner.pid)._replace(**fields),))

    assert carried_pid(root) == (owner.pid if carried else None)


def test_it_stands_for_the_session_whose_owner_lives(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    with store.transaction() as tx:
        tx.state = tx.state._replace(sessions=(session(dead.pid), session(owner.pid, 2)))

    assert carried_pid(root) == owner.pid


def test_who_ends_its_session_while_another_is_open_leaves_it_to_that(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        both = (session(owner.pid), session(other.pid, 2))
        with store.transaction() as tx:
            tx.state = tx.state._replace(sessions=both)
            tx.hold_session(other.pid)
        assert carried_pid(root) == other.pid
        with store.transaction() as tx:
            tx.drop_session(None)
            tx.drop_session(other.pid)
        assert carried_pid(root) == owner.pid


def test_whose_session_is_dropped_is_passed_over_whichever_process_it_is(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        pids = (owner.pid, other.pid)
        for dropped, left in (pids, pids[::-1]):
            with store.transaction() as tx:
                tx.state = tx.state._replace(sessions=(session(owner.pid), session(other.pid, 2)))
                tx.drop_session(dropped)
            assert carried_pid(root) == left


def test_who_drops_another_session_keeps_the_one_it_holds(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    with store.transaction() as tx:
        tx.hold_session(owner.pid)
        tx.drop_session(owner.pid + 1)

    assert carried_pid(root) == owner.pid


def test_who_holds_and_drops_in_one_change_holds_nothing(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    with store.transaction() as tx:
        tx.hold_session(owner.pid)
        tx.drop_session(owner.pid + 1)
        tx.drop_session(owner.pid)

    assert carried_pid(root) is None


def test_a_session_shares_its_directory_with_whoever_changes_the_list(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    begin(store, owner.pid)

    with store.transaction():
        assert carried_pid(root) == owner.pid

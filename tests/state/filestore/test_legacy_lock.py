"""Agents that follow the prose and we keep each other out while the list is changed."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from harness_lib.errors import HeldError
from harness_lib.state.filestore.store import Store
from harness_lib.system.locks import mkdir_lock
from harness_lib.system.place.roots import Root
from harness_lib.task import State
from tests.state.filestore.lock_directory import Waits, begin, carried_pid, session, touch

pytestmark = pytest.mark.usefixtures("lock_directory_removed")


def test_inside_a_change_the_directory_carries_our_pid_and_is_gone_afterwards(
    store: Store, root: Root
) -> None:
    with store.transaction():
        assert carried_pid(root) == os.getpid()

    assert not mkdir_lock.path_for(root.path).exists()


def test_a_directory_that_vanished_is_made_again_by_the_next_change(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    begin(store, owner.pid)
    path = mkdir_lock.path_for(root.path)
    shutil.rmtree(path)

    touch(store)

    assert carried_pid(root) == owner.pid


def test_who_follows_the_prose_and_lives_is_waited_for_and_named(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    path = mkdir_lock.path_for(root.path)
    path.mkdir()
    (path / "pid").write_text(f"{owner.pid}\n", encoding="ascii")
    before = root.state.read_bytes()

    with pytest.raises(HeldError, match=f"pid {owner.pid}"):
        touch(Store(root, timeout=0.1))

    assert root.state.read_bytes() == before
    assert carried_pid(root) == owner.pid
    assert store.read().state.session_count == 0


@pytest.mark.usefixtures("store")
def test_a_restore_waits_for_who_follows_the_prose_as_a_change_does(
    root: Root, owner: subprocess.Popen[bytes]
) -> None:
    path = mkdir_lock.path_for(root.path)
    path.mkdir()
    (path / "pid").write_text(f"{owner.pid}\n", encoding="ascii")
    root.state.write_text("{", encoding="utf-8")
    clock = Waits()

    with pytest.raises(HeldError, match=f"pid {owner.pid}"):
        Store(root, timeout=60, clock=clock).restore()

    assert 59 < clock.waited < 61
    assert root.state.read_text(encoding="utf-8") == "{"


def test_the_first_list_is_not_made_where_the_prose_lives(root: Root, owner: subprocess.Popen[bytes]) -> None:
    path = mkdir_lock.path_for(root.path)
    path.mkdir()
    (path / "pid").write_text(f"{owner.pid}\n", encoding="ascii")

    with pytest.raises(HeldError, match=f"pid {owner.pid}"):
        Store(root, timeout=0.1).create(State())

    assert not root.state.exists()
    assert carried_pid(root) == owner.pid


def test_a_change_that_waited_sees_what_the_prose_wrote_meanwhile(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    path = mkdir_lock.path_for(root.path)
    path.mkdir()
    (path / "pid").write_text(f"{owner.pid}\n", encoding="ascii")
    # A peer in the prose's own words: it writes the list and gives its lock up while we wait for it.
    edit = (
        'sed "s/Second/By the prose/" "$1/harness-tasks.json" >"$1/harness-tasks.json.tmp" && '
        'mv "$1/harness-tasks.json.tmp" "$1/harness-tasks.json" && rm -r "$2"'
    )
    with subprocess.Popen(["sh", "-c", edit, "sh", str(root.path), str(path)]):
        touch(store)

    assert [task.title for task in store.read().state.tasks] == ["First", "By the prose", ""]
    assert store.read().state.session_count == 1


def test_a_directory_that_is_not_ours_is_left_alone_with_a_warning(store: Store, root: Root) -> None:
    path = mkdir_lock.path_for(root.path)
    path.symlink_to(root.path)
    try:
        with store.transaction() as tx:
            pass
        assert "is not ours" in tx.warnings[0]
        assert path.is_symlink()
    finally:
        path.unlink()


def test_what_is_not_ours_is_named(store: Store, root: Root) -> None:
    path = mkdir_lock.path_for(root.path)
    path.symlink_to(root.path)
    try:
        warning = f"{path} is not ours to take; who follows the prose is not kept out"
        with store.transaction() as tx:
            assert tx.warnings == [warning]
        assert store.restore()[0] == warning
    finally:
        path.unlink()


def test_a_directory_that_cannot_be_handed_over_is_a_warning(
    store: Store, root: Root, owner: subprocess.Popen[bytes]
) -> None:
    path = mkdir_lock.path_for(root.path)
    with store.transaction() as tx:
        tx.state = tx.state._replace(sessions=(session(owner.pid),))
        tx.hold_session(owner.pid)
        # Nothing can be put in the place of a directory.
        (path / "harness-session").mkdir()
    (path / "harness-session").rmdir()

    assert tx.warnings == [f"{path} could not be let go: Is a directory"]
    assert store.read().state.sessions == (session(owner.pid),)


@pytest.mark.usefixtures("store")
def test_a_directory_that_names_the_caller_or_a_session_that_is_over_is_no_obstacle(
    root: Root, owner: subprocess.Popen[bytes]
) -> None:
    """A `stop` was killed before it let go; to others the living agent would hold the list for ever."""
    path = mkdir_lock.path_for(root.path)

    def left(*names: str) -> None:
        path.mkdir()
        for name in names:
            (path / name).write_text(f"{owner.pid}\n", encoding="ascii")

    left("pid")
    with pytest.raises(HeldError):
        touch(Store(root, timeout=0.1))
    touch(Store(root, timeout=10, caller=lambda: owner.pid))
    left("pid", "harness-session")
    touch(Store(root, timeout=10))
    assert carried_pid(root) is None


def test_in_a_list_of_the_prose_whoever_stands_there_is_waited_for(
    root: Root, owner: subprocess.Popen[bytes]
) -> None:
    root.state.write_text('{"tasks": []}', encoding="utf-8")
    path = mkdir_lock.path_for(root.path)
    path.mkdir()
    for name in ("pid", "harness-session"):
        (path / name).write_text(f"{owner.pid}\n", encoding="ascii")

    with pytest.raises(HeldError):
        touch(Store(root, timeout=0.1))

"""Legacy agents and we keep each other out, by a directory that names a living process.

It is taken for each change, and stands for an exclusive session between changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_lib.errors import HeldError
from harness_lib.state.store import Store
from harness_lib.system import mkdir_lock
from harness_lib.system.place.roots import Root
from harness_lib.system.processes import process
from harness_lib.task import Mode, Session, SessionConfig, State
from tests.state.clock import Sleeper


def carried_pid(root: Root) -> int | None:
    holder = mkdir_lock.holder_of(mkdir_lock.path_for(root.path))
    return None if holder is None else holder.pid


def session(pid: int, number: int = 1) -> Session:
    return Session(number, "w", os.uname().nodename, pid=pid)


def hold(store: Store, *sessions: Session, mode: Mode = "exclusive") -> None:
    """Let these be the open sessions."""
    with store.transaction() as tx:
        tx.state = tx.state._replace(session_config=SessionConfig(mode), sessions=sessions)


def touch(store: Store) -> None:
    with store.transaction() as tx:
        tx.state = tx.state._replace(session_count=tx.state.session_count + 1)


pytestmark = pytest.mark.usefixtures("directory")
Owner = subprocess.Popen[bytes]


def left(directory: Path, owner: Owner, *names: str) -> None:
    """Leave the directory as a legacy agent does, or, with the file `harness-session`, a session of ours."""
    directory.mkdir()
    for name in names:
        (directory / name).write_text(f"{owner.pid}\n", encoding="ascii")


def test_inside_a_change_the_directory_carries_our_pid_alone(
    store: Store, root: Root, directory: Path
) -> None:
    with store.transaction():
        assert carried_pid(root) == os.getpid()

    assert not directory.exists()


def test_a_directory_that_vanished_is_made_by_the_next_change(
    store: Store, root: Root, owner: Owner, directory: Path
) -> None:
    hold(store, session(owner.pid))
    shutil.rmtree(directory)

    touch(store)

    assert carried_pid(root) == owner.pid


ACTS: dict[str, Callable[[Store], object]] = {
    "change": touch,
    "restore": lambda store: store.restore(),
    "first list": lambda store: store.create(State()),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.usefixtures("store")
def test_who_follows_the_legacy_protocol_is_waited_for(
    root: Root, owner: Owner, directory: Path, act: str
) -> None:
    if act == "first list":
        root.state.unlink()
    before = root.state.read_bytes() if root.state.exists() else None
    left(directory, owner, "pid")
    clock = Sleeper()

    with pytest.raises(HeldError, match=f"pid {owner.pid}"):
        ACTS[act](Store(root, timeout=6, clock=clock))

    assert 5 < clock.slept < 7
    assert before == (root.state.read_bytes() if root.state.exists() else None)
    assert carried_pid(root) == owner.pid


def test_what_is_not_ours_is_named(store: Store, root: Root, directory: Path) -> None:
    directory.symlink_to(root.path)
    warning = f"{directory} cannot be used: legacy agents are not locked out"
    with store.transaction() as tx:
        assert tx.warnings == [warning]
    assert store.restore()[0] == warning
    assert directory.is_symlink()


def test_a_directory_that_cannot_be_handed_over_is_a_warning(store: Store, root: Root, owner: Owner) -> None:
    path = mkdir_lock.path_for(root.path)
    with store.transaction() as tx:
        tx.state = tx.state._replace(sessions=(session(owner.pid),))
        # Nothing can be put in the place of a directory.
        (path / "harness-session").mkdir()
    (path / "harness-session").rmdir()

    assert tx.warnings == [f"{path} could not be released: Is a directory"]
    assert store.whole().sessions == (session(owner.pid),)


@pytest.mark.usefixtures("store")
def test_one_of_the_caller_or_of_the_past_is_no_obstacle(root: Root, owner: Owner, directory: Path) -> None:
    """A `stop` was killed before it let go; to others the living agent would hold the list for ever."""
    left(directory, owner, "pid")
    with pytest.raises(HeldError):
        touch(Store(root, timeout=0.1))
    touch(Store(root, timeout=10, caller=lambda: owner.pid))
    left(directory, owner, "pid", "harness-session")
    touch(Store(root, timeout=10))
    assert carried_pid(root) is None


def test_in_a_list_of_the_legacy_protocol_any_holder_is_waited_for(
    root: Root, owner: Owner, directory: Path
) -> None:
    root.state.write_text('{"tasks": []}')
    left(directory, owner, "pid", "harness-session")

    with pytest.raises(HeldError):
        touch(Store(root, timeout=0.1))


def test_between_changes_of_an_exclusive_session_it_carries_its_owner_until_that_ends(
    store: Store, root: Root, owner: Owner, directory: Path
) -> None:
    hold(store, session(owner.pid))
    assert carried_pid(root) == owner.pid
    touch(store)
    assert carried_pid(root) == owner.pid
    with store.transaction():
        assert carried_pid(root) == owner.pid
    with pytest.raises(KeyError), store.transaction() as tx:  # noqa: PT012 (what is left undone is the promise)
        tx.state = tx.state._replace(sessions=())
        raise KeyError
    assert carried_pid(root) == owner.pid

    hold(store)

    assert not directory.exists()


def test_the_directory_of_a_dead_owner_is_given_up(store: Store, owner: Owner, directory: Path) -> None:
    hold(store, session(owner.pid))
    owner.communicate()

    touch(store)

    assert not directory.exists()


@pytest.mark.parametrize(
    ("fields", "mode", "carried"),
    [
        ({}, "exclusive", True),
        ({}, "concurrent", False),
        ({"boot_id": process.boot_id()}, "exclusive", True),
        ({"boot_id": "another start of this machine"}, "exclusive", False),
        ({"host": "another machine"}, "exclusive", False),
        ({"pid": None}, "exclusive", False),
    ],
)
def test_it_stands_for_a_process_of_this_machine_alone_in_exclusive_mode(
    store: Store, root: Root, owner: Owner, fields: dict[str, Any], mode: Mode, *, carried: bool
) -> None:
    hold(store, session(owner.pid)._replace(**fields), mode=mode)

    assert carried_pid(root) == (owner.pid if carried else None)


def test_it_stands_for_the_session_whose_owner_lives(store: Store, root: Root, owner: Owner) -> None:
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    hold(store, session(dead.pid), session(owner.pid, 2))

    assert carried_pid(root) == owner.pid


def test_who_ends_its_session_leaves_it_to_an_open_one(store: Store, root: Root, owner: Owner) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        pids = (owner.pid, other.pid)
        for ended, left in (pids, pids[::-1]):
            hold(store, session(ended), session(left, 2))
            assert carried_pid(root) == min(pids)
            hold(store, session(left, 2))
            assert carried_pid(root) == left

"""The lock directory of the legacy protocol as tests look at it, and sessions whose owner it carries."""

from __future__ import annotations

import os

from harness_lib.state.store import Store
from harness_lib.system import mkdir_lock
from harness_lib.system.clock import Clock
from harness_lib.system.place.roots import Root
from harness_lib.task import Session


class Waits(Clock):
    """Sleeps without losing time, and adds up how long."""

    def __init__(self) -> None:
        self.waited = 0.0

    def monotonic(self) -> float:
        return self.waited

    def sleep(self, seconds: float) -> None:
        self.waited += seconds


def carried_pid(root: Root) -> int | None:
    holder = mkdir_lock.holder_of(mkdir_lock.path_for(root.path))
    return None if holder is None else holder.pid


def session(pid: int, number: int = 1) -> Session:
    return Session(number, "w", os.uname().nodename, pid=pid)


def begin(store: Store, pid: int) -> None:
    with store.transaction() as tx:
        tx.state = tx.state._replace(sessions=(session(pid),))
        tx.hold_session(pid)


def touch(store: Store) -> None:
    with store.transaction() as tx:
        tx.state = tx.state._replace(session_count=tx.state.session_count + 1)

"""Hold the prose's lock directory around a transaction, and leave it to the open session afterwards.

Source: docs/design.md, "Sessions and owners".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection

from harness_lib.system.clock import Clock
from harness_lib.system.locks.mkdir_lock import Grip, Holder, SeedLock, holder_of
from harness_lib.system.place.roots import Root
from harness_lib.system.processes import process
from harness_lib.task import State


class OuterLock:
    """The directory of one state root; `carrier` is the pid it stands for after `leave`, None for nobody.

    `caller` tells the process for which a session of the caller's would stand.
    """

    def __init__(self, root: Root, clock: Clock, state: State, caller: Callable[[], int | None]) -> None:
        self.carrier = carrier_of(state)
        self._state, self._caller = state, caller
        self._lock = SeedLock(root.path, clock)
        self._ours = _local_pids(state)
        self._grip: Grip = "foreign"

    def enter(self, deadline: float) -> list[str]:
        """Keep out who follows the prose, waiting until the monotonic moment `deadline`; return warnings.

        Raises HeldError when it has passed.
        """
        self._grip = self._lock.acquire(os.getpid(), deadline=deadline, ours=self._ours, over=self._is_over)
        if self._grip != "foreign":
            return []
        return [f"{self._lock.path} is not ours to take; who follows the prose is not kept out"]

    def _is_over(self, holder: Holder) -> bool:
        """Return whether a living holder, whose session is not open, holds nothing: its `stop` was killed.

        It is the caller itself, or we have handed it the directory for a session that the list knows no more.
        """
        return holder.pid == self._caller() or (holder.handed and self._state.sessions is not None)

    def leave(self) -> list[str]:
        """Hand the directory to `carrier`, or free it if there is none; return warnings."""
        holder = self._holder()
        try:
            if holder is None or holder == self.carrier:
                return []
            if self.carrier is not None:
                self._lock.hand_over(holder, self.carrier)
            else:
                self._lock.release(holder)
        except OSError as error:
            # The change is made; a directory that still names us is taken over when we are dead.
            return [f"{self._lock.path} could not be let go: {error.strerror or error}"]
        return []

    def _holder(self) -> int | None:
        if self._grip == "taken":
            return os.getpid()
        holder = holder_of(self._lock.path) if self._grip == "shared" else None
        return None if holder is None else holder.pid


def carrier_of(state: State, without: Collection[int] = ()) -> int | None:
    """Return the owner of the exclusive session that is open on this machine, but none of `without`.

    Asked after every transaction, not only when the session begins: a crash, or whoever cleans /tmp, may have
    removed its directory since.
    """
    if state.concurrent:
        return None
    return next((pid for pid in sorted(_local_pids(state) - set(without)) if process.alive(pid)), None)


def _local_pids(state: State) -> frozenset[int]:
    # Inside of a sandbox and out of it the same number is another process.
    machine = (os.uname().nodename, process.boot_id())
    return frozenset(
        s.pid
        for s in state.sessions or ()
        if s.pid is not None and (s.host, s.boot_id or machine[1]) == machine
    )

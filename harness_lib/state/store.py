"""The one door to harness-tasks.json.

Reading takes no lock and never writes. Changing is a `with` block: inside it, this process alone (and no agent
that follows the prose) changes the list; leaving it publishes, leaving it by an error publishes nothing.

    with store.transaction() as tx:
        tx.replace(transitions.claim(task, ...))
        tx.log("Starting", ...)

Source: design sections 3 and 4.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from harness_lib.errors import EnvSetupError, HeldError, RefusedError, StateUnreadableError
from harness_lib.state import codec, finding, journal, publishing, schema
from harness_lib.state.codec import ContractError
from harness_lib.state.finding import Found
from harness_lib.state.tx import Tx
from harness_lib.system import atomic, log, process
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.system.lock import StateLock
from harness_lib.system.roots import Root
from harness_lib.system.seedlock import Grip, SeedLock, look
from harness_lib.task import State

__all__ = ["Snapshot", "Store", "Tx"]

TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Snapshot:
    """The list at one moment, and sentences about what was wrong with its file."""

    state: State
    warnings: tuple[str, ...] = ()


class Store:
    """The list of one state root. `timeout`: seconds that both locks together may be waited for."""

    def __init__(self, root: Root, *, clock: Clock = SYSTEM, timeout: float = TIMEOUT_SECONDS) -> None:
        self.root = root
        self._clock = clock
        self._timeout = timeout

    def read(self) -> Snapshot:
        """Return the list as it is now; a broken file is shown as the newest good state, with a warning.

        Raises ContractError, StateUnreadableError (nothing good is left), EnvSetupError.
        """
        found = finding.find(self.root)
        if found.source is None:
            return Snapshot(found.state)
        warning = (
            f"{self.root.state.name} {found.why}; this is the state of {found.source}. "
            "Restore it with: harness check --repair"
        )
        return Snapshot(found.state, (warning,))

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """Hold both locks around one change of the list.

        A broken or missing list is restored first; `tx.warnings` says so.
        Raises HeldError (not ours within `timeout`), ContractError (as read, or as changed), EnvSetupError,
        StateUnreadableError; then nothing was changed.
        """
        with ExitStack() as stack:
            deadline = self._clock.monotonic() + self._timeout
            self._enter(stack)
            found = self._find()
            seed = _Seed(self.root, self._clock, found.state)
            warnings = seed.enter(deadline)
            stack.callback(seed.leave)
            # An agent that follows the prose may have written between our look and its giving up the lock.
            if finding.stamp_now(self.root) != found.stamp:
                found = self._find()
            found = self._settle(found, warnings)
            tx = Tx(found.state, self._clock.now(), warnings, _carrier(found.state))
            try:
                yield tx
            finally:
                tx.close()
            self._publish(tx, found)
            seed.carrier = tx.carrier

    def create(self, state: State) -> None:
        """Write the first list. Raises RefusedError if there is one already, and as `transaction`."""
        with ExitStack() as stack:
            deadline = self._clock.monotonic() + self._timeout
            self._enter(stack)
            seed = _Seed(self.root, self._clock, state)
            seed.enter(deadline)
            stack.callback(seed.leave)
            if finding.stamp_now(self.root) is not None:
                raise RefusedError(f"{self.root.state} exists already.", "Look at it with: harness status")
            publishing.check(state, ())
            publishing.publish(self.root, state, self._clock.now(), old=None)

    def _enter(self, stack: ExitStack) -> None:
        lock = StateLock(self.root.lock_file, timeout=self._timeout, clock=self._clock)
        try:
            stack.enter_context(lock)
        except OSError as error:
            message = f"{self.root.private} cannot be written: {error.strerror or error}"
            raise EnvSetupError(
                message, "Make room, or make the directory writable, then type it again."
            ) from error

    def _find(self) -> Found:
        try:
            return finding.find(self.root)
        except StateUnreadableError:
            if finding.stamp_now(self.root) is not None:
                self._note_loss()
            raise

    def _note_loss(self) -> None:
        text = f"{self.root.state.name} corrupted and unrecoverable"
        line = journal.line("ERROR", text, now=self._clock.now(), session=0, category="ENV_SETUP")
        try:
            log.append(self.root.log, line)
        except OSError as error:
            raise EnvSetupError(
                f"{text}, and the log cannot be written: {error.strerror or error}"
            ) from error

    def _settle(self, found: Found, warnings: list[str]) -> Found:
        """Return `found` as a list that stands in its file and keeps the contract."""
        if found.source is not None:
            return self._restore(found, warnings)
        if not found.ours:
            problems = schema.problems(found.document)
            if problems:
                raise ContractError(problems, self.root.state.name)
        return found

    def _restore(self, found: Found, warnings: list[str]) -> Found:
        """Put the list that stands in for a broken one into its place, keeping the broken one beside it."""
        now = self._clock.now()
        kept = ""
        if found.data is not None:
            broken = self._free_name(f"{self.root.state.name}.broken-{now:%Y%m%dT%H%M%SZ}")
            atomic.write(self.root.path / broken, found.data)
            kept = f"; the broken file is kept as {broken}"
        # The good .bak may be the very source of this: the broken bytes must not replace it.
        warnings += publishing.publish(self.root, found.state, now, old=None)
        text = (
            f"{self.root.state.name} {found.why}: restored from {found.source} "
            f"({len(found.state.tasks)} tasks), what was written later is lost{kept}"
        )
        warnings.append(text)
        line = journal.line("WARN", text, now=now, session=found.state.session_count)
        warnings += _append(self.root, [line])
        return finding.find(self.root)

    def _free_name(self, name: str) -> str:
        tries = (name if n == 0 else f"{name}-{n}" for n in range(1000))
        return next(each for each in tries if not os.path.lexists(self.root.path / each))

    def _publish(self, tx: Tx, found: Found) -> None:
        if tx.state is not found.state:
            publishing.check(tx.state, found.state.tasks)
            self._assert_untouched(found)
            reuse = (
                codec.blocks(found.state, found.data.decode())
                if found.ours and found.data
                else codec.NO_BLOCKS
            )
            tx.warnings += publishing.publish(self.root, tx.state, tx.now, old=found.data, reuse=reuse)
        tx.warnings += _append(self.root, tx.lines)
        for act in tx.callbacks:
            tx.warnings += publishing.attempt("what follows it", act)

    def _assert_untouched(self, found: Found) -> None:
        """An editor takes no lock: what a person saved since we read must not be written over."""
        if finding.stamp_now(self.root) != found.stamp:
            message = f"{self.root.state} was saved by somebody else just now, so nothing was changed."
            raise HeldError(message, "Type the command again.")


class _Seed:
    """The lock directory of the prose around one transaction, and for whom it stands afterwards."""

    def __init__(self, root: Root, clock: Clock, state: State) -> None:
        self.carrier = _carrier(state)
        self._lock = SeedLock(root.path, clock)
        self._ours = _local_pids(state)
        self._grip: Grip = "foreign"

    def enter(self, deadline: float) -> list[str]:
        self._grip = self._lock.acquire(os.getpid(), deadline=deadline, ours=self._ours)
        if self._grip == "foreign":
            return [
                f"{self._lock.path} belongs to somebody else; agents that follow the prose are not kept out"
            ]
        return []

    def leave(self) -> None:
        if self._grip == "foreign":
            return
        holder = os.getpid() if self._grip == "taken" else _holder(self._lock)
        if holder is None or holder == self.carrier:
            return
        if self.carrier is not None:
            self._lock.hand_over(holder, self.carrier)
        else:
            self._lock.release(holder)


def _holder(lock: SeedLock) -> int | None:
    holder = look(lock.path)
    return None if holder is None else holder.pid


def _local_pids(state: State) -> frozenset[int]:
    host = os.uname().nodename
    return frozenset(s.pid for s in state.sessions or () if s.pid is not None and s.host == host)


def _carrier(state: State) -> int | None:
    """The owner of the exclusive session that is open here; the directory stands for it between transactions.

    Asked after every transaction, not only when the session begins: a crash, or whoever cleans /tmp, may have
    removed the directory since.
    """
    if state.concurrent:
        return None
    return next((pid for pid in sorted(_local_pids(state)) if process.alive(pid)), None)


def _append(root: Root, lines: list[str]) -> list[str]:
    try:
        for line in lines:
            log.append(root.log, line)
    except (OSError, EnvSetupError) as error:
        return [f"The change is made, but the log could not be written: {error}"]
    return []

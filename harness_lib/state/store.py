"""Open, read and change harness-tasks.json: all access goes through here.

Reading takes no lock and never writes. A change is a `with` block: inside it no other process changes the
list, neither of harness nor of the legacy protocol. Leaving it publishes the change; after an error nothing
is published.
Source: docs/design.md, "A state change".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from harness_lib import timestamps
from harness_lib.errors import EnvSetupError, HeldError, RefusedError, StateUnreadableError
from harness_lib.rules import selection
from harness_lib.state import api, codec, journal, load, publishing, schema, upkeep
from harness_lib.state.answers import Answers, Tx
from harness_lib.state.load import Loaded
from harness_lib.system import fs, mkdir_lock, state_lock
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.system.place.roots import Root
from harness_lib.system.processes import process
from harness_lib.task import SessionConfig, State
from harness_lib.text import Strings, escape

TIMEOUT_SECONDS = 30.0
# A file with this key follows a list in a database, and is not the list.
MIRROR = "mirror_of"


class Store(upkeep.Upkeep):
    """The list of one state root. `timeout`: seconds to wait for both locks together.

    `caller` returns the process that stands for the caller: its own lock is no obstacle to it.
    """

    shared = None

    def __init__(
        self,
        root: Root,
        *,
        clock: Clock = SYSTEM,
        timeout: float = TIMEOUT_SECONDS,
        caller: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.root = root
        self._caller = caller
        self._clock = clock
        self._timeout = timeout
        self._warnings: list[list[str]] = []

    def ask(self) -> Answers:
        return self._answers(self._own(load.look(self.root)))

    def ask_to_change(self) -> Answers:
        return self._answers(self._find())

    def ask_now(self, *, waits: bool = True) -> Answers:  # noqa: ARG002 (the file is the list)
        return self.ask()

    def _answers(self, loaded: Loaded) -> Answers:
        warnings = []
        if loaded.source is not None:
            message = f"{self.root.state.name} {loaded.why}; this is the state of {loaded.source}."
            cure = "" if loaded.why == load.DENIED else " Restore it with: harness check --repair"
            warnings.append(f"{message}{cure}")
        elif not loaded.ours:
            warnings += load.replaced(self.root, loaded)
        return Answers(loaded.state, self._clock.now(), tuple(warnings))

    def whole(self) -> State:
        return self.ask().state

    def examine(self) -> api.Examined:
        return upkeep.examine(self.root, self._clock.now())

    @contextmanager
    def transaction(self, kind: api.Kind = "list") -> Iterator[Tx]:
        """Hold both locks around one change; a broken or missing list is restored first, with a warning."""
        with ExitStack() as stack:
            deadline = self._enter(stack)
            loaded = self._find()
            outer = self._keep_out(stack, loaded.state, deadline)
            # An agent of the legacy protocol may have written between our read and its release of the lock.
            if load.stamp_now(self.root) != loaded.stamp:
                loaded = self._find()
            loaded = self._settled(loaded, outer.warnings)
            outer.state = loaded.state
            tx = Tx(loaded.state, self._clock.now(), outer.warnings, name=self.root.state.name, kind=kind)
            # Only their warnings: a run makes thousands of transactions, each with a whole list of tasks.
            self._warnings = [*filter(None, self._warnings), tx.warnings]
            try:
                yield tx
            finally:
                tx.close()
            self._publish(tx, loaded)
            outer.state = tx.state

    def begin(self, settings: SessionConfig, message: str) -> Strings:
        now = self._clock.now()
        self.create(State(created=timestamps.render(now), session_config=settings, sessions=()))
        journal.append(self.root.log, journal.line("INIT", message, now=now, session=0))
        self.enable_hooks()
        return self.root.state.name, self.root.log.name, self.root.enable_flag.name

    def create(self, state: State) -> Strings:
        """Write the first list, and return warnings.

        Raises RefusedError if there is one already; else as `transaction`.
        """
        with ExitStack() as stack:
            deadline = self._enter(stack)
            warnings = self._keep_out(stack, state, deadline).warnings
            if load.stamp_now(self.root) is not None:
                raise RefusedError(f"{self.root.state} exists already.", "Look at it with: harness status")
            publishing.check(state, State())
            sealed = codec.sealed(state, State())
            warnings += publishing.publish(self.root, sealed, self._clock.now(), old=None)
        return tuple(warnings)

    def restore(self) -> Strings:
        """Replace the list by its newest good copy, and keep the old one beside it; return warnings."""
        with ExitStack() as stack:
            deadline = self._enter(stack)
            loaded = load.find_instead(self.root)
            warnings = self._keep_out(stack, loaded.state, deadline).warnings
            self._assert_untouched(loaded)
            warnings += publishing.restore(self.root, loaded, self._clock.now())
        return tuple(warnings)

    def _enter(self, stack: ExitStack) -> float:
        """Take the lock on the file; return until when to wait for that of the legacy protocol."""
        deadline = self._clock.monotonic() + self._timeout
        lock = state_lock.StateLock(self.root.lock_file, timeout=self._timeout, clock=self._clock)
        with publishing.explained(self.root):
            stack.enter_context(lock)
        return deadline

    def _keep_out(self, stack: ExitStack, state: State, deadline: float) -> OuterLock:
        with publishing.explained(self.root):
            outer = OuterLock(self.root, self._clock, state, self._caller, deadline)
        stack.callback(outer.leave)
        return outer

    def _own(self, loaded: Loaded) -> Loaded:
        """Return `loaded`. Raises EnvSetupError if it only follows a list in a database."""
        if MIRROR in loaded.state.extra:
            where = f"a list in a database ({escape(str(loaded.state.extra[MIRROR]))})"
            raise EnvSetupError(
                f"{self.root.state} is only a copy of {where}, and the link to that is gone.",
                "Join it again: harness store join URL --list NAME",
            )
        return loaded

    def _find(self) -> Loaded:
        try:
            return self._own(load.find(self.root))
        except StateUnreadableError:
            if load.stamp_now(self.root) is not None:
                publishing.note_loss(self.root, self._clock.now())
            raise

    def _settled(self, loaded: Loaded, warnings: list[str]) -> Loaded:
        """Return `loaded`, written back if it was read from a copy. Raises ContractError if it is invalid."""
        if loaded.source is not None:
            self._assert_untouched(loaded)
            warnings += publishing.restore(self.root, loaded, self._clock.now())
            return load.find(self.root)
        if not loaded.ours:
            was = load.newest(self.root)
            passed = was.state.tasks if was else ()
            problems = schema.problems_of_new(loaded.document, loaded.state.tasks, passed)
            if problems:
                raise codec.ContractError(problems, self.root.state.name)
            if was and (words := load.changed(self.root, was.state, loaded.state)):
                number = loaded.state.session_count
                warnings += publishing.keep_past(self.root, was, words, self._clock.now(), number)
        return loaded

    def _publish(self, tx: Tx, loaded: Loaded) -> None:
        if tx.state is not loaded.state:
            publishing.check(tx.state, loaded.state)
            self._assert_untouched(loaded)
            if tx.keeps_old:
                assert loaded.data is not None
                with publishing.explained(self.root):
                    fs.write(self.root.path / tx.keeps_old, loaded.data)
            state = codec.sealed(tx.state, loaded.state)
            # Checked once more at the last moment: writing takes longer than all the rest.
            tx.warnings += publishing.publish(
                self.root,
                state,
                tx.now,
                old=loaded,
                last_look=lambda: self._assert_untouched(loaded),
            )
            if not loaded.ours:
                _tell_unproven(tx, loaded.state)
        tx.warnings += publishing.append(self.root, tx.lines)
        for act in tx.callbacks:
            with publishing.attempt("what follows it", tx.warnings):
                act()

    def _assert_untouched(self, loaded: Loaded) -> None:
        """Raise HeldError if the file is no longer the one we read.

        An editor takes no lock, and its save must not be overwritten. Nor must the change of another process
        of harness that took its lock in a `.harness/` that was made again meanwhile.
        """
        if load.stamp_now(self.root) != loaded.stamp:
            message = f"{self.root.state} was saved by another program just now, so nothing was changed."
            raise HeldError(message, "Type the command again.")


def _tell_unproven(tx: Tx, state: State) -> None:
    """Warn once, and in the log, of tasks that an external edit says are completed."""
    for task in state.tasks:
        if task.unproven:
            tx.warnings.append(f"{task.id}: {selection.UNPROVEN}; only its check can prove it.")
            number = state.session_count
            line = journal.line("WARN", selection.UNPROVEN, now=tx.now, session=number, task=task.id)
            tx.lines.append(line)


class OuterLock:
    """The lock directory of one state root, which locks agents of the legacy protocol out; with warnings.

    `state` is the list as it is by now. `caller` returns the process that a session of the caller would stand
    for. Making one waits until the monotonic `deadline`, and raises HeldError then.
    """

    def __init__(
        self, root: Root, clock: Clock, state: State, caller: Callable[[], int | None], deadline: float
    ) -> None:
        self.warnings: list[str] = []
        self.state, self._caller = state, caller
        self._lock = mkdir_lock.SeedLock(root.path, clock)
        ours = _local_pids(state)
        self._holder = self._lock.acquire(os.getpid(), deadline=deadline, ours=ours, over=self._is_over)
        # Where `/tmp` cannot be written, as in the sandbox of `hs`, every verb would repeat the warning.
        if not self._holder and os.path.lexists(self._lock.path):
            self.warnings.append(f"{self._lock.path} cannot be used: legacy agents are not locked out")

    def _is_over(self, holder: mkdir_lock.Holder) -> bool:
        """Return whether a living holder without an open session holds nothing: its `stop` was killed.

        It is the caller itself, or was handed the directory for a session that is closed by now.
        """
        return holder.pid == self._caller() or (holder.handed and not self.state.is_legacy)

    def leave(self) -> None:
        """Hand the directory to the owner of the exclusive session that is open here, or free it without one.

        After every transaction, not only when the session begins: the directory may have been removed since,
        by a crash or by a cleanup of /tmp.
        """
        is_exclusive = self.state.session_config.concurrency_mode == "exclusive"
        pids = sorted(_local_pids(self.state)) if is_exclusive else ()
        owner = next(filter(process.alive, pids), None)
        try:
            if self._holder not in (0, owner):
                self._lock.release(self._holder, owner)
        except OSError as error:
            # The change is made; a directory that still names this process is taken over once it has ended.
            self.warnings.append(f"{self._lock.path} could not be released: {error.strerror or error}")


def _local_pids(state: State) -> frozenset[int]:
    # Inside and outside of a sandbox the same number is another process.
    machine = (os.uname().nodename, process.boot_id())
    return frozenset(
        s.pid
        for s in state.sessions or ()
        if s.pid is not None and (s.host, s.boot_id or machine[1]) == machine
    )

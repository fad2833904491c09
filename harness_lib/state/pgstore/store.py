"""Ask and change a list that PostgreSQL keeps; `harness-tasks.json` is its mirror on this machine.

A change is one transaction under the row lock of its list: what is decided in it is decided by the rules, as
for a list in a file. The answer to a COMMIT may be lost: each change has a name in the database, by which it
is found again.
Source: docs/many-machines.md.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timezone
from importlib import resources
from typing import NoReturn, TypeVar
from uuid import UUID, uuid4

import psycopg

from harness_lib import timestamps
from harness_lib.errors import EnvSetupError, HarnessError, HeldError, RefusedError
from harness_lib.rules import graph
from harness_lib.state import api, codec, journal, load, publishing, schema
from harness_lib.state.answers import Answers, Tx
from harness_lib.state.pgstore import connecting, rows, turns
from harness_lib.state.pgstore.connecting import Connection, Link
from harness_lib.state.pgstore.doubts import Doubt
from harness_lib.state.pgstore.mirror import Mirror
from harness_lib.state.pgstore.rows import Version
from harness_lib.state.reading import Problem
from harness_lib.state.upkeep import Upkeep
from harness_lib.system import state_lock
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.system.files import atomic
from harness_lib.system.place.roots import Root
from harness_lib.task import SessionConfig, State

Read = TypeVar("Read")

TIMEOUT_SECONDS = 30.0
ANSWER_SECONDS = 10.0
PAUSE_SECONDS = 0.5
LOOK_AGAIN_SECONDS = 2.0


def opened(root: Root, clock: Clock, *, offline: bool = False) -> PgStore:
    """Return the store of a project whose list is in a database. Raises EnvSetupError.

    `offline`: for an agent of a run, which sees the mirror and gets no connection.
    """
    link = Link.of(root)
    assert link is not None, "BUG: asked for a link where there is none."
    return PgStore(root, link, clock=clock, offline=offline)


def set_up(url: str) -> None:
    """Make what is missing of the tables in the database. Raises EnvSetupError."""
    text = resources.files("harness_lib.state.pgstore").joinpath("schema.sql").read_text(encoding="utf-8")
    with connecting.explained(url), connecting.connected(url) as conn, conn.transaction():
        conn.execute("select pg_advisory_xact_lock(hashtext('harness schema'))")
        with suppress(psycopg.errors.UndefinedTable), conn.transaction():
            row = conn.execute("select max(version) from harness.about").fetchone()
            connecting.require_schema(url, row[0] if row else None)
        conn.execute(text.encode())


class PgStore(Upkeep):
    """The list called `link.name` in the database at `link.url`, with the project's files at `root`.

    Times are those of the database, unless `tells_time`: then they are those of `clock`, for tests.
    `timeout`: seconds to wait for the database and for a change of another machine.
    """

    def __init__(
        self,
        root: Root,
        link: Link,
        *,
        clock: Clock = SYSTEM,
        tells_time: bool = False,
        offline: bool = False,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.root = root
        self.link = link
        self._clock = clock
        self._tells_time = tells_time
        self._offline = offline
        self._timeout = timeout
        self._warnings: list[list[str]] = []
        self._known: Version | None = None
        self._mirror = Mirror(root, clock)
        # The connection for questions; threads of a run share it.
        self._reader: Connection | None = None
        self._reading = threading.Lock()
        self._looked = float("-inf")

    # -- asking ---------------------------------------------------------------------------------------

    def ask(self) -> Answers:
        """Return the answers about the list; if the database is away, about the mirror, with a warning.

        Raises EnvSetupError (there is no mirror either, or no such list).
        """
        if self._offline:
            return Answers(load.find(self.root).state, self._clock.now())
        try:
            with connecting.explained(self.link.url, changes=False):
                version = self._read()
        except EnvSetupError as error:
            if not isinstance(error.__cause__, psycopg.OperationalError):
                raise
            return self._remembered(error)
        return Answers(
            version.state, self._moment(version), tuple(self._mirror.follow(version, self._moment))
        )

    def _remembered(self, error: EnvSetupError) -> Answers:
        """Return the answers about the mirror. Raises `error` if there is none."""
        try:
            state = load.find(self.root).state
        except HarnessError:
            raise error from None
        now = self._clock.now()
        return Answers(state, now, (f"{error.message} {self._mirror.age(now)}",))

    def ask_to_change(self) -> Answers:
        """Return the answers about the list in the database, waiting for it. Raises EnvSetupError."""
        self._require_connection()
        deadline = self._clock.monotonic() + self._timeout
        with connecting.explained(self.link.url):
            version = self._until(deadline, self._read)
        return Answers(version.state, self._moment(version))

    def _require_connection(self) -> None:
        if self._offline:
            raise EnvSetupError(
                "An agent of a run has no connection to the database of the list.",
                "The run records what it does; it goes on with its task.",
            )

    def exists(self) -> bool:
        """Return whether there is a list; that of a link exists."""
        return bool(self.link.uuid)

    def examine(self) -> api.Examined:
        """Return the problems of the list."""
        try:
            answers = self.ask()
        except codec.ContractError as error:
            return api.Examined(error.problems)
        document = codec.encode(answers.state)
        rings = (Problem("tasks", f"cycle: {graph.describe(ring)}") for ring in answers.cycles())
        return api.Examined((*schema.problems(document), *rings), answers)

    def whole(self) -> State:
        """Return the list as it is now. Raises EnvSetupError."""
        return self.ask().state

    def changes(self, since: object = None) -> api.Changes:
        """Return what has changed since the look with the mark `since`. Raises EnvSetupError."""
        with connecting.explained(self.link.url, changes=False):
            version = self._read()
        if not isinstance(since, Version) or not version.follows(since):
            return api.Changes(version, version.state.tasks, is_whole=True)
        places = version.state.changed_since(since.state)
        return api.Changes(version, tuple(version.state.tasks[place] for place in places), is_whole=False)

    def stamp(self) -> object:
        """Return a value that differs after each change that this machine knows of; looks every 2 s."""
        now = self._clock.monotonic()
        if now - self._looked >= LOOK_AGAIN_SECONDS:
            self._looked = now
            with suppress(EnvSetupError):
                self.ask()
        return self._known and self._known.number, super().stamp()

    def log_tail(self, lines: int = journal.TAIL_BYTES) -> list[str]:
        """Return the last lines of the log, also those of other machines if the database can be reached."""
        with suppress(EnvSetupError):
            self.ask()
        return super().log_tail(lines)

    def look(self, ask: Callable[[Connection, Version], Read]) -> Read:
        """Return what `ask` finds with a connection and the list as it is now. Raises EnvSetupError."""
        with connecting.explained(self.link.url, changes=False):
            version = self._read()
            with connecting.connected(self.link.url) as conn, connecting.limited(conn, ANSWER_SECONDS):
                return ask(conn, version)

    def _read(self) -> Version:
        """Return the list as it is now. Raises psycopg.Error, EnvSetupError."""
        with self._reading:
            for is_kept in (self._reader is not None, False):
                try:
                    return self._read_once()
                except psycopg.OperationalError:
                    if self._reader is not None:
                        self._reader.close()
                    self._reader = None
                    # A kept connection may have been cut long ago.
                    if not is_kept:
                        raise
        raise AssertionError("BUG: one of two tries returns or raises")

    def _read_once(self) -> Version:
        if self._reader is None or self._reader.closed:
            self._reader = connecting.connect(self.link.url)
            weakref.finalize(self, self._reader.close)
        conn = self._reader
        with connecting.limited(conn, ANSWER_SECONDS):
            try:
                rows.begin(conn, writes=False)
                self._known = self._accepted(rows.read(conn, self.link.name, self._known))
            finally:
                with suppress(psycopg.Error):
                    conn.rollback()
        return self._known

    def _accepted(self, version: Version | None) -> Version:
        """Return `version` if it is the list that this machine works on. Raises EnvSetupError."""
        if version is None:
            self._is_gone("There is no list called")
        connecting.require_schema(self.link.url, version.schema)
        if self.link.uuid and version.uuid != self.link.uuid:
            self._is_gone("Somebody has removed and made again")
        seen = max(self.link.mirrored, self._known.number if self._known else 0)
        if version.number < seen:
            raise EnvSetupError(
                f"{connecting.shown(self.link.url)} was set back, perhaps to a backup: its last change of "
                f"{self.link.name} is {version.number}, and this machine has seen {seen}.",
                f"See what {self.root.state} says that it lacks; to go on with what the database has: "
                "harness store check --repair",
            )
        return version

    def _is_gone(self, how: str) -> NoReturn:
        raise EnvSetupError(
            f"{how} {self.link.name} in {connecting.shown(self.link.url)}, so nothing was changed.",
            f"If it is there under another name, remove {self.root.link} and join it: "
            "harness store join URL --list NAME",
        )

    def _moment(self, version: Version) -> datetime:
        return self._clock.now() if self._tells_time else version.now.astimezone(timezone.utc)

    # -- the turns of machines that merge ---------------------------------------------------------------

    @property
    def shared(self) -> PgStore:
        """What a list of many machines has besides: the store itself."""
        return self

    @property
    def name(self) -> str:
        """The name of the list in the database."""
        return self.link.name

    def take_turn(self, branch: str, holder: str, seconds: float) -> int | None:
        """Let `holder` merge into `branch` for `seconds`; return its fence, None if it is another's turn."""
        return self._apart(lambda conn: turns.take(conn, self.name, branch, holder, seconds))

    def leave_turn(self, branch: str, holder: str) -> None:
        """End the turn of `holder`."""
        self._apart(lambda conn: turns.leave(conn, self.name, branch, holder))

    def turns(self) -> tuple[tuple[str, str], ...]:
        """Return the branches that somebody merges into now, each with the holder."""
        return self._apart(lambda conn: turns.now(conn, self.name))

    def _apart(self, ask: Callable[[Connection], Read]) -> Read:
        """Return the answer to `ask` of a connection of its own. Raises EnvSetupError."""
        with (
            connecting.explained(self.link.url, changes=False),
            connecting.connected(self.link.url) as conn,
            connecting.limited(conn, ANSWER_SECONDS),
        ):
            return ask(conn)

    # -- changing -------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """Lock the list in the database for one change.

        Raises HeldError, ContractError, EnvSetupError: then nothing was changed, or the message says that it
        is not known.
        """
        self._require_connection()
        with ExitStack() as stack, connecting.explained(self.link.url):
            deadline = self._clock.monotonic() + self._timeout
            lock = state_lock.StateLock(self.root.lock_file, timeout=self._timeout, clock=self._clock)
            with publishing.explained(self.root):
                stack.enter_context(lock)
            conn, old, warnings = self._until(deadline, lambda: self._begun(stack, deadline))
            tx = Tx(old.state, self._moment(old), warnings, name=self.root.state.name)
            self._warnings = [*filter(None, self._warnings), tx.warnings]
            try:
                yield tx
            finally:
                tx.close()
            self._known = self._write(conn, tx, old, deadline)
            tx.warnings += self._mirror.write(conn, self._known, self._moment(self._known))
            for act in tx.callbacks:
                tx.warnings += publishing.attempt("what follows it", act)

    def _begun(self, stack: ExitStack, deadline: float) -> tuple[Connection, Version, list[str]]:
        """Return a connection whose transaction has locked the list, the list, and warnings."""
        with ExitStack() as own:
            conn = own.enter_context(connecting.connected(self.link.url))
            left = deadline - self._clock.monotonic()
            own.enter_context(connecting.limited(conn, left + ANSWER_SECONDS))
            rows.begin(conn, writes=True, lock_seconds=left)
            old = self._accepted(rows.read(conn, self.link.name, self._known, lock=True))
            warnings = Doubt(self.root).answered(conn)
            stack.enter_context(own.pop_all())
        return conn, old, warnings

    def _write(self, conn: Connection, tx: Tx, old: Version, deadline: float) -> Version:
        """Write the change of `tx` and commit it; return the list as it is then."""
        if not (tx.changed or tx.lines):
            conn.execute("commit")
            return old
        state = old.state
        if tx.changed:
            publishing.check(tx.state, old.state)
            state = codec.sealed(tx.state, old.state)
            if tx.keeps_old:
                with publishing.explained(self.root):
                    text = codec.render(old.state, codec.task_texts(old.state.tasks, codec.NO_BLOCKS))
                    atomic.write(self.root.path / tx.keeps_old, text.encode())
        op = UUID(tx.op)
        new = rows.write(conn, old, state, tx.lines, op)
        doubt = Doubt(self.root)
        with publishing.explained(self.root):
            doubt.note(op)
        try:
            conn.execute("commit")
        except psycopg.OperationalError as error:
            self._find_out(doubt, error, deadline)
        doubt.forget()
        return new

    def _find_out(self, doubt: Doubt, error: psycopg.Error, deadline: float) -> None:
        """Return if the change of `doubt` was made although its answer was lost. Raises EnvSetupError."""

        def happened() -> bool:
            with connecting.connected(self.link.url) as conn:
                left = max(PAUSE_SECONDS, deadline - self._clock.monotonic())
                with connecting.limited(conn, left + ANSWER_SECONDS):
                    rows.begin(conn, writes=True, lock_seconds=left)
                    # Once the list is locked, the transaction in doubt has ended.
                    rows.read(conn, self.link.name, self._known, lock=True)
                    return doubt.has_happened(conn)

        try:
            made = self._until(deadline, happened)
        except (psycopg.Error, HarnessError) as again:
            raise EnvSetupError(
                "The connection to the database was lost while it made the change, and it is not known yet "
                "whether it was made.",
                "The next command that changes the list finds out: harness store check",
            ) from again
        doubt.forget()
        if not made:
            raise EnvSetupError(
                "The connection to the database was lost, and nothing was changed.", "Type the command again."
            ) from error

    def _until(self, deadline: float, act: Callable[[], Read]) -> Read:
        """Return what `act` does; while the database is away, try again until `deadline`."""
        while True:
            try:
                return act()
            except psycopg.errors.LockNotAvailable:
                raise
            except (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction):
                if self._clock.monotonic() + PAUSE_SECONDS >= deadline:
                    raise
            self._clock.sleep(PAUSE_SECONDS)

    # -- the list as a whole --------------------------------------------------------------------------

    def begin(self, settings: SessionConfig, message: str) -> tuple[str, ...]:
        """Make an empty list and its log, which begins with `message`; enable the hooks; return the names."""
        state = State(
            created=timestamps.render(self._clock.now()),
            session_config=settings._replace(concurrency_mode="concurrent"),
            sessions=(),
        )
        self.link = self.create(state)
        with publishing.explained(self.root):
            self.link.save(self.root)
        with self.transaction() as tx:
            tx.log("INIT", message, session=0)
        self.switch_hooks(on=True)
        return self.root.state.name, self.root.log.name, self.root.marker.name

    def create(self, state: State, lines: tuple[str, ...] = ()) -> Link:
        """Insert the list, with the `lines` of its log so far. Raises RefusedError if there is one."""
        publishing.check(state, State())
        with connecting.explained(self.link.url), connecting.connected(self.link.url) as conn:
            rows.begin(conn, writes=True, lock_seconds=self._timeout)
            empty = state._replace(tasks=())
            if not rows.create(conn, self.link.name, empty):
                raise RefusedError("This list exists already.", "Look at it with: harness status")
            first = rows.read(conn, self.link.name, None, lock=True)
            assert first is not None
            connecting.require_schema(self.link.url, first.schema)
            if state.tasks or lines:
                first = rows.write(conn, first, codec.sealed(state, empty), lines, uuid4())
            conn.execute("commit")
        # Whoever makes it has the log up to there.
        return self.link._replace(uuid=first.uuid, mirrored=first.number)

    def restore(self) -> tuple[str, ...]:
        """Refuse: a database has backups of its own."""
        raise RefusedError(
            "This list is kept in a database, which has backups of its own.",
            "Restore one there, then: harness store check",
        )

    def rename(self, name: str) -> None:
        """Give the list another name in the database: whoever works on it is told that it is gone.

        Raises HeldError if another machine has changed it since it was read here.
        """
        assert self._known is not None, "BUG: a list gets another name before it was read."
        seen = (name, self.link.name, self._known.number)
        with connecting.explained(self.link.url), connecting.connected(self.link.url) as conn:
            done = conn.execute("update harness.list set name = %s where name = %s and version = %s", seen)
        if not done.rowcount:
            raise HeldError("Another machine has changed the list meanwhile.", "Type the command again.")

    def drop(self) -> None:
        """Remove the list that was just made, as the move to it has failed. Raises EnvSetupError."""
        with connecting.explained(self.link.url), connecting.connected(self.link.url) as conn:
            conn.execute("delete from harness.list where uuid = %s", (self.link.uuid,))

    def go_on(self, seen: State, number: int) -> int:
        """Let a list that was set back go on after change `number`, with fences above those of `seen`.

        Return the number of the change that this is. Raises EnvSetupError, HeldError.
        """
        with connecting.explained(self.link.url), connecting.connected(self.link.url) as conn:
            rows.begin(conn, writes=True, lock_seconds=self._timeout)
            old = self._accepted(rows.read(conn, self.link.name, None, lock=True))
            fences = {task.id: task.fence for task in seen.tasks}
            tasks = tuple(
                task._replace(fence=max(task.fence, fences.get(task.id, 0))) for task in old.state.tasks
            )
            state = codec.sealed(old.state._replace(tasks=tasks), old.state)
            ids = {task.id for task in tasks}
            rows.keep_fences(conn, old.key, [task for task in seen.tasks if task.id not in ids])
            text = f"the database was set back: change {number} was seen, {old.number} is its last"
            line = journal.line("WARN", text, now=self._moment(old), session=state.session_count)
            new = rows.write(conn, old._replace(number=max(number, old.number)), state, [line], uuid4())
            rows.reshape(conn, old.key)
            conn.execute("commit")
        return new.number

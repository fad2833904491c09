"""Ask and change a list that PostgreSQL keeps; `harness-tasks.json` is its mirror on this machine.

A change is one transaction. A narrow one changes tasks and sessions, under the locks of their rows, beside
others of its kind; any other change has the list for itself. What is decided in them is decided by the rules,
as for a list in a file. The answer to a COMMIT may be lost: each change has a name in the database, by which
it is found again.
Source: docs/many-machines.md.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import NoReturn, TypeVar

import psycopg

from harness_lib import timestamps
from harness_lib.errors import (
    AwayError,
    EnvSetupError,
    HarnessError,
    HeldError,
    LocalBusyError,
    RefusedError,
)
from harness_lib.state import api, codec, journal, publishing, reading
from harness_lib.state.answers import Answers
from harness_lib.state.mirrored import Link, Mark, Mirrored
from harness_lib.state.pgstore import connecting, lists, mirror, rows
from harness_lib.state.pgstore.changing import RowsTx
from harness_lib.state.pgstore.moments import Looking, Moments
from harness_lib.system import fs, state_lock
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.system.place.roots import Root
from harness_lib.task import SessionConfig, State
from harness_lib.text import Strings

Read = TypeVar("Read")

TIMEOUT_SECONDS = 30.0
PAUSE_SECONDS = 0.5
LOOK_AGAIN_SECONDS = 2.0


def opened(root: Root, clock: Clock) -> PgStore:
    """Return the store of a project whose list is in a database. Raises EnvSetupError."""
    link = Link.of(root)
    assert link is not None, "BUG: asked for a link where there is none."
    return PgStore(root, link, clock=clock)


class PgStore(Mirrored):
    """The list called `link.name` in the database at `link.url`, with the project's files at `root`.

    `timeout`: seconds to wait for the database and for a change of another machine. `follows`: whether the
    files follow what is asked.
    """

    def __init__(
        self,
        root: Root,
        link: Link,
        *,
        clock: Clock = SYSTEM,
        timeout: float = TIMEOUT_SECONDS,
        follows: bool = True,
    ) -> None:
        super().__init__(root, clock)
        self._follows = follows
        self.mirror = mirror.Mirror(root, clock)
        self.moments = Moments(root, link, clock, self.mirror.remembered)
        self._timeout = timeout
        self._look_at = float("-inf")

    @property
    def link(self) -> Link:
        """Where the list is."""
        return self.moments.link

    @link.setter
    def link(self, link: Link) -> None:
        self.moments.work_on(link)

    # -- asking ---------------------------------------------------------------------------------------

    def ask(self) -> api.Questions:
        """Return the answers about the list; if the database is away, about the mirror, with a warning.

        Raises EnvSetupError (there is no mirror either, or no such list).
        """
        try:
            looking = self.moments.looked()
        except EnvSetupError as error:
            if not isinstance(error.__cause__, psycopg.OperationalError):
                raise
            return self.mirror.remembered(error)
        if self._follows:
            looking.warnings = tuple(self.mirror.follow(looking))
        return looking

    def ask_to_change(self) -> api.Questions:
        deadline = self._clock.monotonic() + self._timeout
        with connecting.explained(self.link.url):
            return self._until(deadline, self.look)

    def ask_now(self, *, waits: bool = True) -> api.Questions:
        deadline = self._clock.monotonic() + (self._timeout if waits else 0.0)

        def refused(error: EnvSetupError) -> NoReturn:
            raise error

        with connecting.explained(self.link.url, changes=False):
            return self._until(deadline, lambda: Looking(self.moments, self.moments.open(), refused))

    def whole(self) -> State:
        answers = self.ask()
        assert isinstance(answers, Answers | Looking)
        return answers.state

    def stamp(self) -> object:
        """Return a value that differs after each change that this machine knows of; looks about every 2 s."""
        now = self._clock.monotonic()
        if now >= self._look_at:
            # Machines that have seen the same change do not look together.
            self._look_at = now + LOOK_AGAIN_SECONDS * (0.5 + random.random())  # noqa: S311
            with suppress(EnvSetupError):
                self.ask()
        return self.moments.news, super().stamp()

    def log_tail(self, lines: int = journal.TAIL_BYTES, *, asked: bool = False) -> list[str]:
        """Return the last lines of the log, also those of other machines if the database can be reached."""
        if not asked:
            with suppress(EnvSetupError):
                self.ask()
        return super().log_tail(lines)

    def look(self) -> Looking:
        """Return the answers about the list in the database at this moment; raises as `Moments.open` does."""
        return Looking(self.moments, self.moments.open())

    def warn(self, *texts: str) -> None:
        """Let the reply of the command say `texts`, too."""
        self._warnings.append([*texts])

    # -- the turns of machines that merge ---------------------------------------------------------------

    def take_turn(self, branch: str, holder: str, seconds: float) -> int | None:
        values = {"name": self.name, "branch": branch, "holder": holder, "seconds": seconds}
        row = self.apart(lambda conn: conn.execute(lists.TAKE_TURN, values).fetchone())
        return None if row is None else int(row[0])

    def leave_turn(self, branch: str, holder: str) -> None:
        values = {"name": self.name, "branch": branch, "holder": holder}
        self.apart(lambda conn: conn.execute(lists.LEAVE_TURN, values))

    def turns(self) -> tuple[tuple[str, str], ...]:
        found = self.apart(lambda conn: conn.execute(lists.TURNS, {"name": self.name}).fetchall())
        return tuple((branch, holder) for branch, holder in found)

    def apart(self, ask: Callable[[connecting.Connection], Read]) -> Read:
        """Return the answer to `ask` of a connection without a transaction. Raises EnvSetupError."""
        with (
            connecting.explained(self.link.url, changes=False),
            self.moments.writer() as conn,
            connecting.limited(conn, connecting.ANSWER_SECONDS),
        ):
            return ask(conn)

    # -- changing -------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self, kind: api.Kind = "list") -> Iterator[RowsTx]:
        """Begin one change of the list.

        Raises HeldError, ContractError, EnvSetupError: then nothing was changed, or the message says that it
        is not known.
        """
        with ExitStack() as stack, connecting.explained(self.link.url):
            deadline = self._clock.monotonic() + self._timeout
            tx = self._until(deadline, lambda: self._begun(stack, deadline, is_narrow=kind == "tasks"))
            self._warnings = [*filter(None, self._warnings), tx.warnings]
            try:
                yield tx
                if tx.changed or tx.lines:
                    self._publish(tx, deadline)
                else:
                    tx.connection.execute("commit")
            finally:
                tx.close()
            if not tx.has_left:
                tx.warnings += self._follow(tx)
            for act in tx.callbacks:
                with publishing.attempt("what follows it", tx.warnings):
                    act()

    def _begun(self, stack: ExitStack, deadline: float, *, is_narrow: bool) -> RowsTx:
        """Return a change whose transaction has the locks that it needs.

        While the database is away, the lock of this machine is free: others would take it for a stuck one.
        """
        with ExitStack() as own:
            conn = own.enter_context(self.moments.writer())
            self._lock(own, deadline)
            doubt = Doubt(self.root)
            # A change in doubt may be under way beside others of its kind.
            shared = is_narrow and doubt.op is None
            left = deadline - self._clock.monotonic()
            own.enter_context(connecting.limited(conn, left + connecting.ANSWER_SECONDS))

            def begun() -> lists.Version:
                left = deadline - self._clock.monotonic()
                name, uuid = self.link.name, self.link.uuid
                seen = self.moments.seen
                found = lists.begin_change(conn, name, uuid, seen, lock_seconds=left, shared=shared)
                return self.moments.accepted(found, changes=True)

            def again(error: Exception) -> None:
                conn.rollback()
                self._pause(deadline, error)
                if begun().number != version.number and not is_narrow:
                    raise connecting.changed_meanwhile()

            version = begun()
            warnings = doubt.answered(conn)
            conn.begin_change(again)
            stack.enter_context(own.pop_all())
        return RowsTx(conn, version, warnings, self.moments, self.mirror, is_narrow=is_narrow)

    def _lock(self, stack: ExitStack, deadline: float) -> None:
        """Take the lock of this machine. Raises LocalBusyError."""
        left = max(0.0, deadline - self._clock.monotonic())
        lock = state_lock.StateLock(self.root.lock_file, timeout=left, clock=self._clock)
        try:
            with publishing.explained(self.root):
                stack.enter_context(lock)
        except HeldError as error:
            raise LocalBusyError(
                f"{error.message}. It may wait for the database, so nothing was changed.",
                "Type the command again.",
            ) from error

    def _publish(self, tx: RowsTx, deadline: float) -> None:
        """Write the change and commit it."""
        if tx.keeps_old:
            with publishing.explained(self.root):
                text = reading.render(tx.before)
                fs.write(self.root.path / tx.keeps_old, text.encode())
        doubt = Doubt(self.root)
        with publishing.explained(self.root):
            doubt.note(tx.op)
        try:
            tx.publish("commit")
        except (psycopg.Error, HarnessError) as error:
            if tx.connection.closed:
                self._find_out(doubt, error, deadline)
            else:
                doubt.forget()
                raise
        doubt.forget()

    def _follow(self, tx: RowsTx) -> list[str]:
        """Bring the files of this machine up to the list after the change; return warnings."""
        conn = tx.connection
        try:
            if not (tx.changed or tx.lines) and self.mirror.has(tx.version):
                return []
            if conn.closed:
                return self.mirror.write(self.look())
            reads = mirror.has_tasks(tx.version.total)
            return self.mirror.write(Looking(self.moments, self.moments.again(conn, reads=reads)))
        except (psycopg.Error, EnvSetupError) as error:
            return [f"The change is made, but {self.root.state.name} and the log are old: {error}"]

    def _find_out(self, doubt: Doubt, error: Exception, deadline: float) -> None:
        """Return if the change of `doubt` was made although its answer was lost. Raises AwayError."""

        def happened() -> bool:
            with connecting.connect(self.link.url) as conn:
                left = max(PAUSE_SECONDS, deadline - self._clock.monotonic())
                with connecting.limited(conn, left + connecting.ANSWER_SECONDS):
                    begun = lists.begin(conn, writes=True, lock_seconds=left)
                    # Once the list is locked, the transaction in doubt has ended.
                    lists.lock(conn, self.link.uuid)
                    made = doubt.has_happened(conn)
                    if not made:
                        # A standby may not have got so far yet.
                        lists.require_primary(begun)
                    return made

        try:
            made = self._until(deadline, happened)
        except (psycopg.Error, HarnessError) as again:
            raise AwayError(
                "The connection to the database was lost while it made the change, and it is not known yet "
                "whether it was made.",
                "The next command that changes the list finds out: harness store check",
            ) from again
        doubt.forget()
        if not made:
            raise AwayError(
                "The connection to the database was lost, and nothing was changed.", "Type the command again."
            ) from error

    def _until(self, deadline: float, act: Callable[[], Read]) -> Read:
        """Return what `act` does; while the database is away, try again until `deadline`."""
        while True:
            try:
                return act()
            except psycopg.errors.LockNotAvailable:
                raise
            except (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction) as error:
                self._pause(deadline, error)

    def _pause(self, deadline: float, error: Exception) -> None:
        """Wait before another try; raise `error` if there is no time for one."""
        if self._clock.monotonic() + PAUSE_SECONDS >= deadline:
            raise error
        self._clock.sleep(PAUSE_SECONDS)

    # -- the list as a whole --------------------------------------------------------------------------

    def begin(self, settings: SessionConfig, message: str) -> Strings:
        state = State(
            created=timestamps.render(self._clock.now()),
            session_config=settings._replace(concurrency_mode="concurrent"),
            sessions=(),
        )
        self.link = self.create(state)
        with publishing.explained(self.root):
            self.link.save(self.root)
        with self.transaction() as tx:
            tx.log("INIT", message, 0)
        self.enable_hooks()
        return self.root.state.name, self.root.log.name, self.root.enable_flag.name

    def create(self, state: State, lines: Strings = ()) -> Link:
        """Insert the list, with the `lines` of its log so far. Raises RefusedError if there is one."""
        publishing.check(state, State())
        with connecting.explained(self.link.url), connecting.connect(self.link.url) as conn:
            lists.begin(conn, writes=True, lock_seconds=self._timeout)
            # Harness has had the list in its hands from now on.
            shell = state._replace(proofs=True)
            if not lists.create(conn, self.link.name, shell):
                raise RefusedError("This list exists already.", "Look at it with: harness status")
            first = lists.read(conn, self.link.name)
            assert first is not None
            first.format.require(self.link.url, changes=True)
            sealed = codec.sealed(state._replace(sessions=state.sessions or ()), State())
            mine = rows.Rows(conn, first.key)
            mine.add(sealed.tasks)
            lists.put_proposals(mine, (), state.proposals)
            for session in state.sessions or ():
                lists.put_session(mine, session)
            lists.log(mine, os.urandom(16).hex(), lines)
            made = lists.read(conn, self.link.name)
            assert made is not None
            conn.execute("commit")
        # Whoever makes it has the log up to there.
        return self.link._replace(uuid=made.uuid, mirrored=made.number, op=made.op, mark=Mark(made.number))

    def drop(self) -> None:
        """Remove the list that was just made, as the move to it has failed. Raises EnvSetupError."""
        with connecting.explained(self.link.url), connecting.connect(self.link.url) as conn:
            conn.execute("delete from harness.list where uuid = %s", (self.link.uuid,))


class Doubt:
    """The last change of this machine whose fate is not known; read and written under the machine's lock."""

    def __init__(self, root: Root) -> None:
        self._file = root.private / "store-doubt.json"

    def note(self, op: str) -> None:
        """Write down that `op` is about to be committed. Raises OSError."""
        fs.write(self._file, json.dumps({"op": op}).encode(), durable=False, make=True)

    def forget(self) -> None:
        """Remove the note: the fate is known."""
        fs.remove(self._file)

    @property
    def op(self) -> str | None:
        """The change that is noted."""
        try:
            return str(json.loads(self._file.read_text(encoding="utf-8"))["op"])
        except (OSError, ValueError, KeyError):
            return None

    def has_happened(self, conn: connecting.Connection) -> bool:
        """Return whether the noted change was made. Raises psycopg.Error.

        The list is locked, so it is not under way any more.
        """
        return conn.execute("select from harness.event where op = %s limit 1", (self.op,)).rowcount == 1

    def answered(self, conn: connecting.Connection) -> list[str]:
        """Return a sentence about the noted change, if there is one, and forget it. Raises psycopg.Error."""
        if self.op is None:
            return []
        made = self.has_happened(conn)
        self.forget()
        fate = "its change was made" if made else "nothing of it was changed"
        return [f"The last command on this machine was cut off while it changed the list: {fate}."]

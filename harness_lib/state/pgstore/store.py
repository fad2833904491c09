"""Ask and change a list that PostgreSQL keeps; `harness-tasks.json` is its mirror on this machine.

A change is one transaction under the row lock of its list: what is decided in it is decided by the rules, as
for a list in a file. The answer to a COMMIT may be lost: each change has a name in the database, by which it
is found again.
Source: docs/many-machines.md.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timezone
from importlib import resources
from typing import NamedTuple, NoReturn
from uuid import UUID, uuid4

import psycopg

from harness_lib import timestamps
from harness_lib.errors import EnvSetupError, HeldError, RefusedError
from harness_lib.rules import graph
from harness_lib.state import api, codec, publishing, schema
from harness_lib.state.answers import Answers, Tx
from harness_lib.state.pgstore import rows
from harness_lib.state.pgstore.rows import Version
from harness_lib.state.reading import Problem
from harness_lib.state.upkeep import Upkeep
from harness_lib.system import state_lock
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.system.files import atomic
from harness_lib.system.place.roots import Root
from harness_lib.task import SessionConfig, State

TIMEOUT_SECONDS = 30.0
CONNECT_SECONDS = 5
PAUSE_SECONDS = 0.5
LOOK_AGAIN_SECONDS = 2.0


class Link(NamedTuple):
    """Where a list is: the address of the database, without a password, and the name of the list there.

    `mirrored`: the number of the change up to which the files of this machine have followed.
    """

    url: str
    name: str
    mirrored: int = 0

    @classmethod
    def of(cls, root: Root) -> Link | None:
        """Return the link of this project; None if its list is a file. Raises EnvSetupError."""
        try:
            document = json.loads((root.link).read_text(encoding="utf-8"))
            return cls(str(document["url"]), str(document["list"]), int(document["mirrored"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise EnvSetupError(
                f"{root.link} cannot be read: {error}.",
                "Join the list again: harness store join URL --list NAME",
            ) from error

    def save(self, root: Root) -> None:
        """Write the link. Raises OSError."""
        document = {"url": self.url, "list": self.name, "mirrored": self.mirrored}
        atomic.write(root.link, json.dumps(document).encode(), make=True)


def opened(root: Root, clock: Clock) -> PgStore:
    """Return the store of a project whose list is in a database. Raises EnvSetupError."""
    link = Link.of(root)
    assert link is not None, "BUG: asked for a link where there is none."
    return PgStore(root, link, clock=clock)


def set_up(url: str) -> None:
    """Make what is missing of the schema in the database. Raises EnvSetupError."""
    text = resources.files("harness_lib.state.pgstore").joinpath("schema.sql").read_text(encoding="utf-8")
    with _explained(url), _connected(url) as conn, conn.transaction():
        conn.execute("select pg_advisory_xact_lock(hashtext('harness schema'))")
        conn.execute(text.encode())


class PgStore(Upkeep):
    """The list called `link.name` in the database at `link.url`, with the project's files at `root`.

    Times are those of the database, but for a `clock` of a test. `timeout`: seconds to wait for the database
    and for a change of somebody else.
    """

    def __init__(
        self, root: Root, link: Link, *, clock: Clock = SYSTEM, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self.root = root
        self._clock = clock
        self._link = link
        self._timeout = timeout
        self._warnings: list[list[str]] = []
        self._known: Version | None = None
        self._reader: rows.Connection | None = None
        self._looked = float("-inf")

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for each in self._warnings for text in each))

    # -- asking ---------------------------------------------------------------------------------------

    def ask(self) -> Answers:
        with _explained(self._link.url):
            return self._answers(self._read())

    def ask_to_change(self) -> Answers:
        return self.ask()

    def exists(self) -> bool:
        with _explained(self._link.url):
            return self._number() is not None

    def examine(self) -> api.Examined:
        try:
            answers = self.ask()
        except codec.ContractError as error:
            return api.Examined(error.problems)
        document = codec.encode(answers.state)
        rings = (Problem("tasks", f"cycle: {graph.describe(ring)}") for ring in answers.cycles())
        return api.Examined((*schema.problems(document), *rings), answers)

    def stamp(self) -> object:
        now = self._clock.monotonic()
        if now - self._looked >= LOOK_AGAIN_SECONDS:
            self._looked = now
            with _explained(self._link.url):
                self._read()
                if self._known and self._known.number > self._link.mirrored:
                    self._follow()
        return self._known and self._known.number, self.hooks_are_on()

    def _read(self) -> Version:
        def read(conn: rows.Connection) -> Version | None:
            rows.begin(conn, writes=False)
            found = rows.read(conn, self._link.name, self._known)
            conn.execute("commit")
            return found

        found = self._with_reader(read)
        if found is None:
            self._is_gone()
        self._known = found
        return found

    def _number(self) -> int | None:
        return self._with_reader(lambda conn: rows.number(conn, self._link.name))

    def _with_reader(self, ask: Callable[[rows.Connection], rows.Read]) -> rows.Read:
        """Return the answer of the connection that is kept for questions; a broken one is made anew."""
        for is_kept in (self._reader is not None, False):
            try:
                if self._reader is None or self._reader.closed:
                    self._reader = _connect(self._link.url)
                    weakref.finalize(self, self._reader.close)
                return ask(self._reader)
            except psycopg.OperationalError:
                self._drop_reader()
                if not is_kept:
                    raise
        raise AssertionError("BUG: one of two tries returns or raises")

    def _drop_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    def _answers(self, version: Version) -> Answers:
        return Answers(version.state, self._moment(version))

    def _moment(self, version: Version) -> datetime:
        return version.now.astimezone(timezone.utc) if self._clock is SYSTEM else self._clock.now()

    def _is_gone(self) -> NoReturn:
        raise EnvSetupError(
            f"There is no list called {self._link.name} in {shown(self._link.url)}.",
            "It was renamed or removed there. Join another: harness store join URL --list NAME",
        )

    # -- changing -------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        with ExitStack() as stack, _explained(self._link.url):
            deadline = self._clock.monotonic() + self._timeout
            lock = state_lock.StateLock(self.root.lock_file, timeout=self._timeout, clock=self._clock)
            with publishing.explained(self.root):
                stack.enter_context(lock)
            conn = stack.enter_context(self._connected_until(deadline))
            rows.begin(conn, writes=True, lock_seconds=deadline - self._clock.monotonic())
            old = rows.read(conn, self._link.name, self._known, lock=True)
            if old is None:
                self._is_gone()
            warnings: list[str] = []
            tx = Tx(old.state, self._moment(old), warnings, name=self.root.state.name)
            self._warnings = [*filter(None, self._warnings), tx.warnings]
            try:
                yield tx
            finally:
                tx.close()
            new = old
            if tx.changed:
                publishing.check(tx.state, old.state)
                new = old._replace(state=codec.sealed(tx.state, old.state))
            if tx.changed or tx.lines:
                op = uuid4()
                number = rows.write(conn, self._link.name, old, new.state, tx.lines, op)
                new = new._replace(number=number)
                self._commit(conn, op, deadline)
            else:
                conn.execute("commit")
            self._known = new
            tx.warnings += self._mirror(conn)
            for act in tx.callbacks:
                tx.warnings += publishing.attempt("what follows it", act)

    def _commit(self, conn: rows.Connection, op: UUID, deadline: float) -> None:
        """Commit, and find out whether that happened if the answer is lost."""
        try:
            conn.execute("commit")
        except psycopg.OperationalError as error:
            try:
                with self._connected_until(deadline) as other:
                    happened = rows.has_happened(other, op)
            except psycopg.OperationalError:
                raise EnvSetupError(
                    "The connection to the database was lost while it made the change: whether that happened "
                    "is not known yet.",
                    "See it once the database is back: harness status",
                ) from error
            if not happened:
                raise EnvSetupError(
                    "The connection to the database was lost, and nothing was changed.",
                    "Type the command again.",
                ) from error

    def begin(self, settings: SessionConfig, message: str) -> tuple[str, ...]:
        state = State(
            created=timestamps.render(self._clock.now()),
            session_config=settings._replace(concurrency_mode="concurrent"),
            sessions=(),
        )
        self.create(state)
        with self.transaction() as tx:
            tx.log("INIT", message, session=0)
        self.switch_hooks(on=True)
        return self.root.state.name, self.root.log.name, self.root.marker.name

    def create(self, state: State) -> None:
        """Insert the list. Raises RefusedError if there is one of this name."""
        publishing.check(state, State())
        with _explained(self._link.url), _connected(self._link.url) as conn:
            rows.begin(conn, writes=True, lock_seconds=self._timeout)
            empty = state._replace(tasks=())
            if not rows.create(conn, self._link.name, empty):
                raise RefusedError("This list exists already.", "Look at it with: harness status")
            if state.tasks:
                first = Version(0, empty, self._clock.now())
                rows.write(conn, self._link.name, first, codec.sealed(state, empty), (), uuid4())
            conn.execute("commit")

    def restore(self) -> tuple[str, ...]:
        raise RefusedError(
            "This list is kept in a database, which has backups of its own.",
            "Restore one there, then: harness store check",
        )

    def rename(self, name: str) -> None:
        """Give the list another name in the database: whoever works on it is told that it is gone."""
        with _explained(self._link.url), _connected(self._link.url) as conn:
            conn.execute("update harness.list set name = %s where name = %s", (name, self._link.name))

    # -- beside the list ------------------------------------------------------------------------------

    def _mirror(self, conn: rows.Connection) -> list[str]:
        """Bring the files of this machine up to the known version; return warnings.

        Called under the lock of this machine. After a kill in between, lines of the log may come twice.
        """
        assert self._known is not None
        lines = rows.lines_since(conn, self._link.name, self._link.mirrored, self._known.number)
        warnings = publishing.append(self.root, lines)
        with _warned(warnings):
            moment = self._moment(self._known)
            warnings += publishing.publish(self.root, self._known.state, moment, old=None)
            self._link = self._link._replace(mirrored=self._known.number)
            with publishing.explained(self.root):
                self._link.save(self.root)
        return warnings

    def _follow(self) -> None:
        """Bring the files of this machine up to date, unless a command of it changes the list just now."""
        lock = state_lock.StateLock(self.root.lock_file, timeout=0.0, clock=self._clock)
        with suppress(HeldError), publishing.explained(self.root), lock, _connected(self._link.url) as conn:
            self._mirror(conn)

    @contextmanager
    def _connected_until(self, deadline: float) -> Iterator[rows.Connection]:
        """Yield a connection of its own; while there is none, try again until `deadline`."""
        while True:
            try:
                conn = _connect(self._link.url)
                break
            except psycopg.OperationalError:
                if self._clock.monotonic() + PAUSE_SECONDS >= deadline:
                    raise
                self._clock.sleep(PAUSE_SECONDS)
        with conn:
            yield conn


@contextmanager
def _warned(warnings: list[str]) -> Iterator[None]:
    """Turn an error about the mirror into a warning: the change is made."""
    try:
        yield
    except EnvSetupError as error:
        warnings.append(f"The change is made, but its mirror is old: {error}")


def shown(url: str) -> str:
    """Return `url` for messages, without a password."""
    with suppress(psycopg.Error):
        parts = psycopg.conninfo.conninfo_to_dict(url)
        return f"{parts.get('dbname', '')} at {parts.get('host', 'the local server')}"
    return "the database"


def _connect(url: str) -> rows.Connection:
    return psycopg.connect(
        url,
        autocommit=True,
        connect_timeout=CONNECT_SECONDS,
        application_name="harness",
        prepare_threshold=None,
    )


@contextmanager
def _connected(url: str) -> Iterator[rows.Connection]:
    with _connect(url) as conn:
        yield conn


@contextmanager
def _explained(url: str) -> Iterator[None]:
    """Turn errors of the driver into those of harness."""
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        raise HeldError(
            "Another machine has been changing the list for longer than usual, so nothing was changed.",
            "Type the command again.",
        ) from error
    except psycopg.Error as error:
        words = " ".join(str(error).split())
        raise EnvSetupError(
            f"The database {shown(url)} did not answer as it should, so nothing was changed: {words}",
            "See whether it can be reached: harness store status",
        ) from error

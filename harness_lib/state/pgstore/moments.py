"""The connections of this process to a list in a database, and the moments of the list that they see."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import NamedTuple, NoReturn

import psycopg
from psycopg.pq import TransactionStatus

from harness_lib.errors import EnvSetupError
from harness_lib.rules.stats import Counts
from harness_lib.state.answers import Answers
from harness_lib.state.mirrored import Link, Mark
from harness_lib.state.pgstore import connecting, lists, questions
from harness_lib.state.pgstore.connecting import Asking, Connection
from harness_lib.state.pgstore.lists import News, Seen, Version
from harness_lib.state.pgstore.rows import Rows
from harness_lib.system import fs
from harness_lib.system.clock import Clock
from harness_lib.system.place.roots import Root
from harness_lib.task import State, Task
from harness_lib.text import escape

# A moment that is looked at for longer is given up: old rows cannot go until then.
MOMENT_SECONDS = 5.0
# A connection that was used a moment ago need not be tried first.
FRESH_SECONDS = 2.0
MOVED = "(moved to a file "
# What answers from the files of this machine, or raises the error.
Remembered = Callable[[EnvSetupError], Answers]


class Known(NamedTuple):
    """The tasks of a list as this process has read them last, by their ids."""

    version: Version
    tasks: dict[str, Task]


class Moment:
    """A connection whose transaction sees the list as it was at one moment, as `version`.

    `news`: what `lists.news` says then of the mark `since`.
    """

    def __init__(self, conn: Connection, version: Version, since: Mark, news: News) -> None:
        self.conn, self.version = conn, version
        self.since, self.news = since, news


def _close(idle: deque[tuple[Asking, float]]) -> None:
    while idle:
        idle.pop()[0].close()


class Moments:
    """Opens moments of the list of `link`, for the project at `root`; `remembered` answers from its files.

    `news` counts how often one had new events.
    """

    def __init__(self, root: Root, link: Link, clock: Clock, remembered: Remembered) -> None:
        self.root, self.clock, self.remembered = root, clock, remembered
        self._known: Known | None = None
        # Connections that nobody uses now, and since when.
        self._idle: deque[tuple[Asking, float]] = deque()
        # What a signal has raised where Python would forget it.
        self._raised: KeyboardInterrupt | None = None
        weakref.finalize(self, _close, self._idle)
        self.news = 0
        self.work_on(link)

    def work_on(self, link: Link) -> None:
        """Let later moments be those of the list of `link`."""
        self.link = link
        # What this machine has seen of the events.
        self._mark = link.mark
        # The last of them.
        self.seen = Seen(link.mirrored, link.op)

    def open(self) -> Moment:
        """Return the present moment of the list in the database.

        Raises psycopg.Error (it cannot be reached), EnvSetupError (it is not the list of the link).
        """
        self._raise()
        while self._idle:
            with suppress(IndexError, psycopg.OperationalError):
                # It may have been cut long ago.
                return self._moment_of(self._idle.pop()[0])
        return self._moment_of(connecting.connect(self.link.url))

    def looked(self) -> Looking:
        """Return the answers about the present moment. Raises EnvSetupError."""
        with connecting.explained(self.link.url, changes=False):
            return Looking(self, self.open())

    def _moment_of(self, conn: Asking) -> Moment:
        conn.url = ""
        try:
            with connecting.limited(conn, connecting.ANSWER_SECONDS):
                moment = self.again(conn)
        except BaseException:
            conn.close()
            raise
        conn.url = self.link.url
        weakref.finalize(moment, self._end, conn).atexit = False
        return moment

    def _end(self, conn: Asking) -> None:
        """Give `conn` back when nobody can look at its moment any more.

        Python forgets what a finalizer raises: a Ctrl-C that comes now is raised by the next use of the list.
        """
        try:
            self._give_back(conn)
        except KeyboardInterrupt as error:
            self._raised = error

    def _raise(self) -> None:
        error, self._raised = self._raised, None
        if error is not None:
            raise error

    def _give_back(self, conn: Asking) -> None:
        """End the moment that `conn` sees, and keep it for the next one."""
        try:
            if conn.info.transaction_status != TransactionStatus.IDLE:
                with connecting.limited(conn, 1.0):
                    conn.rollback()
            self._idle.append((conn, self.clock.monotonic()))
        except (psycopg.Error, OSError):
            conn.close()
        except BaseException:
            conn.close()
            raise

    def again(self, conn: Connection, *, reads: bool = False) -> Moment:
        """Return the present moment on `conn`, which is free; count it if it has new events.

        `reads`: all tasks are read, in the same round trip, and the moment has ended then.
        Raises as `open` does.
        """
        since, known = self._mark, self._known
        reads_from = None if not reads else known.version.xmin if known else 0
        found, news, changed = lists.look(conn, self.link.name, self.seen, since, reads_from)
        version = self.accepted(found, changes=False)
        if reads:
            if known and not version.follows(known.version):
                self._known = None
                return self.again(conn, reads=True)
            self._know(version, known, changed)
        self.seen = max(self.seen, Seen(version.number, version.op))
        if news[0]:
            self._mark = news[1]
            self.news += 1
        return Moment(conn, version, since, news)

    def _know(self, version: Version, known: Known | None, changed: Iterable[Task]) -> Known:
        tasks = {task.id: task for task in changed}
        self._known = Known(version, known.tasks | tasks if known else tasks)
        return self._known

    def read_tasks(self, mine: Rows, version: Version, *, keep: bool) -> tuple[Task, ...]:
        """Return all tasks; only those are read that have changed since this process has read them last.

        `keep`: they are as committed.
        """
        before = self._known
        known = before if before and version.follows(before.version) else None
        if not known or known.version is not version:
            changed = mine.changed(known.version.xmin if known else 0)
            known = self._know(version, known, changed)
        if not keep:
            self._known = before
        return tuple(known.tasks.values())

    def accepted(self, version: Version | None, *, changes: bool) -> Version:
        """Return `version` if it is the list that this machine works on. Raises EnvSetupError."""
        if not version:
            self._is_gone("There is no list called")
        version.format.require(self.link.url, changes=changes)
        if self.link.uuid and version.uuid != self.link.uuid:
            self._is_gone("Somebody has removed and made again")
        if not version.goes_on or version.number < self.seen.number:
            raise EnvSetupError(
                f"{connecting.shown(self.link.url)} was set back, perhaps to a backup, or by a failover to a "
                f"standby that lacked the last changes: event {self.seen.number} of {self.link.name} is not "
                "there, which this machine has seen.",
                f"See what {self.root.state} says that it lacks; to go on with what the database has: "
                "harness store check --repair",
            )
        return version

    def _is_gone(self, how: str) -> NoReturn:
        if not self.link.uuid:
            raise EnvSetupError(
                f"{how} {self.link.name} in {connecting.shown(self.link.url)}, or you have no role in it.",
                "A machine that works on it tells its name: harness store status. Lists are made by: harness "
                "store move URL --list NAME",
            )
        now = self._name_now()
        if self.link.moving and MOVED in now:
            fs.remove(self.root.link)
            raise EnvSetupError(
                f"{self.link.name} was moved to {self.root.state}, and harness was cut off at the end.",
                "It is complete now: type the command again.",
            )
        gone = f"{how} {self.link.name} in {connecting.shown(self.link.url)}, so nothing was changed."
        if now == self.link.name:
            # A link that is removed knows no more what this machine has seen.
            raise EnvSetupError(f"{gone} It is there again now.", "Type the command again.")
        join = "join it: harness store join URL --list NAME"
        if MOVED in now:
            raise EnvSetupError(
                f"{gone} Another machine has moved it to its file; {now} is what it was then.",
                f"Go on there, or move it back there: harness store move URL --list NAME; then {join}",
            )
        called = f" It is called {now} there now." if now else ""
        raise EnvSetupError(f"{gone}{called}", f"If it is there under another name, {join}")

    def _name_now(self) -> str:
        """Return the name that the list of the link has now; "" if it is gone."""
        query = "select name from harness.list where uuid = %s"
        with (
            connecting.connect(self.link.url) as conn,
            connecting.limited(conn, connecting.ANSWER_SECONDS),
        ):
            row = conn.execute(query, (self.link.uuid,)).fetchone()
        return escape(row[0]) if row else ""

    def time_of(self, version: Version) -> datetime:
        """Return when the list was as `version`, by the clock of the database."""
        return version.now.astimezone(timezone.utc)

    @contextmanager
    def writer(self) -> Iterator[Asking]:
        """Yield a connection for a change, and keep it for the next one if nothing has gone wrong."""
        conn = self._kept()
        try:
            yield conn
        except BaseException:
            conn.close()
            raise
        self._give_back(conn)

    def _kept(self) -> Asking:
        """Return a connection that answers, perhaps one that was used before. Raises psycopg.Error."""
        self._raise()
        while self._idle:
            with suppress(IndexError, psycopg.OperationalError):
                conn, since = self._idle.pop()
                conn.url = ""
                if self.clock.monotonic() - since > FRESH_SECONDS:
                    with connecting.limited(conn, 1.0):
                        conn.execute("")
                return conn
        return connecting.connect(self.link.url)


class Looking(questions.RowsAnswers):
    """The answers about the list as it was at one moment.

    After `MOMENT_SECONDS` without a question, they are about a later moment.
    """

    def __init__(self, moments: Moments, moment: Moment, remembered: Remembered | None = None) -> None:
        self._moments, self._from_files = moments, remembered or moments.remembered
        self._looked = moments.clock.monotonic()
        super().__init__(moments.time_of(moment.version))
        self._be_at(moment)

    def _be_at(self, moment: Moment) -> None:
        self._moment, self._open_sessions = moment, lists.sessions_of(moment.version.sessions)
        self._answers: Answers | None = None
        self._counts: Counts | None = None
        self._shell, self._cyclic = moment.version.shell, moment.version.cyclic

    @property
    def version(self) -> Version:
        """The version of the list that is asked about."""
        return self._moment.version

    def news(self, mark: Mark) -> News:
        """Return what has happened since `mark`. Raises EnvSetupError."""
        moment = self._moment
        if mark == moment.since:
            return moment.news
        return lists.news(self.rows, self.version, mark)

    @property
    def rows(self) -> Rows:
        now = self._moments.clock.monotonic()
        if self._moment.conn.closed or now - self._looked > MOMENT_SECONDS:
            with connecting.explained(self._moments.link.url, changes=False):
                self._be_at(self._moments.open())
        self._looked = now
        return Rows(self._moment.conn, self.version.key)

    def _remembered(self, error: EnvSetupError) -> Answers:
        return self._from_files(error)

    def counts(self) -> Counts:
        # Many questions ask for them. The moment may be given up by now.
        _ = self.rows
        if not self._counts:
            self._counts = super().counts()
        return self._counts

    def _all(self) -> Answers:
        if not self._answers:
            tasks = self._moments.read_tasks(self.rows, self.version, keep=True)
            self._answers = Answers(self._shell._replace(tasks=tasks, sessions=self.sessions()), self.now)
        return self._answers

    @property
    def state(self) -> State:
        """The list that is asked about; only `harness_lib.state` uses it."""
        return self._all().state

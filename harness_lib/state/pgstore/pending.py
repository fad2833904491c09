"""What a change of a list in a database has read and is still to write: questions see it so."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from harness_lib.errors import EnvSetupError
from harness_lib.state import codec, reading
from harness_lib.state.answers import Answers
from harness_lib.state.codec import ContractError
from harness_lib.state.pgstore import columns, questions, rows
from harness_lib.state.pgstore.connecting import Connection
from harness_lib.state.pgstore.mirror import Mirror
from harness_lib.state.pgstore.moments import Looking, Moments
from harness_lib.state.pgstore.questions import RowsAnswers
from harness_lib.state.pgstore.repeating import LOCKS, Asking
from harness_lib.state.pgstore.versions import Version
from harness_lib.state.reading import Problem
from harness_lib.task import State, Task


class Pending(RowsAnswers):
    """What is asked and written in a change whose transaction is open on `conn`; `version` is what it found.

    `is_narrow`: others may change tasks and sessions meanwhile. Then it locks each task that it asks for by
    name or takes next, changes neither dependencies nor settings, and adds and removes no task.
    Once it has ended, another look is asked.
    """

    warnings: list[str]

    def __init__(
        self,
        conn: Asking,
        version: Version,
        warnings: list[str],
        moments: Moments,
        mirror: Mirror,
        *,
        is_narrow: bool,
    ) -> None:
        super().__init__(moments.time_of(version), warnings)
        self._open_sessions = rows.sessions_of(version.sessions)
        self.warnings = warnings
        # Without `uuid`, as in `answers`.
        self.op = os.urandom(16).hex()
        self.lines: list[str] = []
        self.callbacks: list[Callable[[], None]] = []
        # The name under which the list as it was is kept in a file.
        self.keeps_old = ""
        self.has_left = False
        self._key, self._shell, self._cyclic = version.key, version.shell, version.cyclic
        self._conn, self._version, self._moments, self._mirror = conn, version, moments, mirror
        self._is_narrow = is_narrow
        self._after: Looking | None = None
        self.before = State()
        self._changed = False
        self._open = True
        self._answers: Answers | None = None
        # Tasks as they are in this change, each with the `ver` of its row; those still to be written.
        self._tasks: dict[str, Task] = {}
        self._vers: dict[str, int] = {}
        self._dirty: dict[str, Task] = {}
        self._added: dict[str, Task] = {}
        self._removed: dict[str, Task] = {}
        self._held: set[str] = set()
        self._rewired: set[str] = set()
        self._rewritten: set[str] = set()
        # What would break the contract, by what it is about: the end of the change refuses it.
        self._broken: dict[str, list[Problem]] = {}

    # -- asking ---------------------------------------------------------------------------------------

    @property
    def connection(self) -> Asking:
        """The connection of the change; only `pgstore` uses it."""
        return self._conn

    @property
    def version(self) -> Version:
        """The list as it was when the change began; only `pgstore` uses it."""
        return self._version

    @property
    def total(self) -> int:
        """How many tasks the list had when the change began."""
        return self._version.total

    def _connection(self) -> Connection:
        if not self._open:
            self._after = self._after or self._moments.looked()
            return self._after.connection
        self._flush()
        return self._conn

    @property
    def _needs_database(self) -> bool:
        return self._open

    def _remembered(self, error: EnvSetupError) -> Answers:
        return self._moments.remembered(error)

    def _find(self, query: str, *values: object) -> tuple[Task, ...]:
        tasks = []
        for task, ver in rows.tasks(self._connection(), query, self._key, *values):
            if self._vers.get(task.id) != ver:
                # The change of another process is seen only before the row is locked.
                self._tasks[task.id] = task
                self._vers[task.id] = ver
            tasks.append(self._tasks[task.id])
        return tuple(tasks)

    def _locked(self, query: str, how: str, *values: object) -> Task | None:
        """Return the task that `query` finds; of a narrow change nobody else may change it from now on."""
        found = self._one(query + (how if self._is_narrow and self._open else ""), *values)
        if found is not None:
            self._held.add(found.id)
        return found

    def task(self, task_id: str, how: str = LOCKS) -> Task | None:
        if task_id in self._added or task_id in self._held:
            return self._tasks[task_id]
        return self._locked("list = %s and id = %s", how, columns.text_key(task_id))

    def task_if_free(self, task_id: str) -> Task | None:
        return self.task(task_id, f"{LOCKS} skip locked")

    def next_ready(self, without: Sequence[str] = ()) -> Task | None:
        names = [*map(columns.text_key, without)]
        return self._locked(questions.NEXT, f"{LOCKS} skip locked", names)

    @property
    def session_count(self) -> int:
        if self._is_narrow and self._open:
            # Whoever begins a session gets a number of its own.
            query = f"select session_count from harness.list where key = %s{LOCKS}"
            row = self._conn.execute(query.encode(), (self._key,)).fetchone()
            count = max(self._shell.session_count, row[0] if row else 0)
            # Somebody may have opened one before that.
            self._open_sessions = None
            self._shell = self._shell._replace(session_count=count)
        return self._shell.session_count

    def held_by(self, worker: str) -> Task | None:
        key = columns.text_key(worker)
        return self._locked(questions.HELD, LOCKS, key) if worker else None

    def _all(self) -> Answers:
        conn = self._connection()
        if self._answers is None:
            # What was removed here is gone for this change only.
            version = self._version._replace(reshaped=-1) if self._removed else self._version
            tasks = self._moments.read_tasks(conn, version, keep=False)
            mine = tuple(self._tasks.get(task.id, task) if task.id in self._vers else task for task in tasks)
            self._answers = Answers(self._shell._replace(tasks=mine, sessions=self.sessions()), self.now)
        return self._answers

    @property
    def state(self) -> State:
        """The list as it is in this change; only `harness_lib.state` uses it."""
        return self._all().state

    # -- writing --------------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Write the tasks that were changed, so that SQL finds them; what breaks the contract is left out."""
        added, dirty = self._valid(self._added), self._valid(self._dirty)
        self._added, self._dirty = {}, {}
        if added:
            rows.add(self._conn, self._key, added)
            self._rewired.update(task.id for task in added if task.depends_on)
            found = rows.tasks(self._conn, "list = %s and id = any(%s)", self._key, [*map(_key, added)])
            for task, ver in found:
                self._vers[task.id] = ver
                self._tasks[task.id] = self._tasks[task.id]._replace(fence=task.fence)
        if dirty:
            pairs = [(task, self._vers[task.id]) for task in dirty]
            rows.change(self._conn, self._key, pairs, self._rewritten)
            for task in dirty:
                self._vers[task.id] += 1
            rows.put_edges(self._conn, self._key, [task for task in dirty if task.id in self._rewired])
        if (added or dirty) and self._rewired and not self._cyclic:
            query = "select cyclic from harness.list where key = %s"
            self._cyclic = bool((self._conn.execute(query, (self._key,)).fetchone() or (False,))[0])

    def _valid(self, changed: dict[str, Task]) -> list[Task]:
        return list(map(codec.sealed_task, filter(self._keeps_contract, changed.values())))

    def _keeps_contract(self, task: Task) -> bool:
        problems = codec.record_problems(Task, reading.written(task), f"task {reading.show(task.id)}")
        self._broken.pop(task.id, None)
        if problems:
            self._broken[task.id] = problems
        return not problems

    def publish(self, *last: str) -> None:
        """Write what is left to be written, then send `last`: in one round trip if it can be.

        Raises ContractError if the list would break the contract.
        """
        if self._added or self._rewired or self._removed:
            self._flush()
        dirty = self._valid(self._dirty)
        if self._changed:
            self._require_contract()
        if self._cyclic and (self._rewired or self._removed):
            # A ring may have been cut.
            tasks = tuple(map(_reopened, self.state.tasks))
            rings = Answers(self.state._replace(tasks=tasks), self.now).cycles()
            self._conn.execute("update harness.list set cyclic = %s where key = %s", (bool(rings), self._key))

        def then() -> None:
            if self._changed:
                self._write_shell()
            rows.log(self._conn, self._key, self.op, self.lines)
            for statement in last:
                self._conn.execute(statement.encode())

        self._dirty = {}
        pairs = [(task, self._vers[task.id]) for task in dirty]
        rows.change(self._conn, self._key, pairs, self._rewritten, then)

    def _require_contract(self) -> None:
        problems = codec.shell_problems(reading.encode_shell(self._shell))
        problems += [problem for each in self._broken.values() for problem in each]
        gone = self._removed.keys() - self._tasks.keys()
        if (self._rewired or gone) and rows.lacks_needs(self._conn, self._key, self._rewired, gone):
            problems += codec.links((task.id, task.depends_on) for task in self.state.tasks)
        if problems:
            raise ContractError(problems, "the change would break harness-tasks.json")

    def _write_shell(self) -> None:
        old, new = self._version.shell, self._shell
        if (new.session_count, new.last_session) != (old.session_count, old.last_session):
            # Of a narrow change others may have counted meanwhile.
            least = "greatest(session_count, %s)" if self._is_narrow else "%s"
            query = f"update harness.list set session_count = {least}, last_session = %s where key = %s"
            self._conn.execute(query.encode(), (new.session_count, new.last_session, self._key))
        more = new.attempts_reset - old.attempts_reset
        if more:
            query = "update harness.list set attempts_reset = attempts_reset + %s where key = %s"
            self._conn.execute(query.encode(), (more, self._key))
        rows.put_proposals(self._conn, self._key, old.proposals, new.proposals)
        text = rows.shell_text(new)
        if text != rows.shell_text(old):
            self._conn.execute("update harness.list set shell = %s where key = %s", (text, self._key))

    def close(self) -> None:
        """Refuse changes from now on: they would never be published."""
        self._open = False
        self._conn.end_change()


def _key(task: Task) -> str:
    return columns.text_key(task.id)


def _reopened(task: Task) -> Task:
    """Return `task` as if it were not completed: it may be so again, and close a ring then."""
    return task._replace(status="pending")

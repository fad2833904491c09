"""One change of a list in a database: what is asked in it sees the changes so far."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from harness_lib import timestamps
from harness_lib.errors import EnvSetupError
from harness_lib.rules import arrows, graph, selection, transitions
from harness_lib.state import api, codec, mirrored, publishing, reading
from harness_lib.state.answers import Answers, Change
from harness_lib.state.pgstore import lists, questions, rows
from harness_lib.state.pgstore.connecting import LOCKS, Asking, changed_meanwhile
from harness_lib.state.pgstore.mirror import Mirror
from harness_lib.state.pgstore.moments import Looking, Moments
from harness_lib.state.pgstore.rows import Rows
from harness_lib.task import Session, State, Task


class RowsTx(Change, questions.RowsAnswers, api.Tx):
    """A change whose transaction is open on `connection`; `version` is the list as it was when that began.

    `is_narrow`: others may change tasks and sessions meanwhile. Then it locks each task that it asks for by
    name or takes next, changes neither dependencies nor settings, and adds and removes no task.
    Once it has ended, another look is asked.
    """

    warnings: list[str]
    changed = False

    def __init__(
        self,
        connection: Asking,
        version: lists.Version,
        warnings: list[str],
        moments: Moments,
        mirror: Mirror,
        *,
        is_narrow: bool,
    ) -> None:
        super().__init__(moments.time_of(version), warnings)
        self._open_sessions = lists.sessions_of(version.sessions)
        # The name of this change. Without `uuid`, which each verb that changes the list would have to load.
        self.op = os.urandom(16).hex()
        self.lines = []
        self.callbacks = []
        # The name under which the list as it was is kept in a file.
        self.keeps_old = ""
        self.has_left = False
        self._shell, self._cyclic = version.shell, version.cyclic
        self.connection, self.version, self._moments, self._mirror = connection, version, moments, mirror
        self._mine = Rows(connection, version.key)
        self._is_narrow = is_narrow
        self._after: Looking | None = None
        self.before = State()
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
        self._broken: dict[str, list[reading.Problem]] = {}

    # -- asking ---------------------------------------------------------------------------------------

    @property
    def rows(self) -> Rows:
        if not self._open:
            self._after = self._after or self._moments.looked()
            return self._after.rows
        self._flush()
        return self._mine

    @property
    def _needs_database(self) -> bool:
        return self._open

    def _remembered(self, error: EnvSetupError) -> Answers:
        return self._moments.remembered(error)

    def _find(self, query: str, *values: object) -> tuple[Task, ...]:
        tasks = []
        for task, ver in self.rows.tasks(query, *values):
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
        return self._locked("id = %s", how, rows.text_key(task_id))

    def task_if_free(self, task_id: str) -> Task | None:
        return self.task(task_id, f"{LOCKS} skip locked")

    def next_ready(self, without: Sequence[str] = ()) -> Task | None:
        names = [*map(rows.text_key, without)]
        return self._locked(questions.NEXT, f"{LOCKS} skip locked", names)

    @property
    def session_count(self) -> int:
        if self._is_narrow and self._open:
            # Whoever begins a session gets a number of its own.
            query = f"select session_count from harness.list where key = %s{LOCKS}"
            count = max(self._shell.session_count, self._mine.value(query))
            # Somebody may have opened one before that.
            self._open_sessions = None
            self._shell = self._shell._replace(session_count=count)
        return self._shell.session_count

    def held_by(self, worker: str) -> Task | None:
        key = rows.text_key(worker)
        return self._locked(questions.HELD, LOCKS, key) if worker else None

    def _all(self) -> Answers:
        mine = self.rows
        if not self._answers:
            # What was removed here is gone for this change only.
            version = self.version._replace(reshaped=-1) if self._removed else self.version
            tasks = self._moments.read_tasks(mine, version, keep=False)
            now = tuple(self._tasks.get(task.id, task) for task in tasks)
            self._answers = Answers(self._shell._replace(tasks=now, sessions=self.sessions()), self.now)
        return self._answers

    @property
    def state(self) -> State:
        """The list as it is in this change; only `harness_lib.state` uses it."""
        return self._all().state

    # -- changing ------------------------------------------------------------------------------------

    def replace(self, task: Task) -> None:
        self._assert_open()
        seen = self._vers.get(task.id)
        before = self.task(task.id)
        assert before is not None, f"BUG: there is no task {task.id} to replace"
        if seen not in (None, self._vers.get(task.id)):
            raise changed_meanwhile(task.id)
        if before.depends_on != task.depends_on:
            self._assert_wide()
            self._rewired.add(task.id)
        if rows.is_rewritten(before, task):
            self._rewritten.add(task.id)
        self._touch()
        self._tasks[task.id] = task
        if task.id in self._added:
            self._added[task.id] = task
        else:
            self._dirty[task.id] = task

    def add(self, tasks: Iterable[Task]) -> None:
        self._assert_wide()
        self._touch()
        added = list(tasks)
        known = {task.id for task in self.tasks(task.id for task in added)}
        for task in added:
            if task.id in known or task.id in self._added:
                name = f"task {reading.show(task.id)}"
                self._broken[name] = [reading.Problem(name, "has an id that another task has already")]
            else:
                self._added[task.id] = self._tasks[task.id] = task

    def remove(self, task_id: str) -> None:
        self._assert_wide()
        task = self.task(task_id)
        assert task is not None, f"BUG: there is no task {task_id} to remove"
        self._flush()
        self._forget(task)
        self._mine.remove([task])
        self._removed[task_id] = task
        self.forget_attempts(task.attempts)

    def _forget(self, task: Task) -> None:
        for known in (self._tasks, self._vers, self._broken):
            known.pop(task.id, None)
        self._rewired.discard(task.id)
        self._held.discard(task.id)

    def validate_dependencies(self) -> tuple[selection.Finding, ...]:
        findings = []
        for finding in self.unreachable():
            task = self.task(finding.task_id)
            # Another process may have been faster.
            if task and arrows.may("doom", task) and not selection.is_permanent(task):
                self.replace(transitions.doom(task, now=self.now, message=finding.message))
                findings.append(finding)
        return tuple(findings)

    def start_over(self) -> str:
        self._assert_wide()
        self.keeps_old = f"{self._moments.root.state.name}.old-{self.now:%Y%m%dT%H%M%SZ}"
        self.before = self.state
        for task in self.before.tasks:
            self._forget(task)
            self._removed[task.id] = task
        self._mine.remove(list(self._removed.values()))
        self._mine.ask("delete from harness.session where list = %s")
        self._open_sessions = None
        self._put_shell(
            State(
                created=timestamps.render(self.now),
                session_config=self._shell.session_config,
                sessions=(),
                proofs=True,
            )
        )
        return self.keeps_old

    def leave(self, name: str) -> None:
        """Give the list a name under which nobody works, and write it into the file of this machine."""
        self._assert_wide()
        self.has_left = True
        state, root = self.state, self._moments.root
        self._mine.put("name = %s", name)
        link = mirrored.Link.of(root) or self._moments.link
        news, _ = lists.news(self._mine, self.version, link.mark)
        self.warnings += self._mirror.keep_edited()
        self.warnings += publishing.append(root, [*filter(None, news), *self.lines])
        with publishing.explained(root):
            link._replace(moving=True).save(root)
        self.warnings += publishing.publish(root, state, self.now, old=None)

    def rewrite(self) -> None:
        self._touch()

    def add_session(self, session: Session) -> None:
        self._put_session(session)

    def replace_session(self, session: Session, number: int | None = None) -> None:
        self._put_session(session, session.number if number is None else number)

    def _put_session(self, session: Session, number: int | None = None) -> None:
        self._touch()
        name = f"session {session.number}"
        problems = codec.record_problems(Session, reading.written(session), name)
        if problems:
            self._broken[name] = problems
        else:
            lists.put_session(self._mine, session, number)
        self._open_sessions = None

    def remove_session(self, number: int) -> None:
        self._assert_open()
        self._mine.ask("delete from harness.session where list = %s and number = %s", number)
        self._open_sessions = None
        self.note_session()

    def _put_shell(self, shell: State) -> None:
        self._touch()
        self._shell = shell

    def _touch(self) -> None:
        self._assert_open()
        self.changed = True
        self._answers = None

    # -- writing --------------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Write the tasks that were changed, so that SQL finds them; what breaks the contract is left out."""
        added, dirty = self._valid(self._added), self._valid(self._dirty)
        self._added, self._dirty = {}, {}
        if added:
            self._mine.add(added)
            self._rewired.update(task.id for task in added if task.depends_on)
            ids = [rows.text_key(task.id) for task in added]
            for task, ver in self._mine.tasks("id = any(%s)", ids):
                self._vers[task.id] = ver
                self._tasks[task.id] = self._tasks[task.id]._replace(fence=task.fence)
        if dirty:
            pairs = [(task, self._vers[task.id]) for task in dirty]
            self._mine.change(pairs, self._rewritten)
            for task in dirty:
                self._vers[task.id] += 1
            self._mine.put_edges([task for task in dirty if task.id in self._rewired])
        if (added or dirty) and self._rewired and not self._cyclic:
            query = "select cyclic from harness.list where key = %s"
            self._cyclic = bool(self._mine.value(query))

    def _valid(self, changed: dict[str, Task]) -> list[Task]:
        """Return those of the `changed` tasks that keep the contract; note the problems of the others."""
        for task in changed.values():
            name = f"task {reading.show(task.id)}"
            self._broken[task.id] = codec.record_problems(Task, reading.written(task), name)
        return [codec.sealed_task(task) for task in changed.values() if not self._broken[task.id]]

    def publish(self, *last: str) -> None:
        """Write what is left to be written, then send `last`: in one round trip if it can be.

        Raises ContractError if the list would break the contract.
        """
        if self._added or self._rewired or self._removed:
            self._flush()
        dirty = self._valid(self._dirty)
        if self.changed:
            self._require_contract()
        if self._cyclic and (self._rewired or self._removed):
            # A ring may have been cut. What is completed may be to do again, and close one then.
            rings = graph.cycles(task._replace(status="pending") for task in self.state.tasks)
            self._mine.put("cyclic = %s", bool(rings))

        def then() -> None:
            if self.changed:
                self._write_shell()
            lists.log(self._mine, self.op, self.lines)
            for statement in last:
                self.connection.execute(statement.encode())

        self._dirty = {}
        pairs = [(task, self._vers[task.id]) for task in dirty]
        self._mine.change(pairs, self._rewritten, then)

    def _require_contract(self) -> None:
        problems = codec.shell_problems(reading.encode_shell(self._shell))
        problems += [problem for each in self._broken.values() for problem in each]
        gone = self._removed.keys() - self._tasks.keys()
        if (self._rewired or gone) and self._mine.lacks_needs(self._rewired, gone):
            problems += codec.links((task.id, task.depends_on) for task in self.state.tasks)
        if problems:
            raise codec.ContractError(problems, "the change would break harness-tasks.json")

    def _write_shell(self) -> None:
        old, new = self.version.shell, self._shell
        if (new.session_count, new.last_session) != (old.session_count, old.last_session):
            # Of a narrow change others may have counted meanwhile.
            least = "greatest(session_count, %s)" if self._is_narrow else "%s"
            self._mine.put(f"session_count = {least}, last_session = %s", new.session_count, new.last_session)
        more = new.attempts_reset - old.attempts_reset
        if more:
            self._mine.put("attempts_reset = attempts_reset + %s", more)
        lists.put_proposals(self._mine, old.proposals, new.proposals)
        text = lists.shell_text(new)
        if text != lists.shell_text(old):
            self._mine.put("shell = %s", text)

    def close(self) -> None:
        """Refuse changes from now on: they would never be published."""
        self._open = False
        self.connection.end_change()

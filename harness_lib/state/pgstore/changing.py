"""One change of a list in a database: what is asked in it sees the changes so far."""

from __future__ import annotations

from collections.abc import Iterable

from harness_lib import timestamps
from harness_lib.rules import arrows, selection, transitions
from harness_lib.rules.selection import Finding
from harness_lib.state import api, codec, publishing, reading
from harness_lib.state.answers import Change
from harness_lib.state.mirrored import Link
from harness_lib.state.pgstore import columns, rows, versions
from harness_lib.state.pgstore.pending import Pending
from harness_lib.state.pgstore.repeating import changed_meanwhile
from harness_lib.state.reading import Problem
from harness_lib.task import Session, State, Task


class RowsTx(Change, Pending, api.Tx):
    """What `api.Tx` promises of the change of a list in a database."""

    @property
    def changed(self) -> bool:
        return self._changed

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
        if columns.is_rewritten(before, task):
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
                self._broken[name] = [Problem(name, "has an id that another task has already")]
            else:
                self._added[task.id] = self._tasks[task.id] = task

    def remove(self, task_id: str) -> None:
        self._assert_wide()
        task = self.task(task_id)
        assert task is not None, f"BUG: there is no task {task_id} to remove"
        self._flush()
        self._forget(task)
        rows.remove(self._conn, self._key, [task])
        self._removed[task_id] = task
        self.forget_attempts(task.attempts)

    def _forget(self, task: Task) -> None:
        for known in (self._tasks, self._vers, self._broken):
            known.pop(task.id, None)
        self._rewired.discard(task.id)
        self._held.discard(task.id)

    def validate_dependencies(self) -> tuple[Finding, ...]:
        findings = []
        for finding in self.unreachable():
            task = self.task(finding.task_id)
            # Another process may have been faster.
            if task is not None and arrows.may("doom", task) and not selection.is_permanent(task):
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
        rows.remove(self._conn, self._key, list(self._removed.values()))
        self._conn.execute("delete from harness.session where list = %s", (self._key,))
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
        self._conn.execute("update harness.list set name = %s where key = %s", (name, self._key))
        link = Link.of(root) or self._moments.link
        news, _ = versions.news(self._conn, self._version, link.mark)
        self.warnings += self._mirror.keep_edited()
        self.warnings += publishing.append(root, [*filter(None, news), *self.lines])
        with publishing.explained(root):
            link._replace(moving=True).save(root)
        self.warnings += publishing.publish(root, state, self.now, old=None)

    def rewrite(self) -> None:
        self._assert_open()
        self._touch()

    def add_session(self, session: Session) -> None:
        self._put_session(session)

    def replace_session(self, session: Session, number: int | None = None) -> None:
        self._put_session(session, session.number if number is None else number)

    def _put_session(self, session: Session, number: int | None = None) -> None:
        self._assert_open()
        self._touch()
        name = f"session {session.number}"
        problems = codec.record_problems(Session, reading.written(session), name)
        if problems:
            self._broken[name] = problems
        else:
            rows.put_session(self._conn, self._key, session, number)
        self._open_sessions = None

    def remove_session(self, number: int) -> None:
        self._assert_open()
        query = "delete from harness.session where list = %s and number = %s"
        self._conn.execute(query, (self._key, number))
        self._open_sessions = None
        self.note_session()

    def _put_shell(self, shell: State) -> None:
        self._assert_open()
        self._touch()
        self._shell = shell

    def _touch(self) -> None:
        self._changed = True
        self._answers = None

"""Recount what the rows of a list say twice, and put it right.

The document of a task says all of it. Its columns and edges repeat that, what it waits for follows from other
tasks, and the tally from all of them: triggers keep these, unless somebody has written by hand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from harness_lib.rules import graph, stats
from harness_lib.state import reading
from harness_lib.state.api import TaskCommands
from harness_lib.state.codec import ContractError, sealed_task
from harness_lib.state.pgstore import columns, rows
from harness_lib.state.pgstore.connecting import Connection
from harness_lib.task import State, Task

_NAMES = ("id", "ver", "waits", "lost", *columns.TYPES)
_ROWS = f"""
select {", ".join(_NAMES)},
  array(select needs from harness.dep where dep.list = task.list and dep.task = task.id)
from harness.task where list = %s order by place
"""
_PUT_TALLY = f"""
insert into harness.tally (list, slot, {", ".join(rows.TALLY)}) values (%s, 0{", %s" * len(rows.TALLY)})
"""


class _Row(NamedTuple):
    """A task, what its row has, and what it should have."""

    task: Task
    has: dict[str, Any]
    should: dict[str, Any]

    def wrong(self) -> list[str]:
        return [name for name, value in self.should.items() if self.has[name] != value]

    def fenced(self) -> Task:
        """Return the task with the higher of its two fences: none ever falls."""
        return sealed_task(self.task._replace(fence=max(self.task.fence, self.has["fence"])))


class Found:
    """The rows of the list `key` as `conn` sees them at one moment; `problems`: what is wrong with them."""

    def __init__(self, conn: Connection, key: int) -> None:
        self._conn, self._key = conn, key
        self.problems: list[str] = []
        self._rows: list[_Row] = []
        self._tally: dict[str, int] | None = None
        for *values, edges in conn.execute(_ROWS.encode(), (key,)).fetchall():
            self._read({**dict(zip(_NAMES, values, strict=True)), "edges": set(edges)})
        if not self.problems:
            self._compare()

    def _compare(self) -> None:
        conn, key = self._conn, self._key
        self._count()
        for row in self._rows:
            if wrong := row.wrong():
                self.problems.append(f"{reading.show(row.task.id)}: its row is wrong: {', '.join(wrong)}")
        self._tally = self._counted()
        wrong = [name for name, count in rows.tally(conn, key).items() if self._tally[name] != count]
        if wrong:
            self.problems.append(f"the tally is wrong: {', '.join(wrong)}")
        self._rings = graph.cycles(row.task._replace(status="pending") for row in self._rows)
        cyclic = conn.execute("select cyclic from harness.list where key = %s", (key,)).fetchone()
        if self._rings and cyclic == (False,):
            self.problems.append(f"a ring is not noticed: {graph.describe(self._rings[0])}")

    def _read(self, has: dict[str, Any]) -> None:
        try:
            task = columns.decoded(*(has[name] for name in columns.TEXTS))
        except ContractError as error:
            self.problems += [f"{has['id']}: its document cannot be read: {each}" for each in error.problems]
            return
        should = {"id": columns.text_key(task.id), **columns.of(task)}
        should["edges"] = set(map(columns.text_key, task.depends_on))
        # Another harness may write the same in other words.
        self._rows.append(
            _Row(task, has, {name: should[name] for name in should if name not in columns.TEXTS})
        )

    def _count(self) -> None:
        known = {row.should["id"]: row.should for row in self._rows}
        for row in self._rows:
            needs = row.should["edges"]
            there = [known[name] for name in needs & known.keys() if name != row.should["id"]]
            row.should["waits"] = len(needs) - sum(each["done"] for each in there)
            row.should["lost"] = sum(each["dead"] for each in there)

    def _counted(self) -> dict[str, int]:
        tasks = tuple(row.task for row in self._rows)
        counts: dict[str, int] = stats.count(State(tasks=tasks))._asdict()
        return {**counts, "runs": sum(map(TaskCommands.number, tasks))}

    def repair(self) -> None:
        """Put the rows right, if their documents can be read; nobody else changes the list meanwhile."""
        if self._tally is None:
            return
        conn, key = self._conn, self._key
        wrong = [row for row in self._rows if row.wrong()]
        for row in wrong:
            query = "update harness.task set id = %s, fence = 0 where list = %s and id = %s"
            conn.execute(query, (row.should["id"], key, row.has["id"]))
        pairs = [(row.fenced(), row.has["ver"]) for row in wrong]
        rows.change(conn, key, pairs, [row.task.id for row in wrong])
        rows.put_edges(conn, key, [row.task for row in wrong])
        # Triggers have told those that need them.
        rows.count_needs(conn, key, [row.should["id"] for row in self._rows])
        conn.execute("delete from harness.tally where list = %s", (key,))
        conn.execute(_PUT_TALLY.encode(), (key, *(self._tally[name] for name in rows.TALLY)))
        if self._rings:
            conn.execute("update harness.list set cyclic = true where key = %s", (key,))

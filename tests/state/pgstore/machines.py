"""Machines that share one list: each has files of its own, and a line to the one database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from harness_lib.state.mirrored import Link
from harness_lib.state.pgstore.store import PgStore
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.system.place.roots import Root
from harness_lib.task import SessionConfig, Task
from tests import postgres
from tests.state.pgstore.line import Line


class Shared:
    """A list called `name` in the test's database; `machine` returns a store of it with files of its own."""

    def __init__(self, directory: Path) -> None:
        self.server = postgres.require()
        self.name = f"{directory.name}-{os.urandom(4).hex()}"
        self._directory = directory
        self._link: Link | None = None

    @contextmanager
    def apart(self, *, roles: bool = False) -> Iterator[None]:
        """Use a database of its own, which may be spoilt; with `roles` its owner is no superuser."""
        shared = self.server
        with postgres.apart(shared, roles=roles) as self.server:
            yield
        self.server = shared

    def machine(
        self,
        name: str,
        *,
        line: Line | None = None,
        timeout: float = 30.0,
        clock: Clock = SYSTEM,
        url: str = "",
    ) -> PgStore:
        """Return the store of the machine `name`; the first one makes the list."""
        root = Root(self._directory / name)
        root.path.mkdir(exist_ok=True)
        url = line.url if line else url or self.server
        link = Link.of(root) or (self._link or Link(self.server, self.name))._replace(
            url=url, mirrored=0, op=""
        )
        if self._link is not None:
            link.save(root)
        store = PgStore(root, link, timeout=timeout, clock=clock)
        if self._link is None:
            store.begin(SessionConfig("concurrent"), "Begun for a test")
            self._link = store.link
        return store

    def with_tasks(self, count: int = 2, *, line: Line | None = None, timeout: float = 30.0) -> PgStore:
        """Return the store of the machine `first`, which has made the list and `count` tasks."""
        store = self.machine("first", line=line, timeout=timeout)
        with store.transaction() as tx:
            tx.add([Task(f"task-{number:03}", f"Task {number}") for number in range(1, count + 1)])
        return store

    def sql(self, text: str, *values: object) -> list[Any]:
        """Let the server do `text` at once, and return the rows that it answers."""
        with psycopg.connect(self.server, autocommit=True) as conn:
            answer = conn.execute(text.encode(), values or None)
            return [] if answer.description is None else answer.fetchall()


def add(store: PgStore, task_id: str) -> None:
    with store.transaction() as tx:
        tx.add([Task(task_id, "More")])


def ids(store: PgStore) -> list[str]:
    return [task.id for task in store.ask().search()]

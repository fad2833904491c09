"""People with roles in the lists of a database."""

from __future__ import annotations

import os
from typing import Any

import psycopg
from psycopg.errors import InsufficientPrivilege

from harness_lib.state.mirrored import Link
from harness_lib.state.pgstore.store import PgStore
from harness_lib.system.place.roots import Root
from harness_lib.task import OnFailure, SessionConfig, Task, Validation
from tests.state.pgstore.beside import claimed
from tests.state.pgstore.machines import Shared

CHECK = Validation("test -f done", red_first=True)


class People:
    """A list with three tasks, one held by the worker `victim`, another list, and logins."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.keeper = shared.machine("keeper")
        with self.keeper.transaction() as tx:
            tx.add(
                [
                    Task("task-001", "Held", validation=CHECK, on_failure=OnFailure("clean")),
                    Task("task-002", "Waits", validation=Validation("true"), depends_on=("task-001",)),
                    Task("task-009", "Free", priority="P2", validation=CHECK),
                ]
            )
        self.key = self.keeper.moments.looked().version.key
        other = PgStore(Root(self.directory("other")), Link(shared.server, f"{shared.name}-other"))
        other.begin(SessionConfig("concurrent"), "Begun")
        with other.transaction() as tx:
            tx.add([Task("secret")])
        self.other = other.moments.looked().version.key
        self.victim = self.machine("worker")
        claimed(self.victim, "victim")

    def directory(self, name: str) -> Any:
        made = self.keeper.root.path.parent / name
        made.mkdir(exist_ok=True)
        return made

    def login(self, role: str | None = None, other_role: str | None = None) -> str:
        """Return the address for a new login with these roles in the two lists."""
        name = f'Person "{os.urandom(4).hex()}"'
        with psycopg.connect(self.shared.server) as conn:
            conn.execute(psycopg.sql.SQL("create role {} login").format(psycopg.sql.Identifier(name)))
        for each, wanted in (("", role), ("-other", other_role)):
            if wanted:
                self.admit(name, wanted, each)
        return psycopg.conninfo.make_conninfo(self.shared.server, user=name)

    def admit(self, name: str, role: str | None, other: str = "", *, by: str = "") -> None:
        """Let whoever connects as `by` (the keeper by default) give a login a role; None takes it away."""
        with psycopg.connect(by or self.shared.server) as conn:
            conn.execute(
                "select harness.admit(%s, quote_ident(%s)::regrole, %s)",
                (f"{self.shared.name}{other}", name, role),
            )

    def machine(self, role: str, other_role: str | None = None) -> PgStore:
        return self.shared.machine(f"m-{os.urandom(4).hex()}", url=self.login(role, other_role))


def user_of(url: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(url)["user"])


def succeeds(conn: psycopg.Connection[Any], sql: str) -> bool:
    """Return whether the statement does something; nothing of it stays."""
    with conn.transaction(force_rollback=True):
        try:
            return conn.execute(sql.encode()).rowcount != 0
        except InsufficientPrivilege:
            return False

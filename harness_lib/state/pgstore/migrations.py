"""Make the tables of a database, or bring those of an earlier version up to date.

The numbered SQL files make one version out of the one before. All of it happens in one transaction, which
locks out whoever else does the same; a machine in the middle of a change is waited for. If the server ends
the transaction for its sake, it is made again.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import resources

import psycopg

import harness_lib
from harness_lib.state.pgstore import connecting
from harness_lib.state.pgstore.connecting import Connection, Format
from harness_lib.state.pgstore.repeating import GIVEN_UP

NONE = Format(0, 0, 0, "")
_TRIES = 10


def text_of(version: int) -> str:
    """Return the SQL that makes `version` out of the one before."""
    return _file(f"{version:04}.sql")


def _file(name: str) -> str:
    return resources.files("harness_lib.state.pgstore").joinpath(name).read_text(encoding="utf-8")


def texts(found: int = 0, *, roles: bool = False) -> str:
    """Return the SQL that makes the present version out of the version `found`; `roles`: and gives rights."""
    numbered = [text_of(version) for version in range(found + 1, connecting.SCHEMA + 1)]
    return "\n".join([*numbered, *([_file("roles.sql")] if roles else [])])


def present(url: str) -> int:
    """Return the version of the tables; 0 if there are none. Raises EnvSetupError."""
    with connecting.explained(url, changes=False), connecting.connected(url) as conn:
        return _present(conn).version


def _present(conn: Connection) -> Format:
    with suppress(psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName), conn.transaction():
        row = conn.execute("select version, reads, writes, harness from harness.about").fetchone()
        return Format(*row) if row else NONE
    return NONE


def set_up(url: str, *, roles: bool = False) -> None:
    """Make the tables if there are none; `roles`: give rights to them by the role of each member of a list.

    Raises EnvSetupError, also if this harness may not write those that are there.
    """
    found = _brought(url, only_new=True, roles=roles)
    if found != NONE:
        found.require(url, changes=True)


def upgrade(url: str) -> int:
    """Make the tables or bring them up to date, and return the version that they had; roles stay.

    Raises EnvSetupError.
    """
    found = _brought(url)
    if found.version > connecting.SCHEMA:
        raise found.too_new(url)
    return found.version


def _brought(url: str, *, only_new: bool = False, roles: bool = False) -> Format:
    """Return how the tables were; `only_new`: what is there stays. The rights of roles are given anew."""
    with connecting.explained(url), connecting.connected(url) as conn:
        for _ in range(_TRIES - 1):
            # Machines at work lock the tables in an order of their own, so each may wait for the other.
            with suppress(*GIVEN_UP):
                return _bring(conn, only_new=only_new, roles=roles)
        return _bring(conn, only_new=only_new, roles=roles)


def _bring(conn: Connection, *, only_new: bool, roles: bool) -> Format:
    with conn.transaction():
        conn.execute(f"set local search_path = {connecting.OWN_NAMES}".encode())
        conn.execute("select pg_advisory_xact_lock(hashtext('harness schema'))")
        found = _present(conn)
        missing = range(found.version + 1, connecting.SCHEMA + 1)
        if missing and not (only_new and found.version):
            for version in missing:
                conn.execute(text_of(version).encode())
            conn.execute("update harness.about set harness = %s", (harness_lib.__version__,))
        if found.version <= connecting.SCHEMA and (roles or (not only_new and _has_roles(conn))):
            conn.execute(_file("roles.sql").encode())
        return found


def _has_roles(conn: Connection) -> bool:
    query = "select from pg_class where oid = to_regclass('harness.list') and relrowsecurity"
    return conn.execute(query).fetchone() is not None

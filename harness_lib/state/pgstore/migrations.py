"""Make the tables of a database, or bring those of an earlier version up to date.

The numbered SQL files make one version out of the one before. All of it happens in one transaction, which
locks out whoever else does the same; a machine in the middle of a change is waited for.
"""

from __future__ import annotations

import json
from contextlib import suppress
from importlib import resources

import psycopg

from harness_lib.errors import EnvSetupError
from harness_lib.state import codec
from harness_lib.state.pgstore import columns, connecting, rows
from harness_lib.state.pgstore.connecting import SCHEMA, Connection
from harness_lib.task import State

WITH_COLUMNS = 2
WITH_BRIEFS = 4


def text_of(version: int) -> str:
    """Return the SQL that makes `version` out of the one before."""
    return _file(f"{version:04}.sql")


def _file(name: str) -> str:
    return resources.files("harness_lib.state.pgstore").joinpath(name).read_text(encoding="utf-8")


def texts(found: int = 0, *, roles: bool = False) -> str:
    """Return the SQL that makes the present version out of the version `found`; `roles`: and gives rights."""
    numbered = [text_of(version) for version in range(found + 1, SCHEMA + 1)]
    return "\n".join([*numbered, *([_file("roles.sql")] if roles else [])])


def present(url: str) -> int:
    """Return the version of the tables; 0 if there are none. Raises EnvSetupError."""
    with connecting.explained(url, changes=False), connecting.connected(url) as conn:
        return _present(conn)


def _present(conn: Connection) -> int:
    with suppress(psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName), conn.transaction():
        row = conn.execute("select max(version) from harness.about").fetchone()
        return int(row[0]) if row and row[0] else 0
    return 0


def set_up(url: str, *, roles: bool = False) -> None:
    """Make the tables if there are none; `roles`: give rights to them by the role of each member of a list.

    Raises EnvSetupError, also if those that are there are older.
    """
    found = upgrade(url, only_new=True, roles=roles)
    if 0 < found < SCHEMA:
        raise EnvSetupError(
            f"{connecting.shown(url)} keeps its lists in the format {found}; this harness writes {SCHEMA}.",
            "Bring it up to date, once for all machines: harness store upgrade URL",
        )


def upgrade(url: str, *, only_new: bool = False, roles: bool = False) -> int:
    """Make the tables or bring them up to date, and return the version that they had.

    `only_new`: tables that are there stay as they are. `roles`, or if there are any: their rights are given
    anew. Raises EnvSetupError.
    """
    with connecting.explained(url), connecting.connected(url) as conn, conn.transaction():
        conn.execute(f"set local search_path = {connecting.OWN_NAMES}".encode())
        conn.execute("select pg_advisory_xact_lock(hashtext('harness schema'))")
        found = _present(conn)
        connecting.require_schema(url, found)
        if not (only_new and found):
            roles = roles or _has_roles(conn)
            for version in range(found + 1, SCHEMA + 1):
                conn.execute(text_of(version).encode())
            if found < WITH_COLUMNS:
                _fill_columns(conn)
            elif found < WITH_BRIEFS:
                _fill_briefs(conn)
        if roles:
            conn.execute(_file("roles.sql").encode())
    return found


def _has_roles(conn: Connection) -> bool:
    query = "select from pg_class where oid = to_regclass('harness.list') and relrowsecurity"
    return conn.execute(query).fetchone() is not None


def _fill_briefs(conn: Connection) -> None:
    """Write what version 4 keeps of a task, from its one document. It changes no task."""
    found = conn.execute("select list, id, document from harness.task").fetchall()
    for list_, name, document in found:
        task = codec.decode_task(json.loads(document))
        named = {*columns.TEXTS, "ending", "runs", "proof"}
        values = {key: value for key, value in columns.of(task).items() if key in named}
        query = f"update harness.task set {', '.join(f'{key} = %({key})s' for key in values)}"
        conn.execute(
            f"{query} where list = %(list)s and id = %(id)s".encode(), {**values, "list": list_, "id": name}
        )
    for key, shell in conn.execute("select key, shell from harness.list").fetchall():
        state = codec.decode({**json.loads(shell), "tasks": []})
        rows.put_proposals(conn, key, (), state.proposals)
        conn.execute("update harness.list set shell = %s where key = %s", (rows.shell_text(state), key))


def _fill_columns(conn: Connection) -> None:
    """Write the lists of version 1 as those of later ones: into columns, edges and rows of sessions."""
    for key, shell in conn.execute("select key, shell from harness.list").fetchall():
        found = conn.execute("select document from harness.task where list = %s order by place", (key,))
        documents = [json.loads(document) for (document,) in found.fetchall()]
        state = codec.decode({**json.loads(shell), "tasks": documents})
        state = codec.sealed(state._replace(sessions=state.sessions or ()), State())
        conn.execute("delete from harness.task where list = %s", (key,))
        # They were never counted.
        conn.execute("delete from harness.tally where list = %s", (key,))
        rows.add(conn, key, state.tasks)
        rows.put_proposals(conn, key, (), state.proposals)
        for session in state.sessions or ():
            rows.put_session(conn, key, session)
        conn.execute(
            "update harness.list set shell = %s, session_count = %s, last_session = %s, attempts_reset = %s "
            "where key = %s",
            (rows.shell_text(state), state.session_count, state.last_session, state.attempts_reset, key),
        )
        rows.reshape(conn, key)

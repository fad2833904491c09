"""Make the tables of a database, or bring them up to date; move a list there and back, let a clone join it.

The numbered SQL files make one version out of the one before. All of it happens in one transaction, which
locks out whoever else does the same; a machine in the middle of a change is waited for. If the server ends
the transaction for its sake, it is made again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from importlib import resources

import psycopg

import harness_lib
from harness_lib import typed
from harness_lib.errors import HarnessError, NotAllowedError, RefusedError, UsageError
from harness_lib.state import load, publishing
from harness_lib.state.api import Questions
from harness_lib.state.mirrored import Link
from harness_lib.state.pgstore import connecting, moments
from harness_lib.state.pgstore.connecting import GIVEN_UP, Connection, Format
from harness_lib.state.pgstore.store import PgStore
from harness_lib.state.store import MIRROR, Store
from harness_lib.system import fs
from harness_lib.system.clock import Clock
from harness_lib.system.place.roots import Root
from harness_lib.system.processes import owner
from harness_lib.task import State

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
    with connecting.explained(url, changes=False), connecting.connect(url) as conn:
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
    with connecting.explained(url), connecting.connect(url) as conn:
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


def to_database(store: Store, link: Link, clock: Clock) -> int:
    """Move the list to the database; its file becomes the mirror. Return the number of its tasks.

    Raises RefusedError (a session is open, or the name is taken there), EnvSetupError.
    """
    set_up(link.url)
    made = link
    try:
        with store.transaction() as tx:
            _require_nobody(tx)
            settings = tx.settings()._replace(concurrency_mode="concurrent")
            tx.configure(settings)
            log = tuple(store.log_tail())
            made = _created(PgStore(store.root, link, clock=clock), tx.state, log)
            tx.on_commit(lambda: made.save(store.root))
    except BaseException:
        if made.uuid:
            # The file stays the list: nobody may work on its copy.
            with suppress(HarnessError):
                PgStore(store.root, made).drop()
        raise
    moved = PgStore(store.root, made, clock=clock)
    with moved.transaction() as tx:
        tx.log("WARN", f"the list was moved to a database, as {link.name}")
        return tx.counts().total


def _created(store: PgStore, state: State, log: tuple[str, ...]) -> Link:
    try:
        return store.create(state, log)
    except RefusedError as error:
        raise RefusedError(
            f"{connecting.shown(store.link.url)} has a list called {store.link.name} already.",
            "Choose another name: --list NAME",
        ) from error


def to_file(store: PgStore, now: datetime) -> int:
    """Move the list back to the file and return the number of tasks.

    In the database it stays, under another name. The file is written before that happens: whoever is cut off
    in between finds the list in one of the two.
    Raises RefusedError if a session is open, or another machine has a task.
    """
    with store.transaction() as tx:
        _require_nobody(tx)
        for task in tx.in_progress():
            if task.machine not in (None, owner.machine(os.environ)):
                raise RefusedError(
                    f"{task.id} is in progress on {task.machine}.",
                    "Let it end there; once its claim has ended, this takes it over: harness start",
                )
        tx.log("WARN", "the list was moved to a file")
        count = len(tx.state.tasks)
        tx.leave(f"{store.link.name} {moments.MOVED}{now:%Y-%m-%d %H:%M:%S})")
        tx.on_commit(lambda: fs.remove(store.root.link))
    return count


def join(root: Root, link: Link, clock: Clock) -> Questions:
    """Let this project work on the list of `link`, and return the answers about it.

    Raises UsageError (there is a list here), EnvSetupError (there is no such list).
    """
    if root.state.exists() and not root.link.exists() and not _is_mirror(root):
        raise UsageError(
            f"{root.path} has a task list of its own.",
            f"Move it there instead: harness store move URL. If nobody needs it, remove {root.state.name} "
            "and join again.",
        )
    link = link._replace(uuid=PgStore(root, link, clock=clock).moments.looked().version.uuid)
    store = PgStore(root, link, clock=clock)
    # A reader looks, and leaves no trace.
    with suppress(NotAllowedError), store.transaction() as tx:
        name = owner.machine(os.environ)
        tx.log("WARN", f"another machine has joined: {name}")
    with publishing.explained(root):
        link.save(root)
    store.enable_hooks()
    return store.ask()


def _is_mirror(root: Root) -> bool:
    with suppress(HarnessError):
        return MIRROR in load.find(root).state.extra
    return False


def _require_nobody(questions: Questions) -> None:
    for session in questions.sessions():
        raise RefusedError(
            f"Session {session.number} of {session.worker} is open on this list.",
            f"Let it end, or end it: {typed.harness('stop', '--session', session.number)}",
        )

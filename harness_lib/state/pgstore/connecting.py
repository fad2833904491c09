"""Connect to the database of a list, explain what fails, and make a change again that the server has ended.

A server may be gone, refuse, or accept and never answer: each way has a limit. Of two changes that wait for
each other PostgreSQL ends one. Nothing of it is left then, so its statements are sent again, in a new
transaction, unless what decided them is different now.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg.errors import DeadlockDetected, DivisionByZero, SerializationFailure

from harness_lib.errors import AwayError, BusyError, EnvSetupError, NotAllowedError, UsageError
from harness_lib.text import escape

Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]

# Without a handler, what the driver says of a lost connection would go to standard error, between our lines.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

CONNECT_SECONDS = 5
ANSWER_SECONDS = 10.0
# The shape of the tables that this version reads and writes: that of the last numbered file.
SCHEMA = 2
# Where names are looked up that have no schema: not where others may have put functions.
OWN_NAMES = "pg_catalog, pg_temp"
# The driver reads no other dates, and writes bytes wrongly where backslashes are doubled.
_READABLE = {"DateStyle": "ISO", "standard_conforming_strings": "on"}
# Without a name it is that of a socket.
_LOOPBACK = ("", "localhost", "127.0.0.1", "::1")
_SECRETS = ("password", "sslpassword")
_LONGEST_NAME = 100
_LOOK = (
    "If it has answered before, see whether it is back: harness store status. If not, check the address, and "
    "that the database exists (createdb DATABASE): postgresql://USER@HOST/DATABASE, with the password in "
    "~/.pgpass."
)
_PROVE = (
    "A server elsewhere must prove its name, by a certificate that is valid today. Where the machine does "
    "not know who signed it, put the CA certificate of your service into ~/.postgresql/root.crt."
)
_ENCRYPT = (
    "A server elsewhere must encrypt the connection: switch SSL on there, or, in a network that you trust, "
    "add ?sslmode=disable to the address."
)
_LOGIN = (
    "The server is there, but does not let this user in from here. See that ~/.pgpass has the password "
    "(HOST:PORT:DATABASE:USER:PASSWORD, with chmod 600), then ask whoever runs the server."
)
_UPGRADE = "Bring it up to date, once for all machines: harness store upgrade URL"
# What libpq and servers say, and the hint for it; `_LOOK` for anything else.
_HINTS = {
    "certificate": _PROVE,
    "verified SSL": _PROVE,
    "does not support SSL": _ENCRYPT,
    "password": _LOGIN,
    "authentication failed": _LOGIN,
    "pg_hba.conf": _LOGIN,
    'FATAL: role "': _LOGIN,
    # So pgbouncer says it.
    "no such user": _LOGIN,
    "No space left": "The disk of the server is full: whoever runs it must make room.",
    "statement pooling": "Let the pooler keep transactions: pool_mode = transaction.",
}


def checked(url: str, name: str = "list") -> str:
    """Return `url`. Raises UsageError unless it has no password, and `name` may name a list."""
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except (psycopg.Error, UnicodeError) as error:
        # What is wrong with it may be its password.
        has_secret = "password" in url or ":" in url.rpartition("@")[0].partition("//")[2]
        why = "." if has_secret else f": {_words(error)}"
        raise UsageError(
            f"This is no address of a database{why}", "For example: postgresql://me@db.example.org/agents"
        ) from error
    if any(parts.get(secret) for secret in _SECRETS):
        raise UsageError(
            "The address has a password in it, which other programs of this machine can read.",
            "Write it into ~/.pgpass (PostgreSQL's manual: The Password File), and leave it out here.",
        )
    if not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME:
        raise UsageError(f"A list has a name of 1 to {_LONGEST_NAME} printable characters.", "--list NAME")
    return url


def connect(url: str) -> Asking:
    """Return a new connection. Raises psycopg.Error."""
    conn = Asking.connect(
        url,
        **encrypted(url),
        autocommit=True,
        connect_timeout=CONNECT_SECONDS,
        application_name="harness",
        # A login, a database or the environment may choose another one.
        client_encoding="UTF8",
        # A pooler gives each transaction another connection.
        prepare_threshold=None,
    )
    for name, value in _READABLE.items():
        if not (conn.info.parameter_status(name) or "").startswith(value):
            conn.execute(f"set {name} = {value}".encode())
    return conn


def encrypted(url: str) -> dict[str, Any]:
    """Return what encrypts the connection and proves the server, unless the user has chosen that."""
    parts = psycopg.conninfo.conninfo_to_dict(url)
    places = (parts.get(name) or os.environ.get(f"PG{name.upper()}") or "" for name in ("host", "hostaddr"))
    hosts = ",".join(map(str, places)).split(",")
    says = "sslmode" in parts or "PGSSLMODE" in os.environ or "service" in parts or "PGSERVICE" in os.environ
    if says or all(host in _LOOPBACK or host.startswith(("/", "@")) for host in hosts):
        return {}
    has_root = "sslrootcert" in parts or "PGSSLROOTCERT" in os.environ
    if has_root or (Path.home() / ".postgresql" / "root.crt").exists():
        return {"sslmode": "verify-full"}
    return {
        "sslmode": "verify-full",
        "sslrootcert": ssl.get_default_verify_paths().cafile or "system",
    }


@contextmanager
def limited(conn: Connection, seconds: float) -> Iterator[None]:
    """Cut the connection after `seconds`: a stopped server or a cut cable may leave it without any answer."""
    with socket.socket(fileno=os.dup(conn.fileno())) as line:

        def cut() -> None:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(max(0.1, seconds), cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


@lru_cache
def shown(url: str) -> str:
    """Return `url` for messages, without a password."""
    with suppress(psycopg.Error):
        parts, env = psycopg.conninfo.conninfo_to_dict(url), os.environ
        service = parts.get("service") or env.get("PGSERVICE")
        else_at = f'the service "{service}"' if service else "this machine"
        host = parts.get("host") or parts.get("hostaddr") or env.get("PGHOST") or else_at
        return escape(f"{parts.get('dbname') or env.get('PGDATABASE') or 'database'} at {host}")
    return "the database"


@contextmanager
def explained(url: str, *, changes: bool = True) -> Iterator[None]:
    """Turn errors of the driver into those of harness; `changes`: something was to be changed."""
    so = ", so nothing was changed" if changes else ""
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        raise BusyError(
            "Another machine has been changing the list for longer than usual, so nothing was changed.",
            "Type the command again.",
        ) from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        raise EnvSetupError(
            f"{shown(url)} keeps no lists yet{so}.",
            "Prepare it: harness store init URL. If it has kept lists before, restore a backup instead.",
        ) from error
    except (psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedFunction) as error:
        lacks = escape(error.diag.message_primary or "something is missing")
        raise EnvSetupError(
            f"{shown(url)} keeps its lists in an older format, or one that was changed by hand{so}: {lacks}.",
            f"{_UPGRADE}. If it says that all is up to date, restore a backup.",
        ) from error
    except GIVEN_UP as error:
        raise BusyError(
            f"{shown(url)} has ended this again and again in favour of others{so}.",
            "Type the command again.",
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise NotAllowedError(
            f"{shown(url)} does not let this user do that{so}: {escape(error.diag.message_primary or '')}.",
            "Whoever runs the server can allow it. Where the database has roles, an owner of the list can "
            "give you another one: docs/many-machines.md",
        ) from error
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise AwayError(
            f"{shown(url)} is read-only now{so}.", "It may be a standby: type it again after the failover."
        ) from error
    except (psycopg.OperationalError, psycopg.InterfaceError, OSError) as error:
        why = _words(error)
        hint = next((hint for sign, hint in _HINTS.items() if sign in why), _LOOK)
        raise AwayError(f"{shown(url)} cannot be reached{so}: {why}", hint) from error
    except psycopg.Error as error:
        raise EnvSetupError(
            f"{shown(url)} refused that{so}: {_words(error)}",
            "Waiting does not help; the log of the server may say more.",
        ) from error


class Format(NamedTuple):
    """The format of the tables, the oldest that are enough to read and to write them, and who made it."""

    version: int
    reads: int
    writes: int
    harness: str

    def require(self, url: str, *, changes: bool) -> None:
        """Raise EnvSetupError if this harness may not read the tables, or not write them for `changes`."""
        if (self.writes if changes else self.reads) > SCHEMA:
            raise self.too_new(url)
        if self.version < SCHEMA:
            raise EnvSetupError(
                f"{shown(url)} keeps its lists in the format {self.version}; this harness needs the format "
                f"{SCHEMA}.",
                _UPGRADE,
            )

    def too_new(self, url: str) -> EnvSetupError:
        """Return the error for tables that need a newer harness."""
        wanted = f" to {escape(self.harness)} or a later version" if self.harness else ""
        return EnvSetupError(
            f"{shown(url)} keeps its lists in the format {self.version}, and this harness knows {SCHEMA}, so "
            "nothing was changed.",
            f"Update harness on this machine{wanted}.",
        )


def _words(error: Exception) -> str:
    return escape(" ".join(str(error).split()))


GIVEN_UP = (DeadlockDetected, SerializationFailure)
# What such a question finds has decided the change.
LOCKS = " for no key update"


def changed_meanwhile(what: str = "the list") -> BusyError:
    """Return the error for a change of what has changed since it was read."""
    return BusyError(
        f"Another machine has changed {what} meanwhile, so nothing was changed.", "Type the command again."
    )


class Asking(Connection):
    """A connection for questions once `url` is set: each has `ANSWER_SECONDS`; its errors are explained.

    From `begin_change` to `end_change` it is one for a change.
    """

    url = ""
    _begin: Callable[[Exception], None] | None = None
    # The statements of the change so far, each with what it has found, if that has decided something.
    _done: list[tuple[Callable[[], Cursor], object]]
    # Those that are sent together.
    _together: list[Callable[[], Cursor]] | None = None

    def begin_change(self, begin: Callable[[Exception], None]) -> None:
        """Make the transaction that is open now again if the server ends it, beginning it by `begin`.

        That is given the error, and raises it if there is no time left, or BusyError if the change would not
        be the same.
        """
        self._begin, self._done, self._together = begin, [], None

    def end_change(self) -> None:
        """Make nothing again from now on."""
        self._begin = None

    def execute(self, query: Any, *args: Any, **more: Any) -> Cursor:
        """Do what that of a connection does. Raises BusyError if a change cannot be made again."""

        def act() -> Cursor:
            return psycopg.Connection.execute(self, query, *args, **more)

        if self._begin:
            if self._together is not None:
                self._together.append(act)
                return self.cursor()
            text = query.encode() if isinstance(query, str) else query
            return self._do(act, self._begin, locks=LOCKS.encode() in text)
        if not self.url:
            return act()
        with limited(self, ANSWER_SECONDS), explained(self.url, changes=False):
            return act()

    @contextmanager
    def pipeline(self) -> Iterator[psycopg.Pipeline]:
        """Do what that of a connection does; in a change, all is sent at the end, so nothing is answered."""
        if not self._begin:
            with super().pipeline() as pipeline:
                yield pipeline
            return
        self._together = []
        try:
            yield psycopg.Pipeline(self)
            together = self._together
        finally:
            self._together = None
        self._done += ((act, None) for act in together)
        try:
            with super().pipeline():
                for act in together:
                    act()
        except GIVEN_UP as error:
            self._again(error, self._begin)

    def _do(self, act: Callable[[], Cursor], begin: Callable[[Exception], None], *, locks: bool) -> Cursor:
        while True:
            try:
                cursor = act()
            except GIVEN_UP as error:
                self._again(error, begin)
            else:
                self._done.append((act, _found(cursor) if locks else None))
                return cursor

    def _again(self, given_up: Exception, begin: Callable[[Exception], None]) -> None:
        """Make the change so far again."""
        self._begin = None
        try:
            while True:
                try:
                    begin(given_up)
                    for act, before in self._done:
                        cursor = act()
                        if before is not None and _found(cursor) != before:
                            raise changed_meanwhile()
                except GIVEN_UP as error:
                    if error is given_up:
                        raise
                    given_up = error
                except DivisionByZero as error:
                    # A task is not as it was: see `rows.change`.
                    raise changed_meanwhile() from error
                else:
                    return
        finally:
            self._begin = begin


def _found(cursor: Cursor) -> list[list[bytes | None]]:
    result = cursor.pgresult
    assert result is not None, "BUG: what a question has found is compared before there is an answer."
    columns = range(result.nfields)
    return [[result.get_value(row, column) for column in columns] for row in range(result.ntuples)]

"""Make a change again that the server has ended for the sake of another one.

Of two changes that wait for each other PostgreSQL ends one. Nothing of it is left then, so its statements are
sent again, in a new transaction, unless what decided them is different now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.errors import DeadlockDetected, DivisionByZero, SerializationFailure

from harness_lib.errors import BusyError
from harness_lib.state.pgstore.connecting import ANSWER_SECONDS, Connection, Cursor, explained, limited

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

        if self._begin is not None:
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
        if self._begin is None:
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

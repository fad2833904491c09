"""Keep the name of a change until its fate is known.

The answer to its COMMIT may be lost, or the process die before it comes.
"""

from __future__ import annotations

import json
import os

from harness_lib.state.pgstore.connecting import Connection
from harness_lib.system.files import atomic
from harness_lib.system.place.roots import Root


class Doubt:
    """The last change of this machine whose fate is not known; read and written under the machine's lock."""

    def __init__(self, root: Root) -> None:
        self._file = root.private / "store-doubt.json"

    def note(self, op: str) -> None:
        """Write down that `op` is about to be committed. Raises OSError."""
        document = {"op": op, "pid": os.getpid()}
        atomic.write(self._file, json.dumps(document).encode(), durable=False, make=True)

    def forget(self) -> None:
        """Remove the note: the fate is known."""
        atomic.remove(self._file)

    @property
    def op(self) -> str | None:
        """The change that is noted."""
        try:
            text = json.loads(self._file.read_text(encoding="utf-8"))["op"]
            from uuid import UUID  # noqa: PLC0415 (mostly nothing is noted)

            # Earlier versions wrote hyphens, as the database does.
            return UUID(text).hex
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def has_happened(self, conn: Connection) -> bool:
        """Return whether the noted change was made. Raises psycopg.Error.

        The list is locked, so it is not under way any more.
        """
        return conn.execute("select from harness.event where op = %s limit 1", (self.op,)).rowcount == 1

    def answered(self, conn: Connection) -> list[str]:
        """Return a sentence about the noted change, if there is one, and forget it. Raises psycopg.Error."""
        if self.op is None:
            return []
        made = self.has_happened(conn)
        self.forget()
        fate = "its change was made" if made else "nothing of it was changed"
        return [f"The last command on this machine was cut off while it changed the list: {fate}."]

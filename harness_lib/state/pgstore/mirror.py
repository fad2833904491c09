"""Let the files of this machine follow the list in the database: for people, `grep` and hooks.

They are read and never obeyed: the database decides.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from datetime import datetime

import psycopg

from harness_lib import timestamps
from harness_lib.errors import EnvSetupError, HarnessError
from harness_lib.state import load, publishing, summary
from harness_lib.state.pgstore import connecting, rows
from harness_lib.state.pgstore.connecting import Connection, Link
from harness_lib.state.pgstore.rows import Version
from harness_lib.state.store import MIRROR
from harness_lib.system import state_lock
from harness_lib.system.clock import Clock
from harness_lib.system.files import atomic
from harness_lib.system.place.roots import Root
from harness_lib.task import State


def _marked(state: State, link: Link) -> State:
    """Return `state` for the file: without the link that file must not be taken for the list itself."""
    where = f"{link.name} in {connecting.shown(link.url)}"
    return state._replace(extra={**state.extra, MIRROR: where})


class Mirror:
    """The files at `root` of a list in a database."""

    def __init__(self, root: Root, clock: Clock) -> None:
        self._root = root
        self._clock = clock

    def age(self, now: datetime) -> str:
        """Return a sentence that says how old the files are."""
        with suppress(OSError):
            seen = self._root.link.stat().st_mtime
            minutes = max(0, int(now.timestamp() - seen)) // 60
            at = timestamps.render(datetime.fromtimestamp(seen, now.tzinfo))
            return f"This is the list as this machine saw it last, at {at} ({minutes} minutes ago)."
        return "This is the list as this machine saw it last."

    def follow(self, version: Version, moment: Callable[[Version], datetime]) -> list[str]:
        """Bring the files up to `version`, unless a command of this machine is at it; return warnings."""
        link = self._link_to(version)
        if link is None:
            return []
        if version.number <= link.mirrored and summary.read(self._root) is not None:
            with suppress(OSError):
                # They are as young as this look.
                os.utime(self._root.link)
            return []
        with ExitStack() as stack:
            try:
                stack.enter_context(
                    state_lock.StateLock(self._root.lock_file, timeout=0.0, clock=self._clock)
                )
                conn = stack.enter_context(connecting.connected(link.url))
            except (OSError, HarnessError, psycopg.Error):
                return []
            return self.write(conn, version, moment(version))

    def write(self, conn: Connection, version: Version, now: datetime) -> list[str]:
        """Bring the files up to `version`, under the lock of this machine; return warnings.

        After a kill in between, lines of the log may come twice.
        """
        link = self._link_to(version)
        if link is None or version.number < link.mirrored:
            return []
        warnings: list[str] = []
        again = connecting.connected(link.url) if conn.closed else nullcontext(conn)
        try:
            with again as open_one:
                lines = rows.lines_since(open_one, version.key, link.mirrored, version.number)
            warnings += self._keep_edited()
            if version.number > link.mirrored or summary.read(self._root) is None:
                warnings += publishing.append(self._root, lines)
                warnings += publishing.publish(self._root, _marked(version.state, link), now, old=None)
                with publishing.explained(self._root):
                    link._replace(mirrored=version.number).save(self._root)
        except (EnvSetupError, psycopg.Error) as error:
            warnings.append(
                f"{self._root.state.name} and the log are old, as they cannot be written: {error}"
            )
        return warnings

    def _link_to(self, version: Version) -> Link | None:
        """Return the link as another process may have written it; None if it is that of another list."""
        with suppress(EnvSetupError):
            link = Link.of(self._root)
            if link is not None and link.uuid == version.uuid:
                return link
        return None

    def _keep_edited(self) -> list[str]:
        """Keep a copy of a mirror that somebody has edited; return a warning. Raises EnvSetupError."""
        if load.stamp_now(self._root) is None or summary.read(self._root) is not None:
            return []
        if summary.last(os.fspath(self._root.summary)) is None:
            # Without a status cache nobody knows whether it was edited.
            return []
        with publishing.explained(self._root):
            data = self._root.state.read_bytes()
            kept = self._root.path / f"{self._root.state.name}.edited-{self._clock.now():%Y%m%dT%H%M%SZ}"
            atomic.write(kept, data)
        name = self._root.state.name
        text = f"{name} was edited, but the list is in a database: the edit was not applied"
        return [f"{text} and is kept in {kept.name}. Change tasks with: harness edit"]

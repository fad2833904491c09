"""Let the files of this machine follow the list in the database: for people, `grep` and hooks.

They are read and never obeyed: the database decides.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

import psycopg

from harness_lib import timestamps
from harness_lib.errors import EnvSetupError, HarnessError
from harness_lib.state import journal, load, publishing, summary
from harness_lib.state.answers import Answers
from harness_lib.state.mirrored import Link, Mirrored
from harness_lib.state.pgstore import connecting, lists
from harness_lib.state.pgstore.moments import Looking
from harness_lib.state.store import MIRROR
from harness_lib.system import fs, state_lock
from harness_lib.system.clock import Clock
from harness_lib.system.place.roots import Root
from harness_lib.text import sentence

# The file of a list with more tasks says where the list is: to write all of it would make each change slow.
MOST_TASKS = 5000


class Mirror:
    """The files at `root` of a list in a database."""

    def __init__(self, root: Root, clock: Clock) -> None:
        self._root = root
        self._clock = clock

    def remembered(self, error: EnvSetupError) -> Answers:
        """Return the answers about the files, with a warning. Raises `error` if there are none."""
        files, when = Mirrored(self._root, self._clock), ""
        try:
            state = files.whole()
        except HarnessError:
            raise error from None
        with suppress(OSError):
            now, seen = self._clock.now(), self._root.link.stat().st_mtime
            minutes = max(0, int(now.timestamp() - seen)) // 60
            at = timestamps.render(datetime.fromtimestamp(seen, now.tzinfo))
            when = f", at {at} ({minutes} minutes ago)"
        warning = f"{sentence(error.message)} This is the list as this machine saw it last{when}."
        return Answers(state, files.now(), (warning,))

    def follow(self, asked: Looking) -> list[str]:
        """Bring the files up to `asked`, unless a command of this machine is at it; return warnings."""
        link = self._link_to(asked.version)
        if not link:
            return []
        news, _ = asked.news(link.mark)
        if not (news or link.moving) and summary.read(self._root) is not None:
            with suppress(OSError):
                # They are as young as this look.
                os.utime(self._root.link)
            return []
        try:
            with state_lock.StateLock(self._root.lock_file, timeout=0.0, clock=self._clock):
                return self.write(asked)
        except (OSError, HarnessError):
            return []

    def has(self, version: lists.Version) -> bool:
        """Return whether the files are those of `version`, and nobody has edited them."""
        link = self._link_to(version)
        if not link or link.moving or (link.mirrored, link.op) != (version.number, version.op):
            return False
        return summary.read(self._root) is not None

    def write(self, asked: Looking) -> list[str]:
        """Bring the files up to `asked`, under the lock of this machine; return warnings.

        After a kill in between, lines of the log may come twice.
        """
        version = asked.version
        link = self._link_to(version)
        if not link or version.number < link.mirrored or version.xmin < link.mark.since:
            return []
        warnings: list[str] = []
        try:
            news, mark = asked.news(link.mark)
            warnings += self.keep_edited()
            if news or link.moving or summary.read(self._root) is None:
                warnings += publishing.append(self._root, self._new(news, link))
                warnings += self._publish(asked, f"{link.name} in {connecting.shown(link.url)}")
                with publishing.explained(self._root):
                    cache = summary.read(self._root)
                    written = tuple(cache["stamp"][:3]) if cache else ()
                    followed = link._replace(
                        mirrored=version.number, op=version.op, mark=mark, moving=False, file=written
                    )
                    followed.save(self._root, durable=link.moving)
        except (EnvSetupError, psycopg.Error) as error:
            warnings.append(
                f"{self._root.state.name} and the log are old, as they cannot be written: {error}"
            )
        return warnings

    def _new(self, news: Iterable[str | None], link: Link) -> list[str]:
        """Return the lines in `news`; who has joined again has some in the log."""
        with publishing.explained(self._root):
            known = {None, *(() if link.mirrored else journal.tail(self._root.log))}
        return [line for line in news if line is not None and line not in known]

    def _publish(self, asked: Looking, where: str) -> list[str]:
        """Write the file of the list and the status cache; return warnings. Raises EnvSetupError."""
        # Without the link that file must not be taken for the list itself.
        if has_tasks(asked.version.total):
            state = asked.state
            marked = state._replace(extra={**state.extra, MIRROR: where})
            return publishing.publish(self._root, marked, asked.now, old=None, is_mirror=True)
        shell = asked.version.shell
        marked = shell._replace(sessions=asked.sessions(), extra={**shell.extra, MIRROR: where})
        cache = summary.build(marked, asked.now, asked)
        cache["rechecks"] = str(asked.version.number)
        return publishing.publish(self._root, marked, asked.now, old=None, cache=cache, is_mirror=True)

    def _link_to(self, version: lists.Version) -> Link | None:
        """Return the link as another process may have written it; None if it is that of another list."""
        with suppress(EnvSetupError):
            link = Link.of(self._root)
            if link and link.uuid == version.uuid:
                return link
        return None

    def keep_edited(self) -> list[str]:
        """Keep a copy of a mirror that somebody has edited; return a warning. Raises EnvSetupError."""
        stamp, link = load.stamp_now(self._root), Link.of(self._root)
        if stamp is None or summary.read(self._root) is not None:
            return []
        if summary.last(os.fspath(self._root.summary)) is None:
            # It is gone, or that of an older harness, which changes the file as if it were the list.
            written = link.file if link else ()
            if written in ((), tuple(stamp[:3])):
                return []
        kept = self.keep("edited")
        text = f"{self._root.state.name} was edited, but the list is in a database: the edit was not applied"
        return [f"{text} and is kept in {kept}. Change tasks with: harness edit"]

    def keep(self, why: str) -> str:
        """Keep a copy of the mirror; return its name, which says `why`. Raises EnvSetupError."""
        with publishing.explained(self._root):
            data = self._root.state.read_bytes()
            kept = self._root.path / f"{self._root.state.name}.{why}-{self._clock.now():%Y%m%dT%H%M%SZ}"
            fs.write(kept, data)
        return kept.name


def has_tasks(total: int) -> bool:
    """Return whether the file of a list with so many tasks has them."""
    return total <= MOST_TASKS

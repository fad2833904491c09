"""A list in a database, as far as this machine knows it without asking: its address, and its files."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from harness_lib.errors import EnvSetupError, RefusedError
from harness_lib.rules import graph
from harness_lib.state import api, codec, load, reading, schema, summary, upkeep
from harness_lib.state.answers import Answers
from harness_lib.system import fs
from harness_lib.system.clock import Clock
from harness_lib.system.place import own_files, roots
from harness_lib.task import SessionConfig, State
from harness_lib.text import Strings

_JOIN = "To work on a list in a database: harness store join URL --list NAME"


class Mark(NamedTuple):
    """A moment in the events of a list: those above `floor` of earlier transactions than `since` are known.

    So are those of `seen`: a transaction may commit before another one that has lower numbers.
    """

    floor: int = 0
    since: int = 0
    seen: tuple[int, ...] = ()


class Link(NamedTuple):
    """Where a list is: the address of its database, without a password, and its name and `uuid` there.

    `mirrored`: the highest number of an event that the files of this machine have followed, and `op` its
    change; `mark`: which ones they have followed. `moving`: the list is being moved to the file. `file`: size
    in bytes, inode and time in ns of the file of the list as it was written last; () if that is not known.
    """

    url: str
    name: str
    uuid: str = ""
    mirrored: int = 0
    mark: Mark = Mark()
    moving: bool = False
    op: str = ""
    file: tuple[int, ...] = ()

    @classmethod
    def of(cls, root: roots.Root) -> Link | None:
        """Return the link of this project; None if its list is a file. Raises EnvSetupError."""
        try:
            document = json.loads(own_files.read(os.fspath(root.link)))
            is_own = document["place"] == _place(root)
            url, name, uuid = (str(document[key]) for key in ("url", "list", "uuid"))
            mirrored = int(document["mirrored"])
            floor, since, *seen = map(int, (document["floor"], document["since"], *document["seen"]))
            mark, written = Mark(floor, since, tuple(seen)), tuple(map(int, document.get("file", ())))
            more = (bool(document.get("moving")), str(document.get("op", "")), written)
            link = cls(url, name, uuid, mirrored, mark, *more)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise EnvSetupError(f"{root.link} cannot be read: {error}.", _JOIN) from error
        if not is_own:
            raise EnvSetupError(
                f"{root.link} was not made here, but came with a clone or a copy, so it is not used.", _JOIN
            )
        return link

    def save(self, root: roots.Root, *, durable: bool = True) -> None:
        """Write the link; unless `durable`, a power cut may bring back the one before. Raises OSError."""
        roots.make_private(root.private)
        document: dict[str, object] = {"url": self.url, "list": self.name, "uuid": self.uuid}
        document |= {"mirrored": self.mirrored, **self.mark._asdict(), "op": self.op, "file": self.file}
        document |= {"place": _place(root), **({"moving": True} if self.moving else {})}
        fs.write(root.link, json.dumps(document).encode(), durable=durable, whole=True, make=True)


def _place(root: roots.Root) -> int:
    """Return what no clone and no copy of the project has: nobody else may choose our database."""
    return root.private.stat().st_ino


class Mirrored(upkeep.Upkeep):
    """The list as the files of this machine have it: for an agent of a run, which gets no connection."""

    _is_file = False

    def __init__(self, root: roots.Root, clock: Clock) -> None:
        self.root = root
        self._clock = clock
        self._warnings = []

    def exists(self) -> bool:
        return bool(self.link.uuid)

    @property
    def link(self) -> Link:
        """Where the list is."""
        link = Link.of(self.root)
        assert link is not None, "BUG: asked for a link where there is none."
        return link

    @property
    def shared(self) -> api.Shared:
        return self

    @property
    def name(self) -> str:
        return self.link.name

    def ask(self) -> api.Questions:
        return Answers(self.whole(), self.now())

    def now(self) -> datetime:
        """Return the time in the database, by which leases end, as far as this machine knows it."""
        cache, now = summary.read(self.root), self._clock.now()
        return now + timedelta(seconds=cache["ahead"]) if cache else now

    def whole(self) -> State:
        return load.find(self.root).state

    def examine(self) -> api.Examined:
        try:
            document = reading.encode(self.whole())
            answers = self.ask()
        except codec.ContractError as error:
            return api.Examined(error.problems)
        rings = (reading.Problem("tasks", f"cycle: {graph.describe(ring)}") for ring in answers.cycles())
        return api.Examined((*schema.problems(document), *rings), answers)

    def turns(self) -> tuple[tuple[str, str], ...]:
        # The files do not say who merges.
        return ()

    # What needs the database.

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise EnvSetupError(
            "An agent of a run has no connection to the database of the list.",
            "The run records what it does; it goes on with its task.",
        )

    ask_to_change = ask_now = transaction = take_turn = leave_turn = _refuse

    def begin(self, settings: SessionConfig, message: str) -> Strings:
        raise RefusedError("This list exists already.", "Look at it with: harness status")

    def restore(self) -> Strings:
        raise RefusedError(
            "This list is kept in a database, which has backups of its own.",
            "Restore one there, then: harness store check",
        )

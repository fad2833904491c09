"""The list as it can be read right now, from the file itself or from what is left of it. Never writes.

Source: design section 3, "Lost or broken".
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_lib.errors import EnvSetupError, StateUnreadableError
from harness_lib.state import codec, generations, summary
from harness_lib.state.codec import UnparseableError
from harness_lib.state.summary import Stamp
from harness_lib.system.roots import Root
from harness_lib.task import State


@dataclass(frozen=True)
class Found:
    """A readable list, and how it was come by.

    `data` and `stamp` are of the file as it lies there, None if it is missing; `ours`: nobody has touched it
    since we wrote it; `source`: the name of what stands in for it, None if it is whole; `why`: what is wrong.
    """

    state: State
    document: Any
    data: bytes | None
    stamp: Stamp | None
    ours: bool
    source: str | None = None
    why: str | None = None


def find(root: Root) -> Found:
    """Return the list at `root`, or the newest good one that can stand in for a broken or missing file.

    Raises ContractError if the file parses but is no list (never replaced by an older one: a person edited it),
    StateUnreadableError if nothing good is left, EnvSetupError if it may not be read.
    """
    content = _content(root.state)
    if content is None:
        return _substitute(root, "is missing", None, None)
    data, found = content
    try:
        document: Any = codec.parse(data)
    except UnparseableError as error:
        return _substitute(root, f"is not JSON ({error})", data, summary.stamp(found))
    ours = summary.read_for(root, found) is not None
    state = codec.decode_trusted(document) if ours else codec.decode(document, root.state.name)
    return Found(state, document, data, summary.stamp(found), ours)


def stamp_now(root: Root) -> Stamp | None:
    """Return the stamp of the file as it lies there, None if it is missing."""
    try:
        return summary.stamp(os.stat(root.state))
    except FileNotFoundError:
        return None


def _content(path: Path) -> tuple[bytes, os.stat_result] | None:
    """The stat is of the file that was read, taken after reading: a change meanwhile makes it a stranger's."""
    try:
        with open(path, "rb") as stream:
            return stream.read(), os.fstat(stream.fileno())
    except FileNotFoundError:
        return None
    except OSError as error:
        hint = "See what lies there and who may read it: harness doctor"
        raise EnvSetupError(f"{path} cannot be read: {error.strerror}", hint) from error


def _substitute(root: Root, why: str, data: bytes | None, stamp: Stamp | None) -> Found:
    for source, document in _good(root):
        return Found(
            codec.decode(document, source), document, data, stamp, ours=False, source=source, why=why
        )
    if data is None:
        message = f"{root.state} {why}, and no earlier state is left."
        raise StateUnreadableError(message, "Make a new list: harness init")
    message = f"{root.state} {why}, and no good earlier state is left."
    raise StateUnreadableError(message, "Correct the file by hand, then look at it: harness check")


def _good(root: Root) -> Iterator[tuple[str, object]]:
    newest = generations.newest_good(root)
    if newest is not None:
        yield f"{root.generations.relative_to(root.path)}/{newest[0]}", newest[1]
    backup = generations.good_document(root.backup)
    if backup is not None:
        yield root.backup.name, backup

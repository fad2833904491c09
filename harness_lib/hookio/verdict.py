"""Remember what a hook has found wrong in a list that somebody else wrote, until its bytes change.

It is not the summary: that one says that the list is as we wrote it, and then nobody checks it any more.
Like it, it bears the stamp of the file and is a shortcut only: it may be lost or torn at any time.
"""

from __future__ import annotations

import os

from harness_lib.state import summary
from harness_lib.system.place import find_root, session_notes

TYPE_CHECKING = False  # see entry.py
if TYPE_CHECKING:
    from typing import TypedDict

    from harness_lib.state.summary_shape import Summary

    class Verdict(TypedDict):
        """What is kept; the stamp is that of the list."""

        format: int
        stamp: summary.Stamp
        thorough: bool
        trouble: str
        summary: Summary | None


FILE = "foreign.json"


def read(root: str, *, thorough: bool) -> tuple[Summary | None, str] | None:
    """Return the summary of the list at `root` and what is wrong with it, as `write` was told; else None.

    `thorough`: only what was found with the schema's help counts.
    """
    kept: Verdict | None = summary.read_stamped(os.path.join(root, find_root.STATE_FILE), _place(root))
    if kept is None or (thorough and not kept["thorough"]):
        return None
    return kept["summary"], kept["trouble"]


def write(root: str, stamp: summary.Stamp, digest: Summary | None, trouble: str, *, thorough: bool) -> None:
    """Keep `digest` and `trouble` for as long as the list has this `stamp`."""
    import json  # noqa: PLC0415 (once for each list)

    kept: Verdict = {
        "format": summary.FORMAT,
        "stamp": stamp,
        "thorough": thorough,
        "trouble": trouble,
        "summary": digest,
    }
    try:
        session_notes.write(_place(root), json.dumps(kept).encode())
    except OSError:
        # The next hook finds it out again.
        return


def _place(root: str) -> str:
    return os.path.join(root, find_root.PRIVATE_DIR, FILE)

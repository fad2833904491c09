"""Count how often each agent was held without progress; the counts are lost with `.harness/`."""

from __future__ import annotations

import json

from harness_lib.hookio.situation import Tally
from harness_lib.system.place import session_notes

TYPE_CHECKING = False  # see entry.py
if TYPE_CHECKING:
    from harness_lib.hookio.situation import Answer


def read(root: str, who: str) -> Tally:
    """Return what is known about the agent session (or subagent) `who`."""
    try:
        kept = json.loads(session_notes.read(session_notes.path(root, "stops", who)))
    except (ValueError, RecursionError):
        return Tally()
    if not isinstance(kept, dict):
        return Tally()
    blocks = kept.get("blocks")
    return Tally(
        str(kept.get("progress", "")),
        blocks if type(blocks) is int else 0,
        str(kept.get("told", "")),
        waited=kept.get("waited") is True,
    )


def keep(root: str, who: str, last: Tally, answer: Answer) -> None:
    """Count `answer`, which was given to an agent that stood at `last`."""
    if not answer.progress and not answer.warning and not answer.waits:
        return
    same = answer.waits or answer.progress == last.progress
    counted = {
        "progress": answer.progress or last.progress,
        "blocks": (last.blocks if same else 0) + (answer.kind in ("block", "keep")),
        "waited": last.waited or answer.waits,
        "told": answer.warning or (last.warning if same else ""),
    }
    session_notes.write(session_notes.path(root, "stops", who), json.dumps(counted).encode())


def forget(root: str, who: str) -> None:
    """Begin anew: somebody has come back, or left."""
    session_notes.remove(session_notes.path(root, "stops", who))

"""Let the agent go when a hook of ours is broken, and leave a person the traceback in a file."""

from __future__ import annotations

import traceback

from harness_lib.system.place import session_notes


def report(event: str, root: str | None) -> str:
    """Write the traceback of the exception being handled to a file; return the line that says where."""
    text = traceback.format_exc()
    error = text.strip().splitlines()[-1]
    where = session_notes.keep_bug(root, text) if root else None
    details = f"details in {where}" if where else "no file for the details could be written"
    return f"harness: a bug in its {event} hook, which holds nobody: {error[:300]} ({details})\n"

"""Put a lost or broken list back, without losing what is left of the broken one.

Only inside a transaction, and only for a file that is no JSON or is gone: what parses is a person's edit.
Source: docs/design.md, "Lost or broken"; docs/protocol.md, "Error Handling".
"""

from __future__ import annotations

import os
from datetime import datetime

from harness_lib.state import journal
from harness_lib.state.filestore import generations, publishing
from harness_lib.state.filestore.load import Loaded
from harness_lib.system.files import append_log, atomic
from harness_lib.system.place.roots import Root


def restore(root: Root, loaded: Loaded, now: datetime) -> list[str]:
    """Make `loaded`, which stands in for the file, the list again; return what to tell people.

    Raises EnvSetupError if the disk does not take it; then the broken file still stands.
    """
    text = f"{root.state.name} {loaded.why}: restored from {loaded.source} ({len(loaded.state.tasks)} tasks)"
    if loaded.data is None:
        text += "; what was written after that is lost"
        text += _log_too(root)
    else:
        text += f"; what only the broken file holds is kept in {_set_aside(root, loaded.data, now)}"
    # .bak stays as it is: it may be what we restore from, and the broken bytes are no backup.
    warnings = [text, *publishing.publish(root, loaded.state, now, old=None)]
    line = journal.line("WARN", text, now=now, session=loaded.state.session_count)
    return warnings + publishing.append(root, [line])


def _log_too(root: Root) -> str:
    """Put the log back if it went with the list, and return what to say of it."""
    if os.path.lexists(root.log):
        return ""
    if generations.give_back_log(root):
        return f"; {root.log.name} was put back, too"
    return f"; {root.log.name} was lost with it and begins anew"


def note_loss(root: Root, now: datetime) -> None:
    """Log, in the protocol's words, that the list is beyond repair. Raises EnvSetupError if that fails."""
    text = f"{root.state.name} corrupted and unrecoverable"
    line = journal.line("ERROR", text, now=now, session=0, category="ENV_SETUP")
    with publishing.explained(root):
        append_log.append(root.log, line)


def _set_aside(root: Root, data: bytes, now: datetime) -> str:
    """Keep `data` under a name that is free, and return the name."""
    base = f"{root.state.name}.broken-{now:%Y%m%dT%H%M%SZ}"
    name, number = base, 0
    while os.path.lexists(root.path / name):
        number += 1
        name = f"{base}-{number}"
    with publishing.explained(root):
        atomic.write(root.path / name, data)
    return name

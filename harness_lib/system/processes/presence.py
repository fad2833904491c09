"""Say whether the agent that opened a session may be there still; proof or long silence says no.

Asked by commands and by hooks, so: plain values, and standard library only.
"""

from __future__ import annotations

import os
from contextlib import suppress

from harness_lib.system.place import session_notes

TYPE_CHECKING = False  # see find_root.py
if TYPE_CHECKING:
    from harness_lib.system.processes.owner import Life

# A session of another machine cannot be probed; after this long without an end it counts as gone.
FOREIGN_SECONDS = 24 * 3600.0
# Nor can one in a sandbox; but each of its commands, and each hook of its agent, leaves a sign.
SANDBOX_SECONDS = 30 * 60.0


class Record:
    """What a session's record says of its agent; `started` is in seconds since the epoch, 0 if unknown."""

    def __init__(
        self,
        *,
        host: str,
        boot_id: str,
        pid: int,
        pid_started: str,
        agent_session_id: str,
        started: float,
    ) -> None:
        self.host, self.boot_id = host, boot_id
        self.pid, self.pid_started = pid, pid_started
        self.agent_session_id, self.started = agent_session_id, started


def has_ended(root: str, record: Record, caller: str) -> bool:
    """Return whether a hook has noted that the agent session is over, though its process may live on.

    A note from before the session began is of an earlier one; and `caller`, who asks, has not ended.
    """
    if not record.agent_session_id or record.agent_session_id == caller:
        return False
    noted = session_notes.written(session_notes.path(root, "ended", record.agent_session_id))
    return noted is not None and noted >= record.started


def may_live(root: str, record: Record, caller: str, now: float) -> bool:
    """Return whether the agent of `record` may still be there, as the agent session `caller` sees it."""
    if has_ended(root, record, caller):
        return False
    life = life_of(record)
    if life != "unknown":
        return life == "alive"
    if is_hidden(record):
        return now - _last_sign(root, record) < SANDBOX_SECONDS
    return not record.started or now - record.started < FOREIGN_SECONDS


def life_of(record: Record) -> Life:
    """Return what is known of the process that stands for the session."""
    from harness_lib.system.processes import owner  # noqa: PLC0415 (most hooks need not ask)

    return owner.life(record.host, record.boot_id, record.pid, record.pid_started)


def is_hidden(record: Record) -> bool:
    """Return whether the session belongs to a sandbox of this machine, which alone sees its processes."""
    from harness_lib.system.processes import process  # noqa: PLC0415 (likewise)

    if not record.agent_session_id or record.host != os.uname().nodename:
        return False
    boot, _, namespace = record.boot_id.partition("/")
    our_boot, _, ours = process.boot_id().partition("/")
    return bool(boot) and boot == our_boot and (not record.pid or namespace != ours)


def show(root: str, agent_session_id: str) -> None:
    """Leave a sign of the agent session; one that cannot be written is as good as lost, like any note."""
    with suppress(OSError):
        session_notes.write(session_notes.path(root, "seen", agent_session_id), b"")


def _last_sign(root: str, record: Record) -> float:
    who = record.agent_session_id
    signs = (
        session_notes.written(session_notes.path(root, "seen", who)),
        session_notes.written(session_notes.path(root, "beats", who)),
    )
    return max([record.started, *(sign for sign in signs if sign is not None)])


def moment(stamp: str | None) -> float:
    """Return an ISO stamp in seconds since the epoch, 0 where there is none."""
    from harness_lib import timestamps  # noqa: PLC0415 (likewise)

    return timestamps.parse(stamp).timestamp() if stamp else 0.0

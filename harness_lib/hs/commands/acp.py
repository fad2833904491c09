"""`hs acp`: an agent for editors and other clients of the Agent Client Protocol."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from harness_lib.errors import UsageError
from harness_lib.hs.commands.base import Builtin
from harness_lib.loop import credentials

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

# How `hs acp` starts the process of a session.
SESSION = "--session"


def _acp(runtime: Runtime, args: list[str]) -> int:
    if args == [SESSION]:
        from harness_lib.hs.acp import worker  # noqa: PLC0415 (either of the two, in a process of its own)

        return worker.work(runtime)
    if args:
        raise UsageError("hs acp takes no arguments.", "Its client speaks over standard input and output.")
    if not (_is_spoken_through(0) and _is_spoken_through(1)):
        raise UsageError(
            "hs acp speaks with a client over pipes, and there is none.", "Let an editor start it: hs acp"
        )
    # The processes of its sessions, and their tools, can look at this one.
    credentials.hide(runtime)
    from harness_lib.hs.acp import agent  # noqa: PLC0415 (the protocol's package is imported here only)

    return agent.serve()


def _is_spoken_through(descriptor: int) -> bool:
    """Return whether somebody can be at the other end: a file or /dev/null would never answer."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


COMMAND = Builtin("Serve a client of the Agent Client Protocol on standard input and output", _acp)

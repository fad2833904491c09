"""The stage `assemble`: what a person has typed since the last request is told with this one."""

from __future__ import annotations

from harness_lib.loop import processes
from harness_lib.loop.piped import Piped
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.tools import skills


def tell(runtime: Runtime, piped: Piped) -> Piped:
    """Put it into the session: here every call has its result, so a user message may follow."""
    if runtime.session is not None and runtime.typed_meanwhile is not None:
        # What was taken is nowhere else.
        with processes.uninterrupted():
            for text in runtime.typed_meanwhile():
                runtime.session.append("user", {}, skills.called(runtime, text))
    return piped

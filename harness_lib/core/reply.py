"""The reply of a verb: one value, rendered as text or as JSON by `cli`.

Source: docs/design.md, "The verbs", the reply object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness_lib.errors import Exit
from harness_lib.state import reading
from harness_lib.task import NO_EXTRA, RunStop, StopReason, Task


class Reply(NamedTuple):
    """The outcome of a verb.

    `message` is for the caller, `next` is the next command, `stop` is the reason why nothing is left to do.
    `extra` has additional keys of the verb for the JSON object. `verb` is its name, which `cli` fills in.
    """

    message: str
    exit: Exit = Exit.DONE
    session: int | None = None
    task: Task | None = None
    stop: StopReason | RunStop | None = None
    next: str | None = None
    warnings: tuple[str, ...] = ()
    extra: Mapping[str, object] = NO_EXTRA
    verb: str = ""

    def document(self) -> dict[str, object]:
        """Return the JSON object of schemas/reply.schema.json."""
        return {
            "ok": self.exit is Exit.DONE,
            "verb": self.verb,
            "exit": int(self.exit),
            "session": self.session,
            "task": reading.written(self.task) if self.task else None,
            "stop": {"reason": self.stop} if self.stop else None,
            "next": self.next,
            "message": self.message,
            "error": None,
            "warnings": list(self.warnings),
            **self.extra,
        }

"""The reply with exit 9: nothing to go on with, why, and what to type when that has changed."""

from __future__ import annotations

from collections.abc import Mapping

from harness_lib.errors import Exit
from harness_lib.ops.reply import Reply
from harness_lib.rules import stats
from harness_lib.task import State

WORDS = {
    "done": "Every task is completed.",
    "blocked": "No task is left that could run: the rest failed for good or depends on one that did.",
    "waiting": "Nothing can be taken right now: others hold the rest, or a person must act (harness why ID).",
    "max_sessions": "All sessions that this list may have are used up.",
    "max_tasks_per_session": "This session has finished as many tasks as it may.",
}
EMPTY = "The list is empty: there is nothing to do yet."
ADD = 'harness add "what is to be done" --validate "command that proves it"'
GO_ON = {
    "done": "harness status",
    "blocked": "harness status",
    "waiting": "harness claim --wait 600",
    "max_sessions": "harness edit --max-sessions N",
    "max_tasks_per_session": "harness stop",
}


def reply(
    verb: str,
    state: State,
    stop: str | None,
    told: tuple[str, ...] = (),
    extra: Mapping[str, object] | None = None,
) -> Reply:
    """Return the reply of `verb` for the reason `stop`, after the lines already `told`."""
    reason = stop or "done"
    words = WORDS[reason] if state.tasks else EMPTY
    return Reply(
        verb,
        "\n".join([*told, words, stats.line(state)]),
        exit=Exit.STOP,
        stop=reason,
        next=GO_ON.get(reason) if state.tasks else ADD,
        extra=extra or {},
    )

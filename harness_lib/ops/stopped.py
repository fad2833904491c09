"""The reply with exit 9: nothing to go on with, why, and what to type when that has changed."""

from __future__ import annotations

from collections.abc import Mapping

from harness_lib import typed
from harness_lib.errors import Exit
from harness_lib.ops import brief
from harness_lib.ops.reply import Reply
from harness_lib.rules import stats, stopping
from harness_lib.task import State

SHOWN = 5
WORDS = {
    "done": "Every task is completed.",
    "blocked": "No task is left that could run: the rest failed for good or depends on one that did.",
    "waiting": "Nothing can be taken right now: others hold the rest.",
    "max_sessions": "All sessions that this list may have are used up.",
    "max_tasks_per_session": "This session has finished as many tasks as it may.",
}
PERSON = "A person must act before anything can be taken; to wait is no use."
EMPTY = "The list is empty: there is nothing to do yet."
ADD = 'harness add "what is to be done" --validate "command that proves it"'
GO_ON = {
    "done": "harness status",
    "blocked": "harness status",
    "waiting": "harness claim --wait 600",
    "max_sessions": "harness edit --max-sessions N",
    "max_tasks_per_session": "harness stop",
}


def words(state: State, reason: str) -> str:
    """Return the sentence that says why nothing goes on; a `reason` of others' is its own word."""
    if not state.tasks:
        return EMPTY
    if reason == "waiting" and stopping.awaits_person(state):
        return PERSON
    return WORDS.get(reason, reason)


def reply(
    verb: str,
    state: State,
    stop: str | None,
    told: tuple[str, ...] = (),
    extra: Mapping[str, object] | None = None,
) -> Reply:
    """Return the reply of `verb` for the reason `stop`, after the lines already `told`."""
    reason = stop or "done"
    go_on = GO_ON.get(reason) if state.tasks else ADD
    halted: list[str] = []
    if words(state, reason) == PERSON:
        halted, go_on = _halted(state)
    return Reply(
        verb,
        "\n".join([*told, words(state, reason), *halted, stats.line(state)]),
        exit=Exit.STOP,
        stop=reason,
        next=go_on,
        extra=extra or {},
    )


def _halted(state: State) -> tuple[list[str], str]:
    """Return what a person must see to, and the command that shows the first of it."""
    halted = [task for task in state.tasks if task.halt is not None and task.status != "completed"]
    lines = [
        f"  {task.id}: {brief.one_line(task.halt or '', brief.FAILURE_LENGTH)}" for task in halted[:SHOWN]
    ]
    more = [f"  and {len(halted) - SHOWN} more (harness status)"] if len(halted) > SHOWN else []
    return [*lines, *more], typed.harness("why", halted[0].id)

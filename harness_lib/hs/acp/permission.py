"""A person is asked, by way of the client, whether a call may run."""

from __future__ import annotations

from collections.abc import Callable

from harness_lib.hs.acp.inbox import Inbox
from harness_lib.loop.always import always_about
from harness_lib.loop.asking import Question, Said
from harness_lib.loop.piped import Json

ALLOW_ONCE, ALLOW_ALWAYS, REJECT_ONCE = "allow_once", "allow_always", "reject_once"


class Permission:
    """Asks in the turn itself, and for its subagents, which may ask at the same time."""

    def __init__(self, inbox: Inbox, tell: Callable[[Json], None]) -> None:
        self._inbox = inbox
        self._tell = tell

    def __call__(self, question: Question) -> Said:
        """Return what the person said."""
        number, answer = self._inbox.expect()
        # A call of a subagent is none that the client has heard of.
        call = {"id": question.id or f"asked-{number}", "name": question.name, "input": question.input}
        subject = always_about(question)
        self._tell({"type": "permission", "asked": number, "call": call, "for": subject})
        choice = answer.get()
        if choice in {ALLOW_ONCE, ALLOW_ALWAYS}:
            return Said(allowed=True, always=choice == ALLOW_ALWAYS)
        return Said(allowed=False, reason="the user said no")

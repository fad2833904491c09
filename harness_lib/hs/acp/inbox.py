"""Read what the process of a session is told: lines of JSON on standard input, beside the work.

A turn that is to be cancelled is interrupted wherever it is; so is one whose client has gone. By way of the
client a person is asked whether a call may run.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable

from harness_lib.loop import processes
from harness_lib.loop.asking import Question, Said, always_about
from harness_lib.loop.piped import Json, as_object
from harness_lib.system.processes import signals


class Inbox:
    """The lines that have come and were not taken yet."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        self._main = threading.main_thread().ident
        self._answers: dict[int, queue.SimpleQueue[str]] = {}
        self._asked = 0
        self._working = 0
        self._cancelled = 0
        self._gone = False
        signals.handle(signal.SIGINT, self._interrupt)
        signals.handle(signal.SIGTERM, self._interrupt)
        threading.Thread(target=self._read, daemon=True).start()

    def take(self) -> Json | None:
        """Return the next line; None when no more will come."""
        return self._lines.get()

    def expect(self) -> tuple[int, queue.SimpleQueue[str]]:
        """Return the number of a new question, and where its answer will come."""
        self._asked += 1
        self._answers[self._asked] = queue.SimpleQueue()
        return self._asked, self._answers[self._asked]

    def begin(self, turn: int) -> bool:
        """Let `turn`, a number above 0, be interrupted from now on; return whether it still is to be done."""
        self._working = turn
        return self._cancelled != turn and not self._gone

    def end(self) -> None:
        """Let nothing be interrupted any more."""
        self._working = 0

    def _interrupt(self, number: int, frame: object) -> None:
        if self._working:
            processes.interrupt(number, frame)

    def _read(self) -> None:
        # Not sys.stdin: the interpreter cannot end while somebody waits in it.
        for line in open(0, encoding="utf-8", closefd=False):  # noqa: SIM115 (a descriptor, never closed)
            request = as_object(line)
            if request is not None and "cancel" in request:
                self._cancelled = int(request["cancel"])
                self._wake(self._working == self._cancelled)
            elif request is not None and "permission" in request:
                self._answers.pop(int(request["permission"])).put(str(request["answer"]))
            elif request is not None:
                self._lines.put(request)
        self._gone = True
        self._wake(self._working > 0)
        self._lines.put(None)

    def _wake(self, needed: bool) -> None:  # noqa: FBT001 (whether it is needed is the one thing to say)
        # To the main thread: a signal that another thread gets interrupts no waiting there.
        if needed and self._main is not None:
            signal.pthread_kill(self._main, signal.SIGINT)


ALLOW_ONCE, ALLOW_ALWAYS, REJECT_ONCE = "allow_once", "allow_always", "reject_once"


class Permission:
    """Asks in the turn itself, and for its subagents, which may ask at the same time."""

    def __init__(self, inbox: Inbox, tell: Callable[[Json], None]) -> None:
        self._inbox = inbox
        self._tell = tell

    def __call__(self, question: Question) -> Said:
        """Return what the person said."""
        number, answer = self._inbox.expect()
        # The client has not heard of a subagent's calls.
        call = {"id": question.id or f"asked-{number}", "name": question.name, "input": question.input}
        subject = always_about(question)
        self._tell({"type": "permission", "asked": number, "call": call, "for": subject})
        choice = answer.get()
        if choice in {ALLOW_ONCE, ALLOW_ALWAYS}:
            return Said(allowed=True, always=choice == ALLOW_ALWAYS)
        return Said(allowed=False, reason="the user said no")

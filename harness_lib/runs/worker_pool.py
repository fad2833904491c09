"""The worker processes of a run: started, listened to, told to drain, ended."""

from __future__ import annotations

import json
import os
import selectors
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness_lib.core.context import Context
from harness_lib.rules import deaths, events
from harness_lib.rules.budget import Budget
from harness_lib.rules.events import Event, Gone, Unstarted
from harness_lib.runs import worker_config as orders
from harness_lib.runs.worker_config import WorkerConfig
from harness_lib.system.install import launcher
from harness_lib.system.processes import child
from harness_lib.system.processes.child import Child

ENDING_SECONDS = 60.0
REHEARSAL_SECONDS = 60.0
READ_BYTES = 65536


@dataclass
class WorkerHandle:
    """One worker process, and what it has said without an end of the line yet.

    `errors` is where it complains, after the `skip` bytes of those that had its number before. `started`: it
    has said a word, so its process can run our code.
    """

    orders: WorkerConfig
    process: Child
    errors: Path
    skip: int
    rest: bytes = b""
    started: bool = False


def rehearse(ctx: Context) -> str | None:
    """Start a worker as a run does, one without orders; return why it cannot start, None if it can."""
    try:
        answer = child.ask(_command(), env=ctx.env, cwd=ctx.cwd, seconds=REHEARSAL_SECONDS)
    except OSError as error:
        return str(error)
    words = answer.complaint.decode("utf-8", "replace").strip()
    return _cause(words) or f"exit {answer.code}" if answer.code else None


def _command() -> list[str]:
    return launcher.python("from harness_lib.runs.worker_main import main; main()")


def _cause(complaint: str) -> str:
    """Return the line of a traceback that says what went wrong: its last."""
    return complaint.rpartition("\n")[2]


class WorkerPool:
    """All of them. `lock` is a descriptor that each inherits and none ever reads."""

    def __init__(self, ctx: Context, lock: int) -> None:
        self._ctx, self._lock = ctx, lock
        self._hands: dict[int, WorkerHandle] = {}
        self._selector = selectors.DefaultSelector()

    def start(self, given: WorkerConfig) -> None:
        """Start a worker, in a session of its own so that Ctrl-C on a terminal reaches only the run."""
        errors = Path(given.place) / f"worker-{given.number}.err"
        with errors.open("ab") as stream:
            skip = stream.tell()
            process = child.start_piped(
                _command(),
                env={**self._ctx.env, "HARNESS_STATE_ROOT": str(self._ctx.root.path)},
                cwd=self._ctx.root.path,
                complaints=stream,
                inherited=(self._lock,),
            )
        assert process.stdin is not None
        assert process.stdout is not None
        hand = WorkerHandle(given, process, errors, skip)
        self._hands[given.number] = hand
        os.set_blocking(process.stdout.fileno(), False)
        self._selector.register(process.stdout, selectors.EVENT_READ, hand)
        self._say(hand, orders.write(given))

    def listen(self, seconds: float) -> Iterator[Event]:
        """Yield what workers say within `seconds`, and `gone` for each whose process has ended."""
        for key, _ in self._selector.select(seconds):
            hand: WorkerHandle = key.data
            new = os.read(key.fd, READ_BYTES)
            if not new:
                yield self._bury(hand)
                continue
            hand.started = True
            *lines, hand.rest = (hand.rest + new).split(b"\n")
            yield from (events.read(json.loads(line)) for line in lines)

    def _bury(self, hand: WorkerHandle) -> Event:
        assert hand.process.stdout is not None
        self._selector.unregister(hand.process.stdout)
        hand.process.stdout.close()
        code = hand.process.wait()
        assert hand.process.stdin is not None
        with suppress(BrokenPipeError):
            # What could not be told to a dead one needs no telling.
            hand.process.stdin.close()
        del self._hands[hand.orders.number]
        complaint = hand.errors.read_bytes()[hand.skip :][-2000:]
        words = complaint.decode("utf-8", "replace").strip()
        # One that was killed could have started.
        unstarted = code > 0 and not hand.started
        news = Unstarted(code, _cause(words)) if unstarted else Gone(code, deaths.describe(code, words))
        return Event(hand.orders.number, self._ctx.clock.now().timestamp(), news)

    @property
    def numbers(self) -> list[int]:
        """Return which workers are there."""
        return sorted(self._hands)

    def let(self, number: int) -> None:
        """Let worker `number` take a task."""
        if number in self._hands:
            self._say(self._hands[number], "go")

    def limit(self, limits: Budget) -> None:
        """Hold every worker to these limits of a task from now on."""
        for hand in self._hands.values():
            self._say(hand, orders.limits(limits))

    def drain(self) -> None:
        """Let every worker finish what it has and take no more."""
        for hand in self._hands.values():
            self._say(hand, "drain")

    def stop(self) -> None:
        """Let every worker stop now, and keep what was done."""
        for hand in self._hands.values():
            hand.process.terminate()

    def end(self) -> Iterator[Event]:
        """End all that are left, yielding what they still say; those that do not end are killed."""
        self.stop()
        until = self._ctx.clock.monotonic() + ENDING_SECONDS
        while self._hands and self._ctx.clock.monotonic() < until:
            yield from self.listen(0.2)
        for hand in list(self._hands.values()):
            hand.process.kill()
            yield self._bury(hand)

    def _say(self, hand: WorkerHandle, line: str) -> None:
        assert hand.process.stdin is not None
        try:
            hand.process.stdin.write(line.encode() + b"\n")
            hand.process.stdin.flush()
        except BrokenPipeError:
            # It has ended; `listen` will say so.
            return

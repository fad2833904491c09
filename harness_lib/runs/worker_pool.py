"""Start the worker processes of a run, listen to them, drain and end them."""

from __future__ import annotations

import json
import os
import selectors
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from harness_lib import typed
from harness_lib.attempts import merge_queue, reconcile, snapshots
from harness_lib.core.context import Context
from harness_lib.rules import events, recovery, run_state
from harness_lib.rules.events import Event, Gone, News, Notice, Queued, Unstarted
from harness_lib.runs.options import WorkerConfig
from harness_lib.state.api import Questions
from harness_lib.system.install import launcher
from harness_lib.system.processes import child
from harness_lib.task import Task

ENDING_SECONDS = 60.0
RETRY_SECONDS = 5.0
LOOK_SECONDS = 30.0
COUNT_SECONDS = 5.0


@dataclass
class WorkerHandle:
    """One worker process, and its output that is not a whole line yet.

    `errors` is where it complains. `started`: it has sent an event, so its process can run our code.
    """

    config: WorkerConfig
    process: child.Child
    errors: Path
    rest: bytes = b""
    started: bool = False


def rehearse(ctx: Context) -> str | None:
    """Start a worker with nothing to do; return why it cannot start, None if it can."""
    try:
        answer = child.ask(_command(), env=ctx.env, cwd=ctx.cwd, seconds=60.0)
    except OSError as error:
        return str(error)
    words = answer.complaint.strip()
    return _cause(words) or f"exit {answer.code}" if answer.code else None


def _command() -> list[str]:
    return launcher.python("from harness_lib.runs.worker_main import main; main()")


def _cause(complaint: str) -> str:
    """Return the last line of a traceback, which says what went wrong."""
    return complaint.rpartition("\n")[2]


class WorkerPool:
    """The workers of a run. `lock` is a descriptor that each inherits and none reads."""

    def __init__(self, ctx: Context, lock: int) -> None:
        self._ctx, self._lock = ctx, lock
        self._handles: dict[int, WorkerHandle] = {}
        self._selector = selectors.DefaultSelector()

    def start(self, config: WorkerConfig) -> None:
        """Start a worker, in a session of its own so that Ctrl-C on a terminal reaches only the run."""
        errors = Path(config.place) / f"worker-{config.number}.err"
        # Another worker may have had this number, and have ended.
        with errors.open("wb") as stream:
            process = child.start(
                _command(),
                env={**self._ctx.own_env, "HARNESS_STATE_ROOT": str(self._ctx.root.path)},
                cwd=self._ctx.root.path,
                stdin=child.PIPE,
                output=child.PIPE,
                errors=stream,
                inherited=(self._lock,),
            )
        assert process.stdin is not None
        assert process.stdout is not None
        handle = WorkerHandle(config, process, errors)
        self._handles[config.number] = handle
        os.set_blocking(process.stdout.fileno(), False)
        self._selector.register(process.stdout, selectors.EVENT_READ, handle)
        self._say(handle, asdict(config))

    def listen(self, seconds: float) -> Iterator[Event]:
        """Yield what workers say within `seconds`, and `gone` for each whose process has ended."""
        for key, _ in self._selector.select(seconds):
            handle: WorkerHandle = key.data
            new = os.read(key.fd, 65536)
            if not new:
                yield self._reap(handle)
                continue
            handle.started = True
            *lines, handle.rest = (handle.rest + new).split(b"\n")
            yield from (events.read(json.loads(line)) for line in lines)

    def _reap(self, handle: WorkerHandle) -> Event:
        assert handle.process.stdout is not None
        self._selector.unregister(handle.process.stdout)
        handle.process.stdout.close()
        code = handle.process.wait()
        assert handle.process.stdin is not None
        with suppress(BrokenPipeError):
            # A message that a dead worker cannot get is not needed.
            handle.process.stdin.close()
        del self._handles[handle.config.number]
        words = ""
        # Somebody may have removed the file.
        with suppress(FileNotFoundError):
            words = handle.errors.read_bytes()[-2000:].decode("utf-8", "replace").strip()
        # A worker that was killed could have started.
        unstarted = code > 0 and not handle.started
        news = Unstarted(code, _cause(words)) if unstarted else Gone(code, run_state.describe(code, words))
        return Event(handle.config.number, self._ctx.clock.time(), news)

    @property
    def numbers(self) -> list[int]:
        """Return the numbers of the workers."""
        return sorted(self._handles)

    def admit(self, number: int) -> None:
        """Let worker `number` take a task."""
        if number in self._handles:
            self._say(self._handles[number], {"go": True})

    def limit(self, limits: run_state.Budget) -> None:
        """Give every worker new limits of a task."""
        for handle in self._handles.values():
            self._say(handle, {"limits": run_state.write_budget(limits)})

    def hold_back(self, *, limited: bool) -> None:
        """Tell every worker whether a limit of the run is reached: then no further agent is started."""
        for handle in self._handles.values():
            self._say(handle, {"limited": limited})

    def drain(self, *numbers: int) -> None:
        """Let these workers finish what they have and take nothing more."""
        for number in numbers:
            self._say(self._handles[number], {"drain": True})

    def stop(self) -> None:
        """Let every worker stop now, and keep its work."""
        for handle in self._handles.values():
            handle.process.terminate()

    def end(self) -> Iterator[Event]:
        """End the workers that are left, yielding their last events; those that do not end are killed."""
        self.stop()
        until = self._ctx.clock.monotonic() + ENDING_SECONDS
        while self._handles and self._ctx.clock.monotonic() < until:
            yield from self.listen(0.2)
        for handle in list(self._handles.values()):
            handle.process.kill()
            yield self._reap(handle)

    def _say(self, handle: WorkerHandle, told: Mapping[str, object]) -> None:
        assert handle.process.stdin is not None
        try:
            handle.process.stdin.write(json.dumps(told).encode() + b"\n")
            handle.process.stdin.flush()
        except BrokenPipeError:
            # It has ended; `listen` will say so.
            return


class Orphans:
    """The tasks of dead workers of one run; `tell` takes the news about them."""

    def __init__(self, ctx: Context, tell: Callable[[News], None]) -> None:
        self._ctx, self._tell = ctx, tell
        self._next_try = self._next_look = self._next_count = 0.0
        self._missing: set[str] = set()
        self._awaited: set[tuple[str, int]] = set()
        # Who merges what the others have finished, if machines share the list.
        self.merger = ctx.merging.by
        self._reclaims = reconcile.Reclaims(ctx)

    def of(self, worker: str) -> None:
        """Requeue what `worker` has in progress: its process is dead, or it is the run's own name.

        Under that it has what recovery has left to it: a worker continues it in a work tree of its own.
        """
        questions = self._ctx.ask()
        session, working = self._ctx.own_session(questions), questions.in_progress()
        # A database then uses its connection for what follows.
        del questions
        if not session:
            return
        self._ctx.session = session
        for held in working:
            # Of machines that share the list, checked work that waits for its merge is in no work tree.
            if held.claimed_by == worker and (held.worktree or self._ctx.shared):
                tried = self._reclaims.reclaim(held)
                if tried.how in ("handed back", "queued"):
                    self._tell(Notice("recovered", tried.message))
                    if tried.how == "queued":
                        self._tell(Queued(held.id))
                elif tried.how in ("later", "given up"):
                    self._tell(Notice("warning", tried.message))

    def of_merger(self) -> None:
        """Requeue what was handed to the worker that merges when it had ended already."""
        if self.merger:
            self.of(self.merger)

    def left(self, tasks: Sequence[Task]) -> None:
        """Requeue those of `tasks`, in progress, whose workers had died; every worker is idle now.

        Tell once for each task of another session that they wait for it, unless machines share the list.
        """
        me, now = self._ctx.owner.worker, self._ctx.clock.monotonic()
        if now < self._next_try:
            return
        self._next_try = now + RETRY_SECONDS
        for task in tasks:
            if task.claimed_by and recovery.works_for(task.claimed_by, me):
                self.of(task.claimed_by)
            elif not self._ctx.shared and (task.id, task.fence) not in self._awaited:
                self._awaited.add((task.id, task.fence))
                who, end = task.claimed_by or "nobody that is known", typed.harness("release", task.id)
                text = f"every worker waits: {who} works on {task.id}; if nobody does any more, type: {end}"
                self._tell(Notice("warning", text))

    def of_others(self) -> None:
        """Recover tasks that others (concurrent mode) have left in progress with expired leases."""
        questions = self._ctx.ask()
        session, expired = self._ctx.own_session(questions), questions.expired()
        # A database then uses its connection for what follows.
        del questions
        if session and any(not recovery.works_for(task.claimed_by, session.worker) for task in expired):
            self._ctx.session = session
            reconcile.reclaim_interrupted(self._ctx, fresh=False, of_others=True)

    def is_merging(self, questions: Questions) -> bool:
        """Return whether work of this run waits for its merge."""
        return bool(self.merger and merge_queue.queued(questions, self.merger))

    def taken_over(self, queued: Collection[str]) -> set[str]:
        """Return which of `queued`, tasks that were to be merged, this run has no more.

        Another machine has them, for instance because the leases were over, so nobody here tells how they
        end. The worker that merges may be about to tell: only what was missing a while ago, too, is returned.
        """
        now = self._ctx.clock.monotonic()
        if not queued or now < self._next_count:
            return set()
        self._next_count = now + COUNT_SECONDS
        waiting = {task.id for task in merge_queue.queued(self._ctx.ask(), self.merger)}
        before, self._missing = self._missing, {*queued} - waiting
        return before & self._missing

    def of_machines(self) -> None:
        """Recover what other machines have left, and send what they lack, every half a minute."""
        now = self._ctx.clock.monotonic()
        if self._ctx.shared and now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            snapshots.send(self._ctx)
            self.of_others()

"""Be a worker in a process of its own, with two pipes to the run: one that takes tasks, or one that merges.

It speaks in JSON lines on standard output (`rules.events` says which), and hears the run on standard input:
its configuration first, then what `Worker.hear` takes; the end of the input means that the run is dead.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from harness_lib import errors
from harness_lib.attempts import check, interrupted, merge_queue
from harness_lib.core.context import Context
from harness_lib.rules import events, recovery, transitions
from harness_lib.rules.events import Ended, Event, Idle, Notice, Started, Stuck
from harness_lib.runs import options
from harness_lib.runs.worker import Worker, failure
from harness_lib.system.git import trees
from harness_lib.system.git.calls import GitError
from harness_lib.system.processes import own_process, runner
from harness_lib.task import Task


def main() -> None:
    """Work by the WorkerConfig in the first line of standard input; do nothing if there is none."""
    line = sys.stdin.readline()
    if not line:
        return
    config = options.read(line)
    env = {**os.environ, **config.env()}
    out = sys.stdout

    def say(event: Event) -> None:
        out.write(json.dumps(events.write(event)) + "\n")
        out.flush()

    def tell(text: str) -> None:
        worker.tell(Notice("warning", text))

    root = Path(os.environ["HARNESS_STATE_ROOT"])
    ctx = Context(
        env=env, cwd=root, target=config.target, merging=config.merging, protect=config.protect, say=tell
    )
    worker = (Worker if config.number else Merger)(ctx, config, say)
    worker.tell(Started())
    note = Path(config.place) / f"worker-{config.number}.log"
    runner.note(note, os.getpid())
    own_process.raise_once(own_process.END, lambda _number: KeyboardInterrupt())
    threading.Thread(target=_listen, args=(worker,), daemon=True).start()
    try:
        worker.work()
    except errors.HarnessError as error:
        worker.tell(Stuck(None, error.kind, error.message, error.hint or ""))
    except OSError as error:
        hint = f"{errors.cure(error)}; then: harness run"
        worker.tell(Stuck(None, errors.EnvSetupError.kind, errors.describe(error), hint))
    except KeyboardInterrupt:
        worker.tell(Idle("stopped"))
    finally:
        own_process.ignore(own_process.END)
        runner.forget(note)


def _listen(worker: Worker) -> None:
    for line in sys.stdin:
        worker.hear(json.loads(line))
    # The run is dead, or has ended us.
    worker.hear({"drain": True})
    own_process.send(os.getpid(), own_process.END)


class _NoWorkTreeError(errors.EnvSetupError):
    """Git cannot make a work tree on this machine."""


class Merger(Worker):
    """The worker that merges what the others have finished, if machines share the list.

    Whoever has finished a task hands its claim over and is free for the next one: it may take long until it
    is this machine's turn to merge. It takes no task of its own, and ends when told to and nothing waits.
    Crash model: what this worker has claimed is in no work tree, but in the remote (`ready/`). Once it is
    dead, the run, or another machine when the claims have expired, completes what has arrived on the branch,
    and requeues the rest, uncounted, to be merged without an agent (`attempts/interrupted.py`).
    """

    def __init__(self, ctx: Context, config: options.WorkerConfig, say: Callable[[Event], None]) -> None:
        super().__init__(ctx, config, say)
        self._is_prepared = False
        self._kept = 0.0
        check.kept_along.append(self._keep_claims)

    def _one(self) -> bool:
        """Merge the work that waits longest, with what fits to it; return False if there is none."""
        if not self._is_prepared:
            # What the project prepares may take longer than a claim lasts.
            self._clean()
            self._is_prepared = True
        self._keep_claims()
        questions = self.ctx.ask()
        session = self.ctx.own_session(questions)
        waiting = merge_queue.queued(questions, self.ctx.owner.worker)
        # A look that is kept would hold a connection of a pooler until it is this machine's turn.
        del questions
        if not session or not waiting:
            self.tell(Idle("waiting"))
            return False
        self.ctx.session = session
        return self._merge(waiting[0])

    def _merge(self, task: Task) -> bool:
        """Take the turn and merge; return False to wait a moment before the next try."""
        commit = task.begun.commit
        # Another machine may have put the work on top of its own, in a commit that is not here.
        at = commit if commit and self.ctx.git.exists(commit) else None
        try:
            ended = merge_queue.merge_in_turn(self._context_at(at), task)
        except errors.LeaseLostError as error:
            self.tell(Ended(task.id, "pending", error.message))
        except (errors.AwayError, errors.BusyError, _NoWorkTreeError):
            raise
        except (errors.HeldError, GitError, errors.UntrustedTaskError) as error:
            if not self._tries.spent(task):
                self.tell(Notice("warning", f"{task.id} could not be merged yet: {error.message}"))
                return False
            halted = interrupted.give_up(self.ctx, task, error)
            self.tell(Ended(task.id, "pending", halted.halt or ""))
        else:
            self._tell_ended(ended._replace(files=self._count_files(ended.task)), failure(ended.task))
        return True

    def _context_at(self, commit: str | None) -> Context:
        """Return the context of a clean work tree at `commit`.

        Raises _NoWorkTreeError if there can be none at the branch either: that is no task's doing, and no
        task is halted for it.
        """
        try:
            return self._clean(commit)[0]
        except GitError as error:
            try:
                self._clean()
            except GitError as everywhere:
                raise _NoWorkTreeError(everywhere.message, everywhere.hint) from error
            raise

    def _count_files(self, task: Task) -> int | None:
        """Return how many files the commit of completed work changes."""
        commit = task.completed_commit
        if task.status != "completed" or commit is None:
            return None
        before = self.ctx.git.parent(commit)
        return len(trees.changed(self.ctx.git, before, commit)) if before else None

    def _keep_claims(self) -> None:
        """Renew the leases of all that waits, when a third of them is over."""
        now = self.ctx.clock.monotonic()
        if now - self._kept < self.ctx.lease_seconds / check.RENEWALS_PER_LEASE:
            return
        self._kept = now
        waiting = merge_queue.queued(self.ctx.ask(), self.ctx.owner.worker)
        if not waiting:
            return
        with self.ctx.transaction("tasks") as tx:
            # In this order whoever moves several tasks locks them: two never wait for each other.
            for task in sorted(waiting, key=lambda task: task.id):
                current = tx.task(task.id)
                if current and recovery.is_same(current, task):
                    tx.replace(transitions.renew(current, now=tx.now, lease_seconds=self.ctx.lease_seconds))

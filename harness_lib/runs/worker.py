"""Run one worker of an unattended run, which takes one task after another to its end.

It claims, lets an agent work, runs the check, merges or rolls back; the agent only works.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness_lib import errors, typed
from harness_lib.attempts import (
    check,
    claim,
    committed,
    interrupted,
    merge_queue,
    outcome,
    reconcile,
    requeue,
    target_branch,
    worker_worktrees,
)
from harness_lib.checks import check_of
from harness_lib.core import lifecycle, trust
from harness_lib.core.context import Context
from harness_lib.errors import (
    AwayError,
    CheckEditedError,
    ConfigError,
    EnvSetupError,
    HarnessError,
    HeldError,
    LeaseLostError,
    RefusedError,
    UntrustedError,
    UntrustedTaskError,
    UsageError,
)
from harness_lib.rules import arrows, run_state, transitions
from harness_lib.rules.attempts import Halt
from harness_lib.rules.events import (
    Away,
    Claimed,
    Ended,
    Event,
    Idle,
    News,
    Notice,
    Queued,
    Ready,
    Stepped,
    Stuck,
)
from harness_lib.runs import agent_attempt, waiting
from harness_lib.runs.options import Rules, WorkerConfig
from harness_lib.runs.waiting import HeldBackError, StuckError, Waiting
from harness_lib.state.api import Questions
from harness_lib.system.git import clones
from harness_lib.system.git.calls import GitError
from harness_lib.task import Task
from harness_lib.text import safe_name, sentence

LOOK_ANYWAY_SECONDS = 5.0


class Worker:
    """One worker: its configuration, its state, and how it talks to the run."""

    def __init__(self, ctx: Context, config: WorkerConfig, say: Callable[[Event], None]) -> None:
        self.ctx, self.config, self._say = ctx, config, say
        self.adapter = config.adapter()
        self.known: check.Known = {}
        self.limits = run_state.read_budget(config.limits)
        self.draining = threading.Event()
        self.limited = False
        self.allowed = threading.Semaphore(0)
        self._idle = ""
        self.has_worked = False
        self._tries = interrupted.Tries()
        # Tasks that had no further try and could not be halted at once, as their work was not kept yet.
        self._spent: dict[str, StuckError] = {}
        self._reclaims = reconcile.Reclaims(ctx)
        self._mishaps = 0
        self._told = 0

    def hear(self, told: Mapping[str, Any]) -> None:
        """Take what the run says: `go` lets the worker take a task, after `drain` it takes none any more.

        `limits` are those of its tasks; while it is `limited`, it starts no further agent.
        """
        if "limits" in told:
            self.limits = run_state.read_budget(told["limits"])
        self.limited = told.get("limited", self.limited)
        if "drain" in told:
            self.draining.set()
        if told.keys() & {"go", "drain"}:
            self.allowed.release()

    def tell(self, news: News) -> None:
        """Send an event to the run; the reason for idling is sent once."""
        why = news.why if isinstance(news, Idle) else ""
        if why and why == self._idle:
            return
        self._idle = why
        self._say(Event(self.config.number, self.ctx.clock.time(), news))

    def rules(self) -> Rules:
        """Return the limits of an agent as they are now."""
        return Rules(self.config.silence, self.config.longest, self.limits)

    def held_back(self) -> str:
        """Return why no further agent may start; "" if one may."""
        if self.draining.is_set():
            return "the run was stopped"
        return "a limit of the run was reached" if self.limited else ""

    def work(self) -> None:
        """Take tasks until the run ends the worker."""
        wait = Waiting(self.ctx, lambda line: self.tell(Away(line)))
        while not self.draining.is_set():
            seen = self.ctx.store.stamp()
            try:
                # While a disk is full, no agent is started for nothing.
                is_held = wait.is_for_room(self.ctx, Path(self.config.place))
                goes_on = not is_held and self._one()
            except (AwayError, HeldError, OSError) as error:
                if waiting.passes(error):
                    wait.after(error)
                elif isinstance(error, OSError):
                    self._mishaps += 1
                    if errors.is_of_the_machine(error) or self._mishaps == interrupted.TRIES:
                        raise
                    self.tell(Notice("warning", f"{waiting.why(error)} It is tried again."))
                if not isinstance(error, OSError):
                    # A lock is held for longer than usual, or something is away: our task stays ours.
                    self.tell(Idle(f"{error.kind}: {error.message}"))
                goes_on = False
            else:
                self._mishaps = 0
                if not is_held:
                    wait.over()
            self._tell_of_list()
            if not goes_on:
                self._wait(seen)

    def _tell_of_list(self) -> None:
        """Report what was wrong with the list when it was changed, for instance that it was restored."""
        for message in self.ctx.store.warnings[self._told :]:
            self.tell(Notice("warning", message))
        self._told = len(self.ctx.store.warnings)

    def _one(self) -> bool:
        """Take one task to its end; return False if there is none."""
        questions = self.ctx.store.ask_now(waits=False)
        session = self.ctx.own_session(questions)
        if not session:
            self.tell(Idle("closed"))
            return False
        self.ctx.session = session
        held = self.ctx.held(questions)
        if held:
            return self._hand_back(held)
        if questions.session_spent(session):
            return self._next_session()
        if trust.known(self.ctx, questions.provable()):
            for line in committed.prove(self._clean()[0]):
                self.tell(Notice("recovered", line))
            questions = self.ctx.ask()
        task = claim.next_task(self.ctx, questions).task
        if not task:
            self.tell(Idle(questions.no_work() or "waiting"))
            return False
        # A look that is kept would hold a connection of a pooler while the agent works.
        del questions
        # The run admits us to a task: only it knows what all workers have spent.
        self.tell(Ready())
        self.allowed.acquire()
        return self.draining.is_set() or self._take(task)

    def _hand_back(self, held: Task) -> bool:
        """Requeue the task of the previous worker, if the run could not do that when it was killed."""
        tried = self._reclaims.reclaim(held)
        if tried.how in ("handed back", "queued"):
            self.tell(Notice("recovered", tried.message))
            if tried.how == "queued":
                self.tell(Queued(held.id))
        elif tried.how == "given up":
            self.tell(Ended(held.id, "pending", tried.message))
        else:
            self.tell(Idle(tried.message))
        return tried.how in ("handed back", "queued", "given up")

    def _take(self, task: Task) -> bool:
        """Claim a task and take it to its end; return False if none can be claimed now.

        A problem with `task`, the first in order, must not keep the others waiting.
        """
        if stuck := self._spent.pop(task.id, None):
            self._halt(task, stuck)
            return True
        context, settings = self._clean()
        try:
            # Without a check it can never be completed: no agent is started for it.
            if not check_of(task).is_given:
                check.require_check(context, context.ask(), task)
            taken = claim.take(context, task.id, settings)
        except (UsageError, UntrustedTaskError):
            # Another worker was faster, or a user has edited its commands on another machine.
            return True
        except UntrustedError:
            raise
        except (ConfigError, RefusedError) as error:
            if context.changes().tracked and not self._tries.spent(task):
                # It was clean: a program that outlived its agent, or `harness-init.sh`, has written there.
                self.tell(Notice("warning", f"{error.message} The work tree is cleaned once more."))
                return True
            self._halt(task, StuckError.of(error, typed.harness("retry", task.id)))
            return True
        if not taken.task:
            self.tell(Idle(taken.stop or "waiting"))
            return taken.stop is None
        self._attempt(context, taken.task)
        return True

    def _clean(self, commit: str | None = None) -> tuple[Context, clones.Settings | None]:
        """Return the context of a clean work tree at `commit`, by default with all that was merged so far.

        Beside it what `baseline.survey` may know of it.
        """
        commit = (
            commit or merge_queue.refresh(self.ctx) or target_branch.tip(self.ctx.git, self.config.target)
        )
        path = worker_worktrees.free(
            self.ctx, worker_worktrees.Place(Path(self.config.place)), self.config.number
        )
        if not path.exists():
            # With thousands of files of a project and of its `node_modules` this takes minutes.
            self.tell(Stepped("prepares", message="a new work tree"))
        clean = worker_worktrees.checkout_clean(self.ctx, path, commit)
        context = self.ctx.at(clean.git)
        if clean.is_new:
            worker_worktrees.set_up(context)
        return context, clean.settings

    def _attempt(self, context: Context, task: Task) -> None:
        self.tell(Claimed(task.id, task.title, task.attempts + 1, task.claimed_at))
        try:
            ended = agent_attempt.run(context, task, self)
        except LeaseLostError as error:
            self.tell(Ended(task.id, "pending", error.message))
        except KeyboardInterrupt:
            self._give_back(context, task, "the run was stopped")
            raise
        except (CheckEditedError, HeldBackError, UntrustedTaskError) as error:
            self._is_given_back(context, task, str(error))
        except StuckError as stuck:
            if self._is_given_back(context, task, stuck.reason) or stuck.everywhere:
                self._halt(task, stuck)
        except (GitError, OSError) as error:
            self._leave(context, task, error)
        except (HeldError, AwayError):
            raise
        except HarnessError as error:
            self._give_back(context, task, str(error))
            raise
        else:
            self.has_worked = True
            self._tell_ended(ended, failure(ended.task))

    def _tell_ended(self, ended: outcome.Ended, message: str) -> None:
        """Report how an attempt ended; the run reports, once, that finished work waits for the user."""
        task = ended.task
        if task.status == "in_progress":
            self.tell(Queued(task.id))
            return
        self.tell(
            Ended(
                task.id,
                task.status,
                message,
                commit=task.completed_commit,
                rescue=ended.rescue,
                warnings=task.look_at if task.status == "completed" else ended.warnings,
                files=ended.files,
                touched=task.touched,
                logs=f"logs/{safe_name(task.id)}",
            )
        )

    def _leave(self, context: Context, task: Task, error: GitError | OSError) -> None:
        """Requeue a task that cannot go on for a reason of its own, perhaps its agent's doing; others go on.

        It is tried again, and halted after some tries: the task itself may fill the disk, or need more memory
        than there is. Raises `error` if the machine is the cause.
        """
        passes, cause = waiting.passes(error), waiting.why(error)
        if passes and not self._tries.spent(task):
            # The claim stays ours until it is over.
            raise error
        if not passes and isinstance(error, OSError) and errors.is_of_the_machine(error):
            self._give_back(context, task, cause)
            raise error
        stuck = StuckError(EnvSetupError.kind, cause, then=typed.harness("retry", task.id))
        is_back = self._is_given_back(context, task, cause)
        if is_back and (passes or self._tries.spent(task)):
            self._halt(task, stuck)
        elif passes:
            self._spent[task.id] = stuck

    def _is_given_back(self, context: Context, task: Task, why: str) -> bool:
        """Return whether the task could be requeued; otherwise keep the claim and retry on the next poll."""
        try:
            self._give_back(context, task, why)
        except (EnvSetupError, OSError):
            return False
        return True

    def _give_back(self, context: Context, task: Task, why: str) -> None:
        """Keep the work, and release the task."""
        current = self.ctx.store.ask_now().task(task.id)
        if not current or current.status != "in_progress" or current.claimed_by != self.ctx.owner.worker:
            return
        try:
            if current.intent:
                ended = interrupted.resume(context, current)
            else:
                worker_worktrees.take_in(context, context.git, current)
                ended = requeue.interrupted(context, current, why)
        except LeaseLostError as error:
            self.tell(Ended(task.id, "pending", error.message))
            return
        self._tell_ended(ended, why)

    def _halt(self, task: Task, stuck: StuckError) -> None:
        """Halt the task until the user has acted; a problem that concerns every task ends the run."""
        is_unstarted = stuck.halts_as == "UNSTARTED"
        if is_unstarted and self.draining.is_set():
            # Another worker may have found that the agent is the cause; if not, the next run will.
            return
        with self.ctx.transaction() as tx:
            everywhere = stuck.everywhere or (is_unstarted and self._is_the_agents(tx, task))
            if everywhere:
                # Where the agent starts for no task, no task is the cause.
                for halted in tx.halted():
                    if halted.halt_kind == "UNSTARTED" and arrows.may("halt", halted):
                        tx.replace(transitions.halt(halted, None))
            else:
                current = tx.task(task.id)
                if current and arrows.may("halt", current):
                    why = Halt(stuck.halts_as, f"{stuck.kind}: {sentence(stuck.reason)}")
                    if stuck.then:
                        why = Halt(why.kind, f"{why.words} Then type: {stuck.then}", (stuck.then,))
                    tx.replace(transitions.halt(current, why))
        if everywhere:
            self.tell(Stuck(task.id, stuck.kind, stuck.reason, stuck.hint))
            self.draining.set()

    def _is_the_agents(self, questions: Questions, task: Task) -> bool:
        """Return whether the agent, not the task, is why none starts.

        Two of three signs say so: another task is halted for that, no agent of this worker has done anything,
        and no other task is left to try.
        """
        halted = any(each.halt_kind == "UNSTARTED" for each in questions.halted() if each.id != task.id)
        others = {each.id for each in questions.claimable()}
        others |= {each.id for each in questions.in_progress()}
        return sum((halted, not self.has_worked, not others - {task.id})) > 1

    def _next_session(self) -> bool:
        """Begin the next session after one that has reached its limit of tasks."""
        with self.ctx.transaction("tasks") as tx:
            current = self.ctx.own_session(tx)
            if not current or not tx.session_spent(current):
                return True
            if tx.sessions_spent():
                self.tell(Idle("max_sessions"))
                return False
            lifecycle.begin_next(tx, current)
        return True

    def _wait(self, seen: object) -> None:
        """Wait until the list has changed, or for a while."""
        until = self.ctx.clock.monotonic() + LOOK_ANYWAY_SECONDS
        while not self.draining.wait(0.25):
            if self.ctx.store.stamp() != seen or self.ctx.clock.monotonic() > until:
                return


def failure(task: Task) -> str:
    """Return why an attempt at `task` has failed; "" if it is completed."""
    if task.status == "pending" and task.handback:
        return task.halt or task.handback.reason
    return task.error_log[-1] if task.status == "failed" and task.error_log else ""

"""Run workers (`harness run`) until every task is completed or has failed for good.

The run holds one session; each worker has a process and a work tree of its own. Here is only
what concerns all of them: who may claim a task, limits, Ctrl-C, the final check, and the end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from harness_lib import errors
from harness_lib.attempts import claim, publish, worker_worktrees
from harness_lib.core import lifecycle, project, sessions, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import EnvSetupError, HarnessError, UsageError
from harness_lib.rules import recovery, run_state
from harness_lib.rules.events import (
    MERGER,
    Ended,
    Event,
    Gone,
    News,
    Notice,
    NoticeKind,
    Ready,
    Stepped,
    Stuck,
    Unstarted,
)
from harness_lib.rules.run_state import Deaths, RunState
from harness_lib.runs import ending, final_check, run_files, waiting
from harness_lib.runs.options import Options
from harness_lib.runs.worker_pool import Orphans, WorkerPool
from harness_lib.system.processes import own_process
from harness_lib.task import StopReason
from harness_lib.text import sentence

Watch = Callable[[Event, RunState], None]

SHOW_SECONDS = 1.0
# Seconds that the final check may take after a limit was reached.
FINAL_SECONDS = 15 * 60.0
# Reasons after which no task is left, except repairs; with the first two all tasks are completed.
ALL_DONE = ("done", "recheck_failed")
NO_TASK = (*ALL_DONE, "blocked")
ONCE = "finishing what runs, starting nothing new; Ctrl-C again stops now and keeps what was done"
HUNG_UP = "the terminal was closed; what was done is kept. Go on with: harness run"
TWICE = "stopping; what was done is kept"


class Scheduler:
    """One run: its state, and the loop in which everything is decided.

    `why` is what ends it, once no worker has a task any more. `checked` is the commit on which every check
    has passed at the end, `left_out` says which checks did not run there.
    """

    def __init__(self, ctx: Context, options: Options, watch: Watch) -> None:
        self.state = RunState(began=ctx.clock.time(), limits=options.budget)
        self.why: ending.Why | None = None
        self.checked: str | None = None
        self.left_out = ""
        self._is_checked = False
        self.recorded = False
        self.orphans = Orphans(ctx, self._tell)
        self._ctx, self._options, self._show_event = ctx, options, watch
        self._began = self._since = ending.beginning(ctx)
        agent = options.agent or options.agent_command or ""
        opened = run_files.opened(ctx, agent, options.workers, self._began.tip)
        self.recorder = run_files.Recorder(ctx, opened, self._warn_of_record)
        self._message = self._kind = self._hint = ""
        self._signals: list[int] = []
        self._interrupts = 0
        self._deaths = Deaths()
        self._draining = self._limited = self._is_unseen = False
        self._ready: list[int] = []
        self._waits = waiting.Waits()
        self._failed: HarnessError | OSError | None = None

    def tell(self, kind: NoticeKind, message: str = "") -> None:
        """Show the watcher an event that concerns no single worker."""
        self._tell(Notice(kind, message))

    def _tell(self, news: News) -> None:
        event = Event(None, self._ctx.clock.time(), news)
        self.state = run_state.fold(self.state, event)
        self._watch(event, self.state)

    def warn(self, message: str) -> None:
        """Report a problem that stops nothing."""
        self.tell("warning", message)

    def _watch(self, event: Event, state: RunState) -> None:
        self.recorder.take(event)
        self._show_event(event, state)

    def _warn_of_record(self, message: str) -> None:
        """Show, and do not record, what is wrong with the record itself."""
        at = self._ctx.clock.time()
        self._show_event(Event(None, at, Notice("warning", message)), self.state)

    def work(self, place: worker_worktrees.Place, lock: int, *, has_session: bool) -> None:
        """See the run through; what cuts it short is raised by `reply`, with the report."""
        try:
            # Earlier runs are cleaned up, and the user hears what there is to know, before the first agent.
            self.orphans.of(self._ctx.owner.worker)
            if offer := project.offer_ignored(self._ctx.git):
                self.warn(f"{offer} {project.CURE_IGNORED}")
            ending.tidy(self._ctx, self.warn)
            for doubt in project.in_common(self._ctx, self._ctx.ask().search(*project.OPEN)):
                self.warn(doubt)
            run_files.clear(self._ctx)
            self.recorder.begin()
            # What was broken, or not checked, when the last run ended is not done.
            if has_session or self.something_broke(place):
                self.run_workers(WorkerPool(self._ctx, lock), place)
            self.check_at_the_end(place)
        except (HarnessError, OSError) as error:
            self._failed, self.why = error, self.why or "stuck"
            self._kind = error.kind if isinstance(error, HarnessError) else EnvSetupError.kind
            self._message, self._hint = waiting.why(error), getattr(error, "hint", None) or ""
        self.record()

    def run_workers(self, pool: WorkerPool, place: worker_worktrees.Place) -> None:
        """Start the workers, and serve them until the run ends."""
        self._pool, self._place = pool, place
        count = min(self._options.workers, max(1, self._ctx.ask().counts().total))
        with own_process.noted(self._signals.append):
            try:
                for number in range(0 if self.orphans.merger else 1, count + 1):
                    self._start(number)
                shown = 0.0
                while pool.numbers:
                    for event in pool.listen(0.25):
                        self._handle(event)
                    self._handle_signals()
                    changed = self._take_limits()
                    # While something is away the workers wait, and end the run if that takes too long.
                    with waiting.put_off():
                        self._decide()
                        self._end_merger()
                    if changed or self._ctx.clock.monotonic() - shown > SHOW_SECONDS:
                        shown = self._ctx.clock.monotonic()
                        self._show()
                        self.tell("tick")
            finally:
                self._draining = True
                for event in pool.end():
                    self._handle(event)
                with waiting.put_off():
                    self.orphans.of_merger()

    def _show(self) -> None:
        """Write the state of the run for other terminals; a failure is reported once."""
        try:
            run_files.show(self._ctx, self.state)
        except OSError as error:
            if not self._is_unseen:
                self.warn(f"Other terminals do not see how this run stands. {errors.describe(error)}")
            self._is_unseen = True

    def record(self) -> None:
        """Log how the run has ended, and what it has used up."""
        try:
            # A hint that names a run says no more than everybody who reads this line.
            hint = "" if "harness run" in self._hint else self._hint
            message = f"{sentence(self._message)} {hint}" if hint else self._message
            ending.record(self._ctx, self._how(), self._kind, message, self._spent())
            self.recorded = True
        except (HarnessError, OSError) as error:
            self.warn(f"How the run ended could not be written down: {error}")

    def close_record(self) -> None:
        """Record that the run is over; without a list that can be read, its record ends without a reason."""
        with suppress(HarnessError, OSError):
            self.recorder.end(ending.closed(self._ctx, self._how()))

    def reply(self) -> Reply:
        """Return the reply of the run. Raises ConfigError or EnvSetupError if the user must help first.

        Raises what has cut it short, with the report if there can be one.
        """
        if self._failed:
            if isinstance(self._failed, HarnessError):
                with suppress(HarnessError, OSError):
                    self._failed.message = self._answer().message
            raise self._failed
        answer = self._answer()
        if self._how() == "stuck":
            raise ending.problem(self._kind, answer, self._hint)
        return answer

    def _answer(self) -> Reply:
        return ending.reply(self._ctx, self._how(), self._message, self._began, self._spent(), self.left_out)

    def _how(self) -> ending.Why:
        if self._signals and not self.why:
            return "interrupted"
        return self.why or self._ctx.ask().no_work() or "interrupted"

    def _spent(self) -> run_state.Spent:
        return self.state.spent(self._ctx.clock.time())

    def _start(self, number: int) -> None:
        place, limits = str(self._place.path), self.state.limits
        self._pool.start(self._options.worker_config(self._ctx, number, place, limits))

    def _handle(self, event: Event) -> None:
        self.state = run_state.fold(self.state, event)
        number, news = event.worker, event.news
        if isinstance(news, Ready) and number is not None:
            # It has no task; perhaps it was admitted, and another worker was faster.
            self._ready.append(number)
            return
        if shown := self._waits.shown(event):
            self._watch(shown, self.state)
        if isinstance(news, Stuck):
            self._kind = news.kind
            self._drain("stuck", news.message, news.hint)
        elif isinstance(news, Ended) and news.status != "pending":
            self._deaths = Deaths()
        elif isinstance(news, Gone) and number is not None:
            self._replace_dead(number, news, event.at)

    def _replace_dead(self, number: int, news: Gone, at: float) -> None:
        """Requeue the task of a worker that has ended, and start another worker if it was killed."""
        # What cannot be requeued now its successor requeues.
        with waiting.put_off():
            self.orphans.of(recovery.worker_name(self._ctx.owner.worker, number))
        if self._draining or news.code == 0:
            return
        self._deaths = self._deaths.another(at)
        if isinstance(news, Unstarted):
            # The next worker would not start either.
            message = f"A worker cannot start: {news.message}"
        elif self._deaths.too_many:
            message = f"Workers keep dying, and no task gets finished; the last one: {news.message}"
        else:
            self._start(number)
            return
        self._kind = EnvSetupError.kind
        self._drain("stuck", message, "See: harness doctor")

    def _handle_signals(self) -> None:
        """Handle signals: start nothing new after the first Ctrl-C, stop after the second or SIGTERM."""
        while self._signals:
            number = self._signals.pop(0)
            self._interrupts += 1
            if number == own_process.HANG_UP:
                own_process.leave_terminal()
            self._drain("interrupted", HUNG_UP if number == own_process.HANG_UP else "")
            if number == own_process.INTERRUPT and self._interrupts == 1:
                self.tell("interrupted", ONCE)
            else:
                self.tell("interrupted", TWICE)
                self._pool.stop()

    def _take_limits(self) -> bool:
        """Take over the limits that the user has asked for; return whether there were any."""
        try:
            changes = run_files.asked(self._ctx)
            if changes is None:
                return False
            changed = run_state.changed(self.state.limits, changes)
        except UsageError as error:
            self.warn(f"{error.message} The limits of this run stay as they are.")
            return False
        self.state = self.state._replace(limits=changed)
        self._pool.limit(changed)
        return True

    def _decide(self) -> None:
        """Admit workers to tasks, and end the run when there is a reason to."""
        if self._draining:
            return
        self.orphans.of_machines()
        self.state = run_state.taken_over(self.state, self.orphans.taken_over(self.state.queued))
        reached = run_state.over(self.state.limits, self._spent())
        if reached:
            self._hold_back(reached)
            if self._draining:
                return
        else:
            if self._limited:
                self._pool.hold_back(limited=False)
            self._limited = False
            self._admit()
        rows = self.state.rows
        is_closed = any(row.idle == "closed" for row in rows.values())
        if is_closed and (opened := lifecycle.open_again(self._ctx)):
            # Another machine took this run for dead.
            self.tell("recovered", f"the session of this run was closed elsewhere; it is {opened.number} now")
        if set(rows) != {*self._pool.numbers} - {MERGER} or not all(row.idle for row in rows.values()):
            return
        why = self._why_idle({row.idle or "" for row in rows.values()})
        if why == "waiting" and self._was_merged():
            return
        if why is not None and not (why in NO_TASK and self._goes_on(why)):
            self._drain(why, claim.next_task(self._ctx, self._ctx.ask()).words(self._ctx))

    def _goes_on(self, why: StopReason) -> bool:
        """Return whether the final check has added tasks, or the user has ended it or changed the list."""
        is_due = self._has_completed() or (why in ALL_DONE and not self._is_checked)
        if is_due and self.something_broke(self._place):
            return True
        return bool(self._signals) or self._ctx.ask().no_work() not in NO_TASK

    def _was_merged(self) -> bool:
        """Return whether others have merged work that was waited for; tell so."""
        before = self._ctx.ask().counts().completed
        for line in publish.look(self._ctx):
            self.tell("recovered", line)
        return self._ctx.ask().counts().completed > before

    def _has_completed(self) -> bool:
        """Return whether this run has completed a task since the last final check."""
        return ending.has_completed(self._ctx.ask(), self._since)

    def _hold_back(self, reached: str) -> None:
        """Start nothing new, and end the run once no worker has a task; a limit may be raised until then."""
        if not self._limited:
            self.tell("limit", f"a limit is reached ({reached}); finishing what runs, starting nothing new")
            self._pool.hold_back(limited=True)
        self._limited = True
        if self._at_work() == 0 and self._ready:
            self._drain("limit", reached)

    def _at_work(self) -> int:
        """Return how many workers have a task or are admitted to one, or have left one to be merged."""
        busy = sum(row.task is not None or row.step == "takes" for row in self.state.rows.values())
        return busy + len(self.state.queued)

    def _admit(self) -> None:
        """Admit ready workers to a task, as many as the limit of attempts still allows."""
        while self._ready:
            at_work = self._at_work()
            if 0 < self.state.limits.max_tasks <= self.state.before.attempts + at_work:
                return
            # Without others at work it is not full, and the list need not be read.
            if at_work and sessions.is_full(self._ctx.ask(), self._ctx, at_work):
                return
            number = self._ready.pop(0)
            at = self._ctx.clock.time()
            self.state = run_state.fold(self.state, Event(number, at, Stepped("takes")))
            self._pool.admit(number)

    def _why_idle(self, said: set[str]) -> StopReason | None:
        """Return why no worker has anything to do; None if one will have, or others must finish first.

        Tasks that are in progress although all workers are idle are requeued.
        """
        questions = self._ctx.ask()
        if self.orphans.is_merging(questions):
            return None
        if "max_sessions" in said:
            return "max_sessions"
        why = questions.no_work()
        if why in NO_TASK:
            return why
        if working := questions.in_progress():
            # A database then uses its connection for what follows.
            del questions
            self.orphans.left(working)
            self.orphans.of_others()
            return None
        leaves_rest = why is None and claim.next_task(self._ctx, questions).leaves_some
        return "waiting" if leaves_rest and not trust.known(self._ctx, questions.unproven()) else why

    def must_check(self) -> bool:
        """Return whether a list that was done before the run began needs the final check."""
        return self._options.final_check != "none" and final_check.is_due(self._ctx)

    def something_broke(self, place: worker_worktrees.Place, seconds: float | None = None) -> bool:
        """Run the final check; return whether it has added tasks.

        With `seconds` it ends after that time, and adds none.
        """
        if self._options.final_check == "none":
            return False
        end = None if seconds is None else self._ctx.clock.monotonic() + seconds

        def goes_on() -> bool:
            return not self._signals and (end is None or self._ctx.clock.monotonic() < end)

        scope, repairs = self._options.final_check, seconds is None
        with own_process.noted(self._signals.append):
            passed = final_check.run(
                self._ctx, place, scope, lambda line: self.tell("final", line), goes_on, repairs=repairs
            )
        self.checked, self.left_out = passed.tip, passed.left
        self._is_checked, self._since = True, ending.beginning(self._ctx)
        return passed.goes_on

    def check_at_the_end(self, place: worker_worktrees.Place) -> None:
        """Run the final check after a limit, or a problem for the user, has ended the run."""
        if self._signals or self.why == "interrupted" or not self._has_completed():
            return
        try:
            self.something_broke(place, FINAL_SECONDS)
        except (HarnessError, OSError) as error:
            self.warn(f"The final check could not run: {error}")

    def _drain(self, why: ending.Why, message: str = "", hint: str = "") -> None:
        if not self.why:
            self.why, self._message, self._hint = why, message, hint
        self._draining = True
        self._pool.drain(*(number for number in self._pool.numbers if number != MERGER))

    def _end_merger(self) -> None:
        """Let the worker that merges go, once the others are gone and nothing waits for it."""
        is_last = self._draining and self._pool.numbers == [MERGER]
        if is_last and not self.orphans.is_merging(self._ctx.ask()):
            self._pool.drain(MERGER)

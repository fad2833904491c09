"""One unattended run: what it needs, its work, and what the user is told meanwhile.

Accepted work is completed like a task of a run, without an agent.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from harness_lib import typed
from harness_lib.agents import command, registry
from harness_lib.attempts import (
    claim,
    complete,
    merge_queue,
    open_session,
    outcome,
    publish,
    requeue,
    target_branch,
    worker_worktrees,
)
from harness_lib.core import quoting, sessions, trust
from harness_lib.core.context import Context, Merging, Reply
from harness_lib.errors import EnvSetupError, Exit, HarnessError, HeldError, UsageError
from harness_lib.rules import recovery, selection
from harness_lib.rules.events import MERGER, Ended, Event, Notice, Stepped, Stuck
from harness_lib.rules.run_state import RunState
from harness_lib.runs import agent_process, confinement, ending, run_files, waiting
from harness_lib.runs.options import Options
from harness_lib.runs.scheduler import ALL_DONE, Scheduler, Watch
from harness_lib.state.api import Questions
from harness_lib.system import flock
from harness_lib.system.git import calls, submodules
from harness_lib.system.git.repository import Git
from harness_lib.system.processes import owner, runner
from harness_lib.system.processes.child import Child
from harness_lib.task import Merge

# Seconds that a claim of a run is valid without a heartbeat, if machines share its list.
SHARED_LEASE = "180"

Kind = Literal["done", "stopped", "failed", "stuck", "limit"]

SECONDS = 60.0
# Seconds to wait after the run, enough to learn that a command cannot start.
LAST_SECONDS = 2.0
# Lengths of one message, and of the report at the end, in characters.
MESSAGE_LENGTH = 500
REPORT_LENGTH = 400
LOG = "notify.log"


def run(ctx: Context, options: Options, watch: Watch) -> Reply:
    """Run until nothing is left to do, a limit is reached, or the user has stopped it.

    Exit 0: every task is completed; 9: stopped, as `stop` says.
    Raises HeldError (another session is open), RefusedError (untrusted commands), UsageError, and ConfigError
    and EnvSetupError for what the user must see to first.
    """
    with runner.keeping_awake(ctx.env, "agents are at work"):
        if not options.notify:
            return _run(ctx, options, watch)
        notifier = Notifier(ctx, options.notify, watch)
        try:
            reply = _run(ctx, options, notifier.watch)
        except HarnessError as problem:
            notifier.broke(problem)
            raise
        notifier.over(reply)
        return reply


def _run(ctx: Context, options: Options, watch: Watch) -> Reply:
    began, state = ctx, RunState(began=ctx.clock.time(), limits=options.budget)

    def tell(line: str) -> None:
        watch(Event(None, began.clock.time(), Notice("warning", line)), state)

    ctx, options = waiting.until_it_works(began, tell, lambda: prepare(began, options))
    ctx.__dict__["owner"] = owner.ourselves("run")
    merged, opened = waiting.until_it_works(ctx, tell, lambda: _open(ctx))
    if ctx.shared:
        # The run must not wait for the turn itself: nothing else would go on meanwhile.
        ctx.merging = ctx.merging._replace(by=recovery.worker_name(ctx.owner.worker, MERGER))
    scheduler = Scheduler(ctx, options, watch)
    if options.sandbox.mode != "off":
        for line in confinement.said(ctx.env):
            scheduler.tell("sandbox", line)
    for line in (*merged, *opened.recovered):
        scheduler.tell("recovered", line)
    if not opened.session and not (opened.stop in ALL_DONE and scheduler.must_check()):
        ending.tidy(ctx, scheduler.warn)
        # Runs of one machine have tried already.
        if ctx.merging.mode == "turns" and (trouble := publish.bring(ctx)):
            scheduler.warn(trouble)
        return ending.without_work(ctx, opened.stop, opened.recovered)
    return _work(ctx, scheduler, has_session=opened.session is not None)


def _open(ctx: Context) -> tuple[Sequence[str], open_session.Opened]:
    """Open the session of the run; return also what others have merged, and which halted tasks go on.

    It may be repeated after an error.
    """
    merged = publish.begin(ctx)
    worker_worktrees.end_survivors(ctx)
    lifted = confinement.lift_halts(ctx)
    return [*merged, *lifted], open_session.open_session(ctx)


def _work(ctx: Context, scheduler: Scheduler, *, has_session: bool) -> Reply:
    with _place(ctx) as (place, lock):
        try:
            scheduler.work(place, lock, has_session=has_session)
        finally:
            ending.leave(ctx, place, scheduler.warn, scheduler.checked, recorded=scheduler.recorded)
            scheduler.close_record()
            run_files.clear(ctx)
    return scheduler.reply()


@contextmanager
def _place(ctx: Context) -> Iterator[tuple[worker_worktrees.Place, int]]:
    """Yield the place of this process, and its lock, which is held as long as it or a worker of it lives."""
    place = worker_worktrees.directory_of(ctx, ctx.owner.worker)
    lock = flock.hold(place.lock)
    assert lock is not None, f"BUG: somebody holds {place.lock}"
    try:
        yield place, lock
    finally:
        os.close(lock)


def complete_accepted(
    ctx: Context, task_id: str, merge: Merge | None, into: str | None
) -> outcome.Ended | None:
    """Complete accepted work without an agent, on the branch `into` or the current one, and as `merge` says.

    Return None if no session may be opened. After an error the work is kept.
    """
    own = Context(env=owner.without_agent(ctx.env), cwd=ctx.root.path, clock=ctx.clock, say=ctx.say)
    own.__dict__["owner"] = owner.ourselves("accept")
    own.busy = ctx.busy
    calls.require_for_runs(own.cwd)
    own.target = into or target_branch.current(own.git)
    if own.shared:
        own.merging = publish.of(own, own.target, merge or "local", "")
        own.target = target_branch.waiting(own.merging.branch)
        merge_queue.refresh(own)
    elif merge == "branch":
        own.target, own.merging = into or target_branch.waiting(own.target), Merging("branch")
        publish.begin(own)
    sessions.refuse_other(own.ask(), own)
    opened = open_session.open_session(own, for_user=True)
    if not opened.session:
        return None
    with _place(own) as (place, _):
        try:
            own.session = opened.session
            return _completed(own, place, task_id)
        finally:
            ending.leave(own, place, own.say)


def _completed(ctx: Context, place: worker_worktrees.Place, task_id: str) -> outcome.Ended | None:
    tip = target_branch.tip(ctx.git, ending.target_of(ctx))
    view = ctx.at(worker_worktrees.checkout_clean(ctx, place.worktree(1), tip).git)
    worker_worktrees.set_up(view)
    taken = claim.take(view, task_id)
    if not taken.task:
        return None
    try:
        return complete.finish(view, taken.task)
    except (HarnessError, OSError, KeyboardInterrupt) as error:
        current = view.ask().task(taken.task.id)
        if current is not None and current.status == "in_progress" and not current.intent:
            requeue.interrupted(view, current, str(error))
        raise


# -- what a run needs


def prepare(ctx: Context, options: Options) -> tuple[Context, Options]:
    """Return the context of the run, and its options with the agent chosen.

    Raises UsageError, RefusedError or EnvSetupError for what would stop the run, before anything begins.
    """
    if options.agent is not None and options.agent_command is not None:
        raise UsageError(
            "--agent and --agent-command cannot be combined.", "Use one of them: harness run --help"
        )
    if options.agent_command is not None:
        command.adapter(options.agent_command)
    questions = ctx.store.ask_to_change()
    _require_no_own_session(ctx, questions)
    existing = Context(env=owner.without_agent(ctx.env), cwd=ctx.root.path, clock=ctx.clock, say=ctx.say)
    trust.require(existing, questions)
    calls.require_for_runs(existing.cwd)
    # The branch of the work tree that the user is in, which need not be the one with the list.
    here = ctx.git if ctx.git.common_dir == existing.git.common_dir else existing.git
    existing.target = _target(here)
    target_branch.require_room(existing.git, existing.target)
    _require_submodules(existing)
    existing.merging = publish.of(existing, existing.target, options.merge, options.merge_command or "")
    if existing.merging.mode == "turns":
        # Other machines must not wait long for the work of one that is gone.
        existing.env = {recovery.VARIABLE: SHARED_LEASE, **existing.env}
        existing.target = target_branch.waiting(existing.merging.branch)
        target_branch.require_room(existing.git, existing.target)
        merge_queue.refresh(existing)
    elif options.merge in ("branch", "pull-request"):
        # The user's branch stays as it is.
        existing.target = target_branch.waiting(existing.target)
        target_branch.require_room(existing.git, existing.target)
    review = {complete.REVIEW: "1"} if options.review else {}
    existing.env = {**existing.env, **confinement.of_run(existing, options.sandbox), **review}
    return existing, replace(options, agent=_agent(existing, options))


def _require_no_own_session(ctx: Context, questions: Questions) -> None:
    """Raise HeldError if the caller's own session holds the list: waiting for it would never end."""
    own = None if questions.concurrent else ctx.own_session(questions)
    if own and sessions.is_live(own, questions, ctx):
        raise HeldError(
            f"Session {own.number} holds this list since {own.started_at}; it is your own.",
            "End it, then type this again: harness stop",
        )


def _require_submodules(ctx: Context) -> None:
    """Raise EnvSetupError if a submodule of the user lacks the commit that workers need."""
    assert ctx.target is not None
    lacking = submodules.lacking(ctx.git, target_branch.tip(ctx.git, ctx.target))
    if lacking and not ctx.root.init_script.is_file():
        path, commit = next(iter(lacking.items()))
        raise EnvSetupError(
            f"The submodule {path!r} is recorded at {commit[:12]}, which your checkout of it does not have.",
            f"Fetch it: {typed.git('submodule', 'update', '--init', path)}",
        )


def _target(git: Git) -> str:
    """Return the full name of the current branch, if it or the one where work for it waits has a commit."""
    branch = target_branch.current(git)
    if git.ref(branch) is None and git.ref(target_branch.waiting(branch)) is None:
        raise target_branch.error(git, branch)
    return branch


def _agent(ctx: Context, options: Options) -> str | None:
    """Return the given agent, or the first known one that this machine has."""
    if options.agent_command is not None:
        return None
    if options.agent is not None:
        agent_process.require(registry.named(options.agent), ctx)
        return options.agent
    name = next((name for name, each in registry.ADAPTERS.items() if agent_process.is_ready(each, ctx)), None)
    if name is None:
        raise EnvSetupError(
            f"No agent was found on the PATH (looked for {', '.join(registry.ADAPTERS)}).",
            "Install one, give hs a key (ANTHROPIC_API_KEY, OPENAI_API_KEY), or name a command "
            "that reads the brief: harness run --agent-command 'my-agent'",
        )
    return name


# -- the command of --notify


class Notifier:
    """Passes the events of a run on to `watch`, and calls `command` when the user should know.

    It never delays the run: it runs beside it, for a minute at most. A failure is a warning.
    """

    def __init__(self, ctx: Context, command: str, watch: Watch) -> None:
        self._ctx, self._command, self._watch = ctx, command, watch
        self._running: list[Child] = []
        self._board = RunState()
        self._limited_until = 0.0
        self._began = self._stuck = False

    def watch(self, event: Event, state: RunState) -> None:
        """Take one event of the run."""
        self._began, self._board = True, state
        self._watch(event, state)
        news = self._news(event)
        if news:
            self._tell(*news)
        self._warn()

    def over(self, reply: Reply) -> None:
        """Report how the run has ended."""
        self._tell("done" if reply.exit is Exit.DONE else "stopped", reply.message, REPORT_LENGTH)
        self._wait()

    def broke(self, problem: HarnessError) -> None:
        """Report that the run cannot go on, unless it never began: then its caller has seen the error."""
        if self._began:
            self._tell("stopped" if self._stuck else "stuck", problem.message, REPORT_LENGTH)
        self._wait()

    def _news(self, event: Event) -> tuple[Kind, str] | None:
        news = event.news
        if isinstance(news, Stuck):
            # If no other worker has a task, the end follows at once, with more details.
            rows = self._board.rows.values()
            self._stuck = any(row.task and row.worker != event.worker for row in rows)
            return ("stuck", news.message) if self._stuck else None
        if isinstance(news, Notice) and news.kind == "limit":
            return "limit", news.message
        if isinstance(news, Stepped) and news.step == "limit" and event.at >= self._limited_until:
            # All workers meet the same limit within seconds: that is one message.
            self._limited_until = news.until or event.at
            return "limit", news.message
        if isinstance(news, Ended) and news.status == "failed" and self._is_lost(news.task):
            return "failed", f"{news.task} failed for good. {news.message}"
        return None

    def _is_lost(self, name: str) -> bool:
        try:
            task = self._ctx.ask().task(name)
        except HarnessError:
            # The user is editing the list; failures are reported at the end of the run.
            return False
        return task is not None and selection.is_permanent(task)

    def _tell(self, kind: Kind, message: str, length: int = MESSAGE_LENGTH) -> None:
        env = {
            **self._ctx.env,
            "HARNESS_EVENT": kind,
            "HARNESS_MESSAGE": "\n".join(quoting.one_line(line, length) for line in message.splitlines()),
        }
        log, where = self._ctx.root.logs / LOG, self._ctx.root.path
        if not where.is_dir():
            # The command may have been moved away.
            log, where = Path(os.devnull), Path("/")
        try:
            self._running.append(
                runner.start_timed(self._command, env=env, cwd=where, log=log, seconds=SECONDS)
            )
        except OSError as error:
            self._say(f"The command of --notify could not be started: {error}")

    def _warn(self) -> None:
        ended = [child for child in self._running if child.poll() is not None]
        self._running = [child for child in self._running if child not in ended]
        for child in ended:
            if child.returncode:
                how = "did not end in time" if child.returncode == runner.TIMED_OUT else "failed"
                self._say(f"The command of --notify {how}; see {self._ctx.root.logs / LOG}")

    def _wait(self) -> None:
        until = self._ctx.clock.monotonic() + LAST_SECONDS
        while self._running and self._ctx.clock.monotonic() < until:
            self._ctx.clock.sleep(0.05)
            self._warn()

    def _say(self, message: str) -> None:
        at = self._ctx.clock.time()
        self._watch(Event(None, at, Notice("warning", message)), self._board)

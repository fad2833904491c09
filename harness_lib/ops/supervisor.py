"""`harness run` in a shell: workers that go on until every task is done or has honestly failed.

The run holds one session; each worker is a slot of it, in a process and a work tree of its own. Here is only
what concerns them all: start and end, limits, Ctrl-C, the final pass, and what a watcher sees.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness_lib import agents
from harness_lib.errors import ConfigError, EnvSetupError, Exit, HarnessError, UsageError
from harness_lib.ops import (
    agent_turn,
    board_file,
    final_pass,
    handing_back,
    marker,
    recovering,
    sessions,
    slots,
    start,
    stopped,
    target,
    trusting,
)
from harness_lib.ops import budget as limits
from harness_lib.ops.context import Context
from harness_lib.ops.crew import Crew
from harness_lib.ops.reply import Reply
from harness_lib.ops.worker import Orders
from harness_lib.rules import board, budget, leases, stats, stopping
from harness_lib.rules.board import Board
from harness_lib.system import held_files, merging, owner
from harness_lib.task import State

Watch = Callable[[dict[str, Any], Board], None]

LOOK_SECONDS = 0.25
PUBLISH_SECONDS = 1.0
FIRST_PORT = 20000
RESTARTS = 3
MOST_PASSES = 3
MOST_WORKERS = 64

WORDS = {
    "interrupted": "Stopped as you asked; nothing is lost. Go on with: harness run",
    "limit": "A limit of this run is reached. Raise it with: harness budget --help",
    "stuck": "A person must act first.",
}


@dataclass(frozen=True)
class Options:
    """What a person asks of a run; `agent_command` is for a shell, `silence` and `longest` are seconds."""

    workers: int = 1
    agent: str | None = None
    agent_command: str | None = None
    model: str | None = None
    extra: tuple[str, ...] = ()
    target: str | None = None
    budget: budget.Budget = field(default_factory=budget.Budget)
    silence: float = agent_turn.Rules.silence
    longest: float = agent_turn.Rules.longest
    final_check: bool = True


@dataclass
class _Course:
    """How far the run has come; `why`: what ends it, once no worker has a task any more."""

    board: Board
    why: str | None = None
    message: str = ""
    kind: str = ""
    hint: str = ""
    interrupts: int = 0
    restarts: int = 0
    passes: int = 0
    draining: bool = False
    ready: list[int] = field(default_factory=list)


def run(ctx: Context, options: Options, watch: Watch) -> Reply:
    """Run until nothing is left to do, a limit is reached, or a person has stopped it.

    Exit 0: every task is completed; 9: stopped, as `stop` says; 7: a person must see to the machine first.
    Raises HeldError (somebody else's session), RefusedError (untrusted commands), EnvSetupError, UsageError.
    """
    if not 1 <= options.workers <= MOST_WORKERS:
        raise UsageError(
            f"-j {options.workers}: from 1 to {MOST_WORKERS} workers.", "For example: harness run -j 4"
        )
    there = _ready(ctx, options)
    options = replace(options, agent=_agent(there, options))
    there.__dict__["owner"] = owner.ourselves("run")
    slots.end_survivors(there, sessions.living(there.store.read().state, there))
    opened = start.open_session(there)
    if opened.session is None:
        _tidy(there, watch)
        reply = stopped.reply("run", there.store.read().state, opened.stop, opened.recovered)
        return replace(reply, exit=Exit.DONE) if opened.stop == "done" else reply
    for line in opened.recovered:
        watch(_event(there, "recovered", message=line), Board())
    found = slots.place(there, there.owner.worker)
    lock = held_files.hold(found.lock)
    assert lock is not None, f"BUG: somebody holds {found.lock}"
    course = _Course(Board(began=there.clock.now().timestamp()))
    try:
        _take_over(there)
        _tidy(there, watch)
        limits.begin(there, options.budget)
        _go_on(there, options, found, lock, course, watch)
    finally:
        _leave(there, found, lock, watch, course)
    return _reply(there, course)


def _tidy(ctx: Context, watch: Watch) -> None:
    """Take away what runs that were killed have left, and bring over what waits for the person's checkout."""
    alive = sessions.living(ctx.store.read().state, ctx)
    for told in slots.sweep(ctx, target.tip(ctx.git, _target(ctx)), alive):
        watch(_event(ctx, "warning", message=told), Board())
    target.deliver(ctx, _target(ctx))


def _ready(ctx: Context, options: Options) -> Context:
    """Return the context of the run; raise what would stop it before anything has begun."""
    state = ctx.store.read_to_change().state
    root = ctx.root.path
    there = Context(env=owner.without_agent(ctx.env), cwd=root, clock=ctx.clock, say=ctx.say)
    trusting.require(there, state)
    merging.require_git(there.git)
    wanted = options.target
    if wanted is None:
        there.target = target.current(there.git)
    else:
        there.target = wanted if wanted.startswith(target.HEADS) else target.HEADS + wanted
    target.tip(there.git, _target(there))
    return there


def _agent(ctx: Context, options: Options) -> str | None:
    """Return the agent that was asked for, or the first of those we know that this machine has."""
    if options.agent_command is not None:
        return None
    if options.agent is not None:
        agent_turn.require(agents.named(options.agent), ctx)
        return options.agent
    found = next((name for name, each in agents.ADAPTERS.items() if agent_turn.is_here(each, ctx)), None)
    if found is None:
        raise EnvSetupError(
            f"No agent was found on the PATH (looked for {', '.join(agents.ADAPTERS)}).",
            "Install one, or name a command that reads the brief: harness run --agent-command 'my-agent'",
        )
    return found


def _target(ctx: Context) -> str:
    assert ctx.target is not None
    return ctx.target


def _take_over(ctx: Context) -> None:
    """Hand back what recovery has left to this run: a worker takes it up in a work tree of its own."""
    state = ctx.store.read().state
    session = sessions.mine(state, ctx)
    if session is None:
        return
    for task in state.tasks:
        if task.status == "in_progress" and task.claimed_by == ctx.owner.worker and task.worktree:
            there = ctx.at(type(ctx.git).open(Path(task.worktree)))
            handing_back.interrupted(there, session, task, "an earlier session ended")


def _orders(options: Options, me: str, number: int, place: str, wanted: str) -> Orders:
    return Orders(
        worker=leases.slot(me, number),
        number=number,
        place=place,
        target=wanted,
        agent=options.agent,
        agent_command=options.agent_command,
        model=options.model,
        extra=options.extra,
        silence=options.silence,
        longest=options.longest,
        first_port=FIRST_PORT,
    )


def _go_on(
    ctx: Context, options: Options, found: slots.Place, lock: int, course: _Course, watch: Watch
) -> None:
    """Start the workers, and see them through to the end."""
    crew = Crew(ctx, lock)
    wanted = min(options.workers, max(1, len(ctx.store.read().state.tasks)))
    with _interrupts(crew, course, ctx, watch):
        try:
            for number in range(1, wanted + 1):
                crew.start(_orders(options, ctx.owner.worker, number, str(found.path), _target(ctx)))
            published = 0.0
            while crew.numbers:
                for event in crew.listen(LOOK_SECONDS):
                    _hear(ctx, options, found, crew, course, event, watch)
                _decide(ctx, options, crew, course, watch)
                if ctx.clock.monotonic() - published > PUBLISH_SECONDS:
                    published = ctx.clock.monotonic()
                    board_file.write(ctx, course.board)
                    watch(_event(ctx, "tick"), course.board)
        finally:
            course.draining = True
            for event in crew.end():
                _hear(ctx, options, found, crew, course, event, watch)


def _hear(
    ctx: Context,
    options: Options,
    found: slots.Place,
    crew: Crew,
    course: _Course,
    event: dict[str, Any],
    watch: Watch,
) -> None:
    if event["event"] == "ready":
        course.ready.append(event["worker"])
        return
    course.board = board.fold(course.board, event)
    watch(event, course.board)
    if event["event"] == "stuck":
        course.kind = event["kind"]
        _drain(crew, course, "stuck", event["message"], event.get("hint") or "")
    if event["event"] != "gone":
        return
    rows = {number: row for number, row in course.board.rows.items() if number != event["worker"]}
    course.board = replace(course.board, rows=rows)
    _recover_slot(ctx, leases.slot(ctx.owner.worker, event["worker"]), watch, course)
    if course.draining or event["code"] == 0:
        return
    course.restarts += 1
    if course.restarts > RESTARTS:
        _drain(crew, course, "stuck", f"workers keep dying: {event['message'][-500:]}", "See: harness doctor")
        return
    crew.start(_orders(options, ctx.owner.worker, event["worker"], str(found.path), _target(ctx)))


def _recover_slot(ctx: Context, name: str, watch: Watch, course: _Course) -> None:
    """Hand back what a worker that was killed had in progress."""
    state = ctx.store.read().state
    session = sessions.mine(state, ctx)
    held = next((t for t in state.tasks if t.status == "in_progress" and t.claimed_by == name), None)
    if session is None or held is None or held.worktree is None:
        return
    try:
        told = recovering.bereaved(ctx, session, held)
    except (HarnessError, OSError) as error:
        told = f"{held.id} could not be handed back yet: {error}"
    watch(_event(ctx, "recovered", message=told), course.board)


def _decide(ctx: Context, options: Options, crew: Crew, course: _Course, watch: Watch) -> None:
    """End the run when there is a reason to."""
    if course.draining:
        return
    now = ctx.clock.now().timestamp()
    allowed = limits.read(ctx)
    reached = budget.over(allowed, course.board.spent(now))
    if reached:
        told = f"a limit is reached ({reached}); finishing what runs, starting nothing new"
        watch(_event(ctx, "limit", message=told), course.board)
        _drain(crew, course, "limit", reached)
        return
    _let(crew, course, allowed)
    rows = course.board.rows
    if set(rows) != set(crew.numbers) or not all(row.idle for row in rows.values()):
        return
    state = ctx.store.read().state
    why = _why_idle(state, ctx, {row.idle or "" for row in rows.values()})
    if why is None:
        return
    if why == "done" and options.final_check and course.passes < MOST_PASSES:
        course.passes += 1
        watch(_event(ctx, "final", message="every check runs once more on the final tree"), course.board)
        if final_pass.run(ctx, lambda told: watch(_event(ctx, "final", message=told), course.board)):
            return
    _drain(crew, course, why)


def _let(crew: Crew, course: _Course, allowed: budget.Budget) -> None:
    """Let those who are ready take a task, as many as the limit of attempts still allows."""
    while course.ready:
        at_work = sum(row.task is not None or row.step == "takes" for row in course.board.rows.values())
        if 0 < allowed.max_tasks <= course.board.before.attempts + at_work:
            return
        number = course.ready.pop(0)
        event = {"event": "step", "worker": number, "at": course.board.began, "step": "takes"}
        course.board = board.fold(course.board, event)
        crew.let(number)


def _why_idle(state: State, ctx: Context, said: set[str]) -> str | None:
    """Return why no worker has anything to do; None if one will have, or waits for others to finish."""
    if "max_sessions" in said:
        return "max_sessions"
    why = stopping.no_work(state, ctx.clock.now())
    if why in ("done", "blocked"):
        return why
    if any(task.status == "in_progress" for task in state.tasks):
        _recover_expired(state, ctx)
        return None
    if why is None and sessions.mine(state, ctx) is not None:
        # Something can be taken; if all of them say that they may not, a person must act.
        refused = [text for text in said if ":" in text]
        return "stuck" if len(refused) == len(said) else None
    return why


def _recover_expired(state: State, ctx: Context) -> None:
    """Recover what others (concurrent mode) have left in progress and let the lease of run out."""
    session, now = sessions.mine(state, ctx), ctx.clock.now()
    theirs = (t for t in state.tasks if t.status == "in_progress" and leases.expired(t, now))
    if session is not None and any(not leases.works_for(t.claimed_by, session.worker) for t in theirs):
        recovering.interrupted(ctx, session, fresh=False)


def _drain(crew: Crew, course: _Course, why: str, message: str = "", hint: str = "") -> None:
    if course.why is None:
        course.why, course.message, course.hint = why, message, hint
    course.draining = True
    crew.drain()


@contextmanager
def _interrupts(crew: Crew, course: _Course, ctx: Context, watch: Watch) -> Iterator[None]:
    """Ctrl-C once: finish what runs, start nothing new. Twice: stop now, keep what was done."""

    def interrupt(_number: int, _frame: object) -> None:
        course.interrupts += 1
        if course.interrupts == 1:
            _drain(crew, course, "interrupted")
            told = "finishing what runs, starting nothing new; Ctrl-C again stops now and keeps what was done"
        else:
            crew.stop()
            told = "stopping; what was done is kept"
        watch(_event(ctx, "interrupted", message=told), course.board)

    def terminate(_number: int, _frame: object) -> None:
        _drain(crew, course, "interrupted")
        crew.stop()

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


def _leave(ctx: Context, found: slots.Place, lock: int, watch: Watch, course: _Course) -> None:
    """Take away the work trees, end the session, and bring over what waits for the person's checkout."""
    try:
        for ref in slots.take_away(ctx, found, target.tip(ctx.git, _target(ctx))):
            watch(_event(ctx, "warning", message=f"What was left over is kept in {ref}."), course.board)
        target.deliver(ctx, _target(ctx))
    except (HarnessError, OSError) as error:
        watch(_event(ctx, "warning", message=f"Not all was tidied up: {error}"), course.board)
    try:
        _close(ctx)
    except (HarnessError, OSError) as error:
        # Its owner ends now, and so the session does.
        watch(_event(ctx, "warning", message=f"The session could not be closed: {error}"), course.board)
    os.close(lock)
    board_file.remove(ctx)


def _close(ctx: Context) -> None:
    with ctx.store.transaction() as tx:
        mine = sessions.mine(tx.state, ctx)
        if mine is not None:
            sessions.close(tx, mine)
        marker.lower_when_finished(tx, ctx.root)


def _event(ctx: Context, kind: str, **facts: object) -> dict[str, Any]:
    return {"event": kind, "worker": None, "at": ctx.clock.now().timestamp(), **facts}


def _reply(ctx: Context, course: _Course) -> Reply:
    state = ctx.store.read().state
    why = course.why or stopping.no_work(state, ctx.clock.now()) or "interrupted"
    told = WORDS.get(why) or stopped.WORDS.get(why, why)
    spent = course.board.spent(ctx.clock.now().timestamp())
    lines = [told, *([course.message] if course.message else []), stats.line(state)]
    waits = target.waits(ctx, _target(ctx))
    if waits:
        lines.append(waits)
    if why == "stuck":
        problem = ConfigError if course.kind == ConfigError.kind else EnvSetupError
        raise problem(" ".join(lines), course.hint or "harness status")
    return Reply(
        "run",
        "\n".join(lines),
        exit=Exit.DONE if why == "done" else Exit.STOP,
        stop=None if why == "done" else why,
        next="harness run" if why in ("interrupted", "limit") else "harness status",
        extra={
            "spent": {
                "cost_usd": round(spent.cost, 4),
                "tokens": spent.tokens,
                "seconds": round(spent.seconds),
            }
        },
    )

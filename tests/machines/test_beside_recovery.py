"""Opening a session and recovery lock what they change: other machines claim and recover meanwhile."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from harness_lib.attempts import (
    check,
    interrupted,
    merge_queue,
    open_session,
    pending_merges,
    reconcile,
    remote,
    rollback,
    worker_worktrees,
)
from harness_lib.core import lifecycle
from harness_lib.errors import AwayError
from harness_lib.rules import transitions
from harness_lib.state.pgstore.changing import RowsTx
from harness_lib.state.pgstore.moments import Moments
from harness_lib.state.pgstore.store import PgStore
from harness_lib.system.clock import Clock
from harness_lib.task import Task
from tests.machines.world import MAIN, Machine, World, at
from tests.state.clock import Sleeper
from tests.system.git.gitrepo import put
from tests.waiting import until


def in_the_middle(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], None]) -> None:
    """Let the next call of the function `name` of `module`, inside a transaction, wait for `act`."""
    real = getattr(module, name)

    def after(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(module, name, real)
        act()
        return real(*args, **more)

    monkeypatch.setattr(module, name, after)


def claims(machine: Machine, worker: str) -> str:
    """Claim the next task in the name of `worker`, as another machine does; return its id."""
    store = machine.context(worker).store
    with store.transaction("tasks") as tx:
        task = tx.next_ready()
        assert task is not None
        claimed = transitions.claim(
            task, worker=worker, now=tx.now, base=None, gate=None, worktree=None, lease_seconds=60
        )
        tx.replace(claimed._replace(machine=machine.name))
    return task.id


def lost(machine: Machine, number: int) -> list[str]:
    """Let so many claims expire; return the ids of their tasks."""
    ids = [claims(machine, f"dead-{n}") for n in range(number)]
    machine.end_claims()
    until("their end", lambda: len(machine.asks().expired()) == number)
    return ids


def held(machine: Machine) -> dict[str, str | None]:
    return {task.id: task.claimed_by for task in machine.asks().in_progress()}


def test_others_claim_and_recover_while_one_task_is_recovered(
    one: Machine, two: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task that one recovers is passed over by the other, not waited for."""
    tasks = [one.file_task(name) for name in ("a", "b", "c")]
    first, second = lost(one, 2)
    ctx, other = one.context("run-1"), two.context("run-2")
    with ctx.store.transaction() as tx:
        ctx.session = lifecycle.open_one(tx, ctx)
    with other.store.transaction() as tx:
        other.session = lifecycle.open_one(tx, other)
    found: list[object] = []

    def meanwhile() -> None:
        found.append(claims(two, "other"))
        taken = reconcile._take_over_next(other, set(), fresh=False, of_others=True)
        found.append(taken and taken[0].id)

    in_the_middle(monkeypatch, transitions, "resume", meanwhile)
    mine = reconcile._take_over_next(ctx, set(), fresh=False, of_others=True)

    assert mine is not None
    assert (mine[0].id, *found) == (first, tasks[2], second)
    assert held(one) == {first: "run-1", second: "run-2", tasks[2]: "other"}


def test_others_claim_and_open_sessions_while_one_is_opened(
    one: Machine, two: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each session has a number of its own; whoever counts last has waited for the other."""
    tasks = [one.file_task(name) for name in ("a", "b")]
    found: list[str] = []

    def meanwhile() -> None:
        open_session._take(two.context("run-2"), for_user=False)
        in_the_middle(monkeypatch, lifecycle, "open_one", lambda: found.append(claims(two, "other")))

    in_the_middle(monkeypatch, lifecycle, "fold_dead", meanwhile)
    session, stop, _ = open_session._take(one.context("run-1"), for_user=False)

    assert (found, stop) == ([tasks[0]], None)
    opened = one.asks().sessions()
    assert sorted((each.number, each.worker) for each in opened) == [(1, "run-2"), (2, "run-1")]
    assert session in opened


def test_a_remote_that_is_away_is_waited_for_once(world: World, one: Machine, two: Machine) -> None:
    """However many tasks of other machines it would recover."""
    for name in ("a", "b"):
        one.file_task(name)
    tasks = lost(one, 2)
    away = put(
        world.place / "upload", "#!/bin/sh\necho ssh: Network is unreachable >&2\nexit 1\n", executable=True
    )
    two.sh("config", "remote.origin.uploadpack", str(away))
    ctx = two.context()
    ctx.target, ctx.clock = None, Sleeper()
    with ctx.store.transaction() as tx:
        ctx.session = lifecycle.open_one(tx, ctx)

    report = reconcile.reclaim_interrupted(ctx, fresh=True)

    assert [line.partition(":")[0] for line in report.recovered] == [
        f"{task} cannot be recovered yet" for task in tasks
    ]
    assert ctx.clock.monotonic() == remote.PATIENCE_SECONDS


class AYearAhead(Clock):
    """The clock of a machine that was never set."""

    def now(self) -> datetime:
        return super().now() + timedelta(days=400)


def test_a_machine_whose_clock_is_a_year_ahead_ends_no_session_of_others(one: Machine, two: Machine) -> None:
    one.file_task("a")
    ctx, other = one.context("run-1"), two.context("run-2")
    with ctx.store.transaction("tasks") as tx:
        mine = lifecycle.open_one(tx, ctx)
        tx.replace_session(mine._replace(host="far", boot_id="another"))
    other.clock = AYearAhead()

    open_session._take(other, for_user=False)

    opened = ctx.store.ask().sessions()
    assert [each.worker for each in opened] == ["run-1", "run-2"]


def test_a_run_whose_session_others_have_closed_goes_on(world: World, one: Machine, two: Machine) -> None:
    """Another machine took it for dead, as one does whose session is a day old."""
    go = world.place / "go"
    first = one.add("Make a", "grep -q done a", do=f"wait {go} ;; write a done")
    tasks = [first, one.file_task("b", "--depends-on", first)]
    one.start("-j", "1")
    until("a claim", lambda: one.statuses_now[first] == "in_progress")
    ctx = two.context("run-2")
    with ctx.store.transaction("tasks") as tx:
        (theirs,) = tx.sessions()
        lifecycle.close(tx, theirs)
    go.touch()

    one.has_ended(0)
    world.each_once(*tasks)
    assert "the session of this run was closed elsewhere" in one.printed


def test_a_batch_and_the_end_of_a_session_do_not_wait_for_each_other(
    one: Machine, two: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine moves what a session has left, in the order in which that has waited."""
    for name in ("a", "b"):
        one.file_task(name)
    ctx, other = one.context("run-1"), two.context("run-2")
    claimed = [claims(one, "run-1#0") for _ in range(2)]
    with ctx.store.transaction("tasks") as tx:
        mine = lifecycle.open_one(tx, ctx)
        for task in filter(None, map(tx.task, claimed)):
            tx.replace(transitions.begin_merge(task, now=tx.now, commit="1" * 40))
    left = reversed(ctx.store.ask().in_progress())
    members = tuple(pending_merges.Member(task, "2" * 40, "3" * 40) for task in left)
    both, real, lockers = threading.Barrier(2), RowsTx.task, set[int]()

    def lock(tx: RowsTx, task_id: str) -> Task | None:
        found = real(tx, task_id)
        if id(tx) not in lockers:
            lockers.add(id(tx))
            # If both lock the same task first, one of them never comes here.
            with suppress(threading.BrokenBarrierError):
                both.wait(2)
        return found

    def close() -> None:
        with ctx.store.transaction("tasks") as tx:
            lifecycle.close(tx, mine)

    monkeypatch.setattr(RowsTx, "task", lock)
    with ThreadPoolExecutor() as threads:
        closed = threads.submit(close)
        batch = pending_merges.Batch("2" * 40, members)
        moved = threads.submit(pending_merges.begin, other, batch, "refs/heads/main")

    assert (closed.exception(), moved.exception()) == (None, None)


def test_a_batch_has_no_work_that_only_a_dead_machine_has(one: Machine, two: Machine) -> None:
    """A worker of the run has taken it over, and the dead machine could not push it."""
    for name in ("a", "b"):
        one.file_task(name)
    ctx = two.context("run-2")
    claimed = [claims(two, f"run-2#{number}") for number in (1, 2)]
    with ctx.store.transaction("tasks") as tx:
        ctx.session = lifecycle.open_one(tx, ctx)
        for task, commit in zip(tx.tasks(claimed), (str(ctx.git.head()), "1" * 40), strict=True):
            tx.replace(transitions.begin_merge(task, now=tx.now, commit=commit))
    mine, elsewhere = map(ctx.store.ask().task, claimed)
    assert mine
    assert elsewhere

    assert pending_merges.waiting(ctx, mine) == [mine]


def test_a_take_over_that_was_cut_short_is_made_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run has claimed by then is still on the other machine, where nobody has its name."""
    one, two = world.pair()
    one.file_task("a")
    (task,) = lost(one, 1)
    ctx = at(two)

    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    in_the_middle(monkeypatch, interrupted, "take_over", full)
    with pytest.raises(OSError, match="No space left"):
        open_session.open_session(ctx)
    assert (held(one), one.statuses_now[task]) == ({task: ctx.owner.worker}, "in_progress")

    opened = open_session.open_session(ctx)

    assert opened.session is not None
    assert one.statuses_now[task] == "pending"


def test_work_that_others_begin_to_push_while_it_is_taken_over_stays_theirs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remote was asked before."""
    one, two = world.pair()
    one.file_task("a")
    (task,) = lost(one, 1)
    store, commit = one.context("looks").store, one.sh("rev-parse", "HEAD")
    with store.transaction("tasks") as tx:
        tx.replace(transitions.begin_merge(tx.in_progress()[0], now=tx.now, commit=commit))

    def push() -> None:
        with store.transaction("tasks") as tx:
            mine = tx.in_progress()[0]
            tx.replace(transitions.begin_commit(mine, now=tx.now, head=None, commit=commit, ref=MAIN))

    in_the_middle(monkeypatch, rollback, "keep_for_the_next", push)
    open_session.open_session(at(two))

    assert one.statuses_now == {task: "in_progress"}


def events(world: World) -> int:
    """Return how often the list was changed."""
    query = "select count(*) from harness.event join harness.list on key = event.list where name = %s"
    with psycopg.connect(world.url) as conn:
        (count,) = conn.execute(query, (world.name,)).fetchone() or (0,)
    return int(count)


class WaitedError(Exception):
    """A test has seen enough of a wait."""


def test_whoever_waits_for_the_turn_changes_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change lets the workers of all machines look at the list."""
    one = world.machine("one", lease=60)
    one.file_task("a")
    ctx, asked = at(one), 0
    claims(one, ctx.owner.worker)
    with ctx.store.transaction("tasks") as tx:
        ctx.session = lifecycle.open_one(tx, ctx)
        (task,) = tx.in_progress()
        task = transitions.begin_merge(task, now=tx.now, commit="1" * 40)
        tx.replace(task)

    def take(*_: object) -> None:
        nonlocal asked
        asked += 1
        if asked > 3:
            raise WaitedError

    monkeypatch.setattr(PgStore, "take_turn", take)
    before = events(world)
    with pytest.raises(WaitedError):
        merge_queue.merge_in_turn(ctx, task)

    assert events(world) == before


def test_files_that_lack_a_claim_do_not_end_it(one: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """They could not be written when it was made, and now the database is away."""
    one.file_task("a")
    mirror = one.top / "harness-tasks.json"
    before = mirror.read_bytes()
    claims(one, "run-1")
    mirror.write_bytes(before)
    ctx = one.context("run-1")
    (task,) = ctx.store.ask().in_progress()
    mirror.write_bytes(before)

    def away(*_: object) -> None:
        raise psycopg.OperationalError("the server is gone")

    monkeypatch.setattr(Moments, "open", away)
    monkeypatch.setattr(ctx.store, "_timeout", 0.0)
    assert ctx.store.ask().in_progress() == ()

    check.renew(ctx, task)

    with pytest.raises(AwayError):
        worker_worktrees.free(ctx, worker_worktrees.Place(one.home), 1)

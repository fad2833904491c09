"""What a claim asks of the database, by the length of the list."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from harness_lib.core import trust
from harness_lib.core.context import Context
from harness_lib.state.pgstore import checking, connecting, mirror
from harness_lib.system.git import snapshot
from harness_lib.task import Task, Validation
from harness_lib.terminal.render import Screen
from harness_lib.verbs import checkpoint, claim, finish, start, status
from tests.machines.world import Machine, World
from tests.system.git.gitrepo import sh

Counted = dict[str, int]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Return how many statements were sent, how many rows have come, and how many connections were made."""
    found = {"statements": 0, "rows": 0, "connections": 0}
    connect = connecting.connect

    def connecting_counted(*args: Any) -> Any:
        found["connections"] += 1
        return connect(*args)

    monkeypatch.setattr(connecting, "connect", connecting_counted)

    def count(name: str, how: Callable[[Any], int], what: str) -> None:
        do = getattr(psycopg.Cursor, name)

        def counting(self: Any, *args: Any, **more: Any) -> Any:
            got = do(self, *args, **more)
            found[what] += how(got)
            return got

        monkeypatch.setattr(psycopg.Cursor, name, counting)

    count("execute", lambda _: 1, "statements")
    count("fetchall", len, "rows")
    count("fetchone", bool, "rows")
    return found


def add(ctx: Context, first: int, last: int) -> None:
    """Add tasks, of which one in three has passed its check, and trust them."""
    tasks = []
    for number in range(first, last):
        task = Task(f"task-{number:03}", "Work", validation=Validation(f"test -f done-{number}"))
        if number % 3 == 0:
            task = task._replace(status="completed", completed_at="2025-07-01T10:00:00Z")
        tasks.append(task)
    with ctx.store.transaction() as tx:
        tx.add(tasks)
    trust.note(ctx, ctx.store.ask())


def test_a_claim_costs_the_same_in_a_longer_list(
    world: World, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are not counted: up to 5,000 tasks they follow each change, and each of them is written."""
    monkeypatch.setattr(mirror, "MOST_TASKS", -1)
    one = world.machine("one")

    def cost(worker: str) -> Counted:
        ctx = one.context(worker)
        counted.update(dict.fromkeys(counted, 0))
        reply = claim.answer(ctx, Namespace(id=None, dry_run=False, wait=0.0))
        found = dict(counted)
        task = reply.task
        assert task is not None
        with ctx.store.transaction() as tx:
            tx.replace(Task(task.id, task.title, validation=task.validation, fence=task.fence))
            tx.remove_session(tx.sessions()[0].number)
        return found

    add(one.context("adds"), 1, 10)
    # So that both follow the same lines of the log.
    cost("first")
    add(one.context("adds"), 10, 20)
    short = cost("second")
    add(one.context("adds"), 20, 200)
    assert cost("third") == short


def test_the_verbs_of_a_chat_ask_over_one_connection(one: Machine, counted: Counted) -> None:
    """A look that is held while another one, or a change, begins would take a second connection."""
    add(one.context("adds"), 1, 10)

    def cost(verb: Any, **args: Any) -> tuple[int, int]:
        # As in a process of its own.
        ctx = one.context("chat")
        counted.update(dict.fromkeys(counted, 0))
        verb.answer(ctx, Namespace(**args))
        return counted["statements"], counted["connections"]

    assert [
        cost(start),
        cost(status, screen=Screen(json=True), all=False, machines=False, watch=False),
        cost(claim, id=None, dry_run=False, wait=0.0),
        cost(checkpoint, step="1/2", text="half", id=None),
        # Its check fails.
        cost(finish, id=None, already_done=False, merge=None, merge_command=None),
    ] == [(65, 1), (12, 1), (35, 1), (23, 1), (43, 1)]


@pytest.mark.parametrize(
    ("act", "connections"),
    [
        (status.machines, 1),
        (lambda ctx: dict(checking.facts(ctx.store)), 1),
        # It also asks as a machine that has seen nothing of the list.
        (lambda ctx: checking.check(ctx.store, repair=False), 2),
    ],
    ids=["machines", "store status", "store check"],
)
def test_what_looks_after_the_database_holds_one_look_at_a_time(
    world: World, counted: Counted, act: Callable[[Context], object], connections: int
) -> None:
    """A pooler that has no other connection left would never give it a second one."""
    ctx = world.machine("one").context("looks")
    add(ctx, 1, 3)
    ctx = world.machines[0].context("looks")
    counted["connections"] = 0
    act(ctx)
    assert counted["connections"] == connections


def test_a_turn_takes_no_connection_of_its_own(world: World, counted: Counted) -> None:
    store = world.machine("one").context("merges").store
    assert store.shared is not None
    counted["connections"] = 0
    store.ask()
    assert store.shared.take_turn("main", "one merges", 30) is not None
    assert store.shared.turns() == (("main", "one merges"),)
    store.shared.leave_turn("main", "one merges")
    store.ask()

    assert counted["connections"] == 1


def test_a_checkpoint_reads_the_work_tree_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is recorded is what is pushed."""
    one = world.machine("one")
    add(one.context("adds"), 1, 2)
    ctx, trees, taken = one.context("chat"), [], snapshot.taken

    def counting(*args: Any, **more: Any) -> tuple[str, list[str]]:
        trees.append(taken(*args, **more))
        return trees[-1]

    start.answer(ctx, Namespace())
    claim.answer(ctx, Namespace(id=None, dry_run=False, wait=0.0))
    one.put("new", "half\n")
    monkeypatch.setattr(snapshot, "taken", counting)
    checkpoint.answer(ctx, Namespace(step="1/2", text="half", id=None))

    assert len(trees) == 1
    (pushed,) = world.refs("wip")
    assert sh(world.remote, "show", f"refs/harness/{world.name}/wip/{pushed}:new") == "half"

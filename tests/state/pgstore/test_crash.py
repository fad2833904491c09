"""A process dies before or after any of its statements, COMMIT too: all of its change is made or nothing.

With CRASH_EVERYWHERE=1 at each of them, else at a few.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator

import psycopg
import pytest

from harness_lib.state import api
from harness_lib.state.pgstore.store import opened
from harness_lib.system.clock import SYSTEM
from harness_lib.task import Task
from tests.state.pgstore.beside import claim, claimed, exact, finish
from tests.state.pgstore.machines import Shared

EVERYWHERE = "CRASH_EVERYWHERE" in os.environ
DIED, MADE = 9, 0
# More than a change has statements, twice: before and after each.
MOST = 60


def first_claimed(tx: api.Tx) -> None:
    tx.log("Starting", "claimed", 0, claim(tx, "one").id)


def first_finished(tx: api.Tx) -> None:
    finish(tx, "task-001")
    tx.log("Completed", "finished", 0, "task-001")


def one_added(tx: api.Tx) -> None:
    tx.add([Task("task-009", "New", depends_on=("task-001",))])
    tx.log("WARN", "added", 0, "task-009")


CHANGES: dict[str, tuple[api.Kind, Callable[[api.Tx], None]]] = {
    "claimed": ("tasks", first_claimed),
    "finished": ("tasks", first_finished),
    "added": ("list", one_added),
}


def dies(shared: Shared, step: int, kind: api.Kind, act: Callable[[api.Tx], None]) -> bool:
    """Make the change in a process that dies at `step`; return whether it has."""
    root = shared.machine("first").root
    child = os.fork()
    if child == 0:
        code = DIED
        try:
            count = iter(range(MOST))

            def dying(real: Callable[..., object]) -> Callable[..., object]:
                def run(*args: object, **more: object) -> object:
                    if next(count) == step:
                        os._exit(DIED)
                    answer = real(*args, **more)
                    if next(count) == step:
                        os._exit(DIED)
                    return answer

                return run

            psycopg.Connection.execute = dying(psycopg.Connection.execute)  # type: ignore[method-assign,assignment]
            psycopg.Cursor.executemany = dying(psycopg.Cursor.executemany)  # type: ignore[method-assign,assignment]
            with opened(root, SYSTEM).transaction(kind) as tx:
                act(tx)
            code = MADE
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == DIED


def steps() -> Iterator[int]:
    """Return the steps at which to die; at the last one nobody does."""
    few = sorted(random.Random(30).sample(range(26), 3))
    return iter(range(MOST)) if EVERYWHERE else iter([*few, MOST])


@pytest.mark.parametrize("name", CHANGES)
def test_whoever_comes_next_finds_all_of_a_change_or_nothing(shared: Shared, name: str) -> None:
    kind, act = CHANGES[name]
    shared.with_tasks(2)
    if name == "finished":
        claimed(shared.machine("first"), "one")
    before = shared.machine("first").whole().tasks
    for step in steps():
        died = dies(shared, step, kind, act)
        again = shared.machine("first")
        with again.transaction() as tx:
            made = tx.search() != before
            said = [text for text in tx.warnings if "was cut off" in text]
        assert all(("its change was made" in text) is made for text in said)
        assert exact(shared)
        # The files of this machine have what the database has.
        told = [line for line in again.log_tail() if line.endswith(name)]
        assert len(told) >= made
        there = [line for line in shared.machine(f"at-{step}").log_tail() if line.endswith(name)]
        assert there == told[:made]
        if made:
            return
        assert died, "it has done nothing, and says that it is done"
    raise AssertionError("it died before each of its steps")

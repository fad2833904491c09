"""Many machines, one list: no task is held by two, none is done twice, whoever is killed."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness_lib.errors import HeldError
from harness_lib.state.pgstore.store import PgStore
from harness_lib.task import Task
from tests.state.pgstore.machines import Shared

CLAIMER = Path(__file__).with_name("claimer.py")
MACHINES, TASKS, KILLS = 4, 40, 4


def start(store: PgStore, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(CLAIMER), str(store.root.path), name])


def noted(store: PgStore, what: str) -> list[tuple[str, int]]:
    """Return what the processes of this machine have written down: (task, fence)."""
    lines = [line for path in store.root.path.glob("worker-*") for line in path.read_text().splitlines()]
    return [(task, int(fence)) for kind, task, fence in map(str.split, lines) if kind == what]


@pytest.mark.timeout(300)
def test_no_task_is_held_by_two_and_each_is_done_once(shared: Shared) -> None:
    """Processes are killed at random; what they held is taken over with a higher fence."""
    shared.with_tasks(TASKS)
    stores = [shared.machine(f"machine-{number}") for number in range(MACHINES)]
    running = [(store, start(store, f"worker-{number}")) for number, store in enumerate(stores)]
    chance = random.Random(30)
    for number in range(KILLS):
        place = chance.randrange(MACHINES)
        store, process = running[place]
        # A kill comes wherever the process is once the list has got that far: between two statements, too.
        while stores[0].ask().counts().completed < (number + 1) * TASKS // (KILLS + 2):
            pass
        process.kill()
        process.wait()
        running[place] = store, start(store, f"worker-{MACHINES + number}")
    assert [process.wait() for _, process in running] == [0] * MACHINES

    last = shared.machine("last").ask()
    assert last.counts().completed == TASKS
    claims = Counter(pair for store in stores for pair in noted(store, "claimed"))
    assert set(claims.values()) == {1}, "a claim was given to two"
    log = shared.machine("last").log_tail()
    starts = [re.findall(r"Starting \[(.+?)\] (\d+) by", line) for line in log]
    given = Counter((task, int(fence)) for found in starts for task, fence in found)
    assert set(given.values()) == {1}
    # What a killed process had claimed without living to write it down is in the log all the same.
    assert claims.keys() <= given.keys()
    ends = [line for line in log if "Completed" in line]
    assert len(ends) == TASKS
    done = [pair for store in stores for pair in noted(store, "done")]
    assert len(done) == len(set(done))


def test_a_fence_does_not_fall_even_if_the_lock_of_the_list_fails(shared: Shared) -> None:
    store = shared.with_tasks()

    def set_fence(fence: int) -> None:
        with store.transaction() as tx:
            tx.replace(tx.tasks(["task-001"])[0]._replace(fence=fence))

    set_fence(2)
    with pytest.raises(HeldError, match="has changed task-001 meanwhile"):
        set_fence(1)
    assert store.ask().tasks(["task-001"])[0].fence == 2


def test_a_machine_that_stays_sees_what_others_remove_and_put_in_another_order(shared: Shared) -> None:
    """Between two looks it reads only what has changed; what is gone is no row any more."""
    store, other = shared.with_tasks(5), shared.machine("second")
    assert len(other.ask().search()) == 5
    with store.transaction() as tx:
        tx.remove("task-002")
        tx.add([Task("task-006", "New")])
    with store.transaction() as tx:
        tx.add([Task("task-007", "Newer")])
    fresh = shared.machine("third").ask().search()
    assert [task.id for task in fresh] == [f"task-{n:03}" for n in (1, 3, 4, 5, 6, 7)]
    assert other.ask().search() == fresh == store.ask().search()

    kept = fresh[1]
    with store.transaction() as tx:
        tx.remove(kept.id)
        tx.add([kept])
    fresh = shared.machine("fourth").ask().search()
    assert fresh[-1].id == kept.id
    assert other.ask().search() == fresh == store.ask().search()

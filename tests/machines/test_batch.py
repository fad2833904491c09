"""What waits on several machines is merged as one batch, by whoever has the turn."""

from __future__ import annotations

import pytest

from tests.machines.world import MAIN, World, held, pushes, wait_for_merge
from tests.system.git.gitrepo import sh
from tests.waiting import until

LEASE = 4.0


def test_work_of_several_machines_is_pushed_once(world: World) -> None:
    machines = [world.machine(name) for name in ("one", "two", "three")]
    tasks = [machines[0].file_task(name) for name in ("a", "b", "c")]
    mine = held(world, machines[2])
    runs = [machine.start() for machine in machines]
    wait_for_merge(world, mine, *tasks)
    mine.leave()

    assert [run.wait() for run in runs] == [0, 0, 0], [each.printed for each in machines]
    world.each_once(*tasks)
    assert pushes(world) == 1


@pytest.mark.release
@pytest.mark.parametrize(
    "hook",
    [
        pytest.param("pre-receive", id="before the branch moves"),
        pytest.param("post-receive", id="after it has moved"),
    ],
)
def test_the_machine_that_merges_for_others_dies(world: World, hook: str) -> None:
    """What it has put together is on no other machine yet, or on the branch already."""
    machines = {name: world.machine(name, lease=LEASE) for name in ("one", "two")}
    one, two = machines.values()
    tasks = [one.file_task(name) for name in ("a", "b")]
    mine = held(world, one)
    for machine in (one, two):
        machine.start()
    wait_for_merge(world, mine, *tasks)
    reached = world.stop_at(hook, MAIN)
    mine.leave()
    until("the push", reached.exists)
    shared = one.context("looks").store.shared
    assert shared is not None
    ((_, holder),) = shared.turns()
    dead = machines.pop(holder.partition(" ")[0])
    dead.cut_power()
    (alive,) = machines.values()

    assert alive.runs[0].wait() == 0, alive.printed
    world.each_once_at_no_cost(*tasks)
    assert sh(world.remote, "show", "main:a", "main:b") == "done\ndone"

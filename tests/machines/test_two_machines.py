"""Two machines work on one list: each task is once on the branch of the remote."""

from __future__ import annotations

from tests.machines.world import World
from tests.system.git.gitrepo import sh


def test_each_task_is_merged_once_and_all_machines_get_it(world: World) -> None:
    one, two = world.machine("one"), world.machine("two")
    tasks = [one.file_task(f"file-{number}") for number in range(4)]
    tasks.append(one.file_task("last", "--depends-on", tasks[0]))
    world.trust()

    for machine in (one, two):
        machine.start("-j", "1")
    codes = [run.wait(60) for machine in (one, two) for run in machine.runs]

    assert codes == [0, 0], one.printed + two.printed
    world.each_once(*tasks)
    tip = sh(world.remote, "rev-parse", "main")
    assert "main" in sh(one.top, "branch", "--contains", tip) or "main" in sh(
        two.top, "branch", "--contains", tip
    )

"""The world in small: machines die and sleep, and the server restarts, under agents with dependencies."""

from __future__ import annotations

import signal

from tests.machines.world import World
from tests.system.git.gitrepo import sh
from tests.waiting import until

LEASE = 6.0


def test_nothing_is_lost_and_nothing_is_done_twice(world: World) -> None:
    one, two, three = (world.machine(name, lease=LEASE) for name in ("one", "two", "three"))
    # Three write into one file, so that they conflict; four wait for others.
    chain = [one.file_task(f"file-{number}") for number in range(5)]
    shared = [one.add(f"Say {word}", f"grep -q {word} said", do=f"write said {word}") for word in "abc"]
    after = [one.file_task(f"last-{number}", "--depends-on", chain[number]) for number in range(4)]
    tasks = [*chain, *shared, *after]
    one.start("-j", "2")
    for machine in (two, three):
        machine.start("-j", "1")

    until("the first merge", lambda: len(world.log()) > 1)
    three.cut_power()
    two.send(signal.SIGSTOP)
    until("more merges", lambda: len(world.log()) > 4)
    two.send(signal.SIGCONT)

    assert (one.runs[0].wait(), two.runs[0].wait()) == (0, 0), one.printed + two.printed
    world.each_once(*tasks)
    assert sorted(sh(world.remote, "show", "main:said").split()) == ["a", "b", "c"]
    for task in one.asks().search():
        assert sh(world.remote, "merge-base", "--is-ancestor", task.completed_commit or "", "main") == ""
    assert one("store", "check").code == 0


def test_a_server_that_restarts_at_once_loses_nothing(world: World) -> None:
    """Connections break wherever they are: what is in doubt is looked up, and the rest is tried again."""
    machines = [world.machine(name, lease=LEASE) for name in ("one", "two")]
    one, two = machines
    first = [one.file_task(f"file-{number}") for number in range(3)]
    tasks = [*first, one.file_task("last", "--depends-on", first[0])]
    runs = [machine.start() for machine in machines]

    for count in (2, 3, 4):
        world.restart_database()
        merged(world, count)
    world.restart_database()

    assert [run.wait() for run in runs] == [0, 0], one.printed + two.printed
    world.each_once(*tasks)
    assert one("store", "check").code == 0


def merged(world: World, count: int) -> None:
    """Wait until the branch has `count` commits."""
    until(f"{count} commits", lambda: len(world.log()) >= count)

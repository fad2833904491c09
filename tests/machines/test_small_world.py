"""The world in small: three machines, twelve tasks, one machine dies and one sleeps."""

from __future__ import annotations

import signal

from tests.machines.world import World, until
from tests.system.git.gitrepo import sh

LEASE = 6.0


def test_nothing_is_lost_and_nothing_is_done_twice(world: World) -> None:
    machines = [world.machine(name, lease=LEASE) for name in ("one", "two", "three")]
    one, two, three = machines
    # Three write into one file, so that they conflict; four wait for others.
    chain = [one.file_task(f"file-{number}") for number in range(5)]
    shared = [
        one.add(f"Say {word}", f"grep -q {word} said", do=f"write said {word}") for word in ("a", "b", "c")
    ]
    after = [one.file_task(f"last-{number}", "--depends-on", chain[number]) for number in range(4)]
    tasks = [*chain, *shared, *after]
    world.trust()
    one.start("-j", "2")
    for machine in (two, three):
        machine.start("-j", "1")

    until("the first merge", lambda: len(world.log()) > 1)
    three.cut_power()
    two.send(signal.SIGSTOP)
    until("more merges", lambda: len(world.log()) > 4)
    two.send(signal.SIGCONT)

    assert (one.runs[0].wait(90), two.runs[0].wait(90)) == (0, 0), one.printed + two.printed
    world.each_once(*tasks)
    assert sorted(sh(world.remote, "show", "main:said").split()) == ["a", "b", "c"]
    for task in one.context("looks").store.ask().search():
        assert sh(world.remote, "merge-base", "--is-ancestor", task.completed_commit or "", "main") == ""
    assert one("store", "check").code == 0

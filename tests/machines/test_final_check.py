"""When all tasks are completed, one machine runs the final check for all."""

from __future__ import annotations

from tests.machines.world import SPOILING, Machine, World
from tests.waiting import until

ONCE_MORE = "every check runs once more on the final tree"
WAITS = "another machine makes the final check"
FINAL = ("--final-check", "all")


def test_one_machine_makes_the_final_check_for_all(world: World, one: Machine, two: Machine) -> None:
    """It finds what a later task has broken; another one that waited for it goes on with the repair."""
    reached, go = world.place / "reached", world.place / "go"
    # The final check has the work tree 0.
    held = f"case $PWD in */0) touch '{reached}'; until test -e '{go}'; do sleep 0.05; done;; esac"
    one.add("Make a", f"{held}; test -e a")
    one.add("Move a", "test -e c && { test ! -e a || test -e b; }", "--depends-on", "task-001")
    first = one.start(*FINAL, agent=SPOILING)
    until("the final check", reached.exists)

    second = two.start(*FINAL, agent=SPOILING)
    until("the other machine", lambda: WAITS in two.printed)
    assert "final check of refs/heads/main: one is at it now" in two("status", "--machines").out
    go.touch()

    assert (first.wait(), second.wait()) == (0, 0), one.printed + two.printed
    world.each_once("task-001", "task-002", "task-003")
    printed = one.printed + two.printed
    # Before the repair, and after it.
    assert printed.count(ONCE_MORE) == 2, printed
    assert ONCE_MORE not in two.printed.partition(WAITS)[0]

"""When all tasks are completed, one machine runs the final check; a held-out check stays on its own."""

from __future__ import annotations

import pytest

from tests.machines.world import SPOILING, Machine, World
from tests.system.git.gitrepo import put
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


# -- it stays on the machine on which it was typed, and so does the work that needs it


ELSEWHERE = "its held-out check is on another machine"


def held_out(machine: Machine) -> str:
    """Add a task with a held-out check, which only `machine` has; return its id."""
    script = put(machine.top.parent / "held.sh", "#!/bin/sh\ngrep -q done a\n", executable=True)
    return machine.add("Held", "test -f a", "--hidden", str(script), do="write a done")


def test_what_only_others_can_check_is_left_to_them(world: World, one: Machine, two: Machine) -> None:
    held = held_out(one)
    other = one.file_task("b")

    assert two.start("-j", "1").wait() == 9, two.printed
    assert f"{held}: {ELSEWHERE}" in " ".join(two.printed.split())
    assert "leaves the rest to the machine that has its held-out check" in two.printed
    assert two.statuses_now == {held: "pending", other: "completed"}
    assert one.asks().halted() == ()

    assert one.start("-j", "1").wait() == 0, one.printed
    world.each_once(held, other)


def test_a_chat_takes_other_tasks_and_is_let_go_then(one: Machine, two: Machine) -> None:
    held, other = held_out(one), one.file_task("b")
    two.ok("start")

    named = two("claim", held)
    assert (named.code, ELSEWHERE in named.err) == (2, True)
    assert two.ok("claim")["task"]["id"] == other
    two.put("b", "done\n")
    two.ok("finish")
    left = two("claim", "--json")

    assert (left.code, left.json["stop"]["reason"]) == (9, "waiting")
    assert f"{held}: {ELSEWHERE}" in left.json["message"]
    # So its Stop hook lets the agent go.
    (session,) = one.asks().sessions()
    assert ELSEWHERE in (session.halt or "")
    assert one.asks().halted() == ()


@pytest.mark.release
def test_checked_work_of_a_dead_machine_waits_for_the_held_out_check(world: World) -> None:
    one, two = world.pair(lease=4)
    held = held_out(one)
    reached = world.stop_at("post-receive", "refs/harness/.*/ready/")
    one.dies_working(reached.exists)

    said = two.ends(9)

    assert f"{held}: {ELSEWHERE}" in " ".join(said.stdout.split())
    assert two.statuses_now == {held: "pending"}
    one.ends(0)
    world.each_once_at_no_cost(held)

"""Machines that are not alike: with fewer rights, without a held-out check, with an older harness."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import psycopg
import pytest

from harness_lib.state.pgstore.connecting import SCHEMA
from tests import postgres
from tests.machines.world import Machine, World, at, taken
from tests.runs.workshop import HURRIED
from tests.system.git.gitrepo import put
from tests.waiting import until

AGENT = (
    "case $HARNESS_TASK_ID in task-001) echo > a;; task-002) mv a c;; *) echo > a; echo > b; sleep 0.5;; esac"
)


def login(world: World, keeper: str, role: str) -> str:
    name = f"{role}-{os.urandom(4).hex()}"
    with psycopg.connect(keeper) as conn:
        conn.execute(f'create role "{name}" login'.encode())
        conn.execute("select harness.admit(%s, quote_ident(%s)::regrole, %s)", (world.name, name, role))
    return psycopg.conninfo.make_conninfo(keeper, user=name)


def test_a_worker_runs_the_list_and_a_reader_looks(world: World) -> None:
    with postgres.apart(world.url, roles=True) as keeper:
        world.url = keeper
        one = world.machine("one")
        # The second spoils what the first has made: a repair with its check is added.
        one.add("Make a", "test -e a")
        one.add("Move a", "test -e c && { test ! -e a || test -e b; }", "--depends-on", "task-001")
        world.url = login(world, keeper, "worker")
        two = world.machine("two")
        world.url = login(world, keeper, "reader")
        three = world.machine("three")
        world.trust()

        for machine in (two, three):
            refused = machine("add", "Evil", "--validate", "evil")
            assert refused.code == 7, refused.text
            assert "does not let this user do that" in refused.err
        assert "Make a" in three("status").out
        assert three("claim").code == 7
        assert two.ok("store", "status")["facts"]["role here"] == "worker"

        run = two.run("--final-check", "all", agent=AGENT)
        assert run.returncode == 0, run.stdout + run.stderr
        world.each_once("task-001", "task-002", "task-003")
        for machine in (one, two, three):
            assert machine("store", "check").code == 0


def test_a_proposal_with_a_new_check_is_refused_and_said(world: World) -> None:
    """A letter that is refused for good would hold up those that come after it."""
    with postgres.apart(world.url, roles=True) as keeper:
        world.url = keeper
        one = world.machine("one")
        one.add("Write a", "test -e a")
        world.url = login(world, keeper, "worker")
        two = world.machine("two")
        world.trust()
        harness = f"{shlex.quote(sys.executable)} -m harness_lib"
        run = two.run(agent=f"{harness} add Evil --validate evil; echo > a; {harness} note task-001 heard")
        assert run.returncode == 0, run.stdout + run.stderr
        assert "What the agent left was not recorded (harness add)" in run.stdout
        (done,) = one.context("looks").store.ask().tasks(["task-001"])
        assert ["heard" in each for each in done.notes] == [True]


def test_a_worker_merges_what_waits_for_other_logins(world: World) -> None:
    with postgres.apart(world.url, roles=True) as keeper:
        world.url = keeper
        one = world.machine("one")
        tasks = [one.file_task(name) for name in ("a", "b", "c")]
        machines = []
        for name in ("two", "three", "four"):
            world.url = login(world, keeper, "worker")
            machines.append(world.machine(name))
        world.trust()
        mine = taken(at(one))
        mine.begin()
        runs = [machine.start() for machine in machines]

        def waits() -> bool:
            mine.keep()
            found = one.context("looks").store.ask().in_progress()
            return len(found) == len(tasks) and all(task.intent is not None for task in found)

        until("work that waits", waits)
        mine.leave()
        printed = [machine.printed for machine in machines]
        assert [run.wait() for run in runs] == [0, 0, 0], printed
        world.each_once(*tasks)
        assert "does not let" not in "".join(printed)


ELSEWHERE = "its held-out check is on another machine"


def held_out(machine: Machine, place: Path) -> str:
    """Add a task with a held-out check, which only `machine` has; return its id."""
    script = put(place / "held.sh", "#!/bin/sh\ngrep -q done a\n", executable=True)
    return machine.add("Held", "test -f a", "--hidden", str(script), do="write a done")


def test_a_machine_leaves_to_others_what_only_they_can_check(world: World, tmp_path: Path) -> None:
    one, two = world.machine("one"), world.machine("two")
    held = held_out(one, tmp_path)
    other = one.file_task("b")
    world.trust()

    assert two.start("-j", "1").wait() == 9, two.printed
    assert f"{held}: {ELSEWHERE}" in " ".join(two.printed.split())
    assert "leaves the rest to the machine that has its held-out check" in two.printed
    assert two.statuses_now == {held: "pending", other: "completed"}
    assert one.context("looks").store.ask().halted() == ()

    assert one.start("-j", "1").wait() == 0, one.printed
    world.each_once(held, other)


def test_a_chat_takes_other_tasks_and_is_let_go_when_none_is_left(world: World, tmp_path: Path) -> None:
    one, two = world.machine("one"), world.machine("two")
    held, other = held_out(one, tmp_path), one.file_task("b")
    world.trust()
    two.ok("start")

    named = two("claim", held)
    assert (named.code, ELSEWHERE in named.err) == (2, True)
    assert two.ok("claim")["task"]["id"] == other
    put(two.top / "b", "done\n")
    two.ok("finish")
    left = two("claim", "--json")

    assert (left.code, left.json["stop"]["reason"]) == (9, "waiting")
    assert f"{held}: {ELSEWHERE}" in left.json["message"]
    # So its Stop hook lets the agent go.
    (session,) = one.context("looks").store.ask().sessions()
    assert ELSEWHERE in (session.halt or "")
    assert one.context("looks").store.ask().halted() == ()


@pytest.mark.release
def test_checked_work_of_a_dead_machine_waits_for_the_held_out_check(world: World, tmp_path: Path) -> None:
    one, two = world.machine("one", lease=4), world.machine("two", lease=4)
    held = held_out(one, tmp_path)
    world.trust()
    reached = world.stop_at("post-receive", "refs/harness/.*/ready/")
    one.start()
    until("the checked commit", reached.exists)
    one.cut_power()

    said = two.ends(9)

    assert f"{held}: {ELSEWHERE}" in " ".join(said.stdout.split())
    assert two.statuses_now == {held: "pending"}
    one.ends(0)
    world.each_once(held)
    assert one.context("looks").store.ask().search()[0].attempts == 0


ONCE_MORE = "every check runs once more on the final tree"
WAITS = "another machine makes the final check"
FINAL = ("--final-check", "all")


def test_one_machine_makes_the_final_check_for_all(world: World) -> None:
    """It finds what a later task has broken; another one that waited for it goes on with the repair."""
    one, two = world.machine("one"), world.machine("two")
    reached, go = world.place / "reached", world.place / "go"
    # The final check has the work tree 0.
    held = f"case $PWD in */0) touch '{reached}'; until test -e '{go}'; do sleep 0.05; done;; esac"
    one.add("Make a", f"{held}; test -e a")
    one.add("Move a", "test -e c && { test ! -e a || test -e b; }", "--depends-on", "task-001")
    world.trust()
    first = one.start(*FINAL, agent=AGENT)
    until("the final check", reached.exists)

    second = two.start(*FINAL, agent=AGENT)
    until("the other machine", lambda: WAITS in two.printed)
    assert "final check of refs/heads/main: one is at it now" in two("status", "--machines").out
    go.touch()

    assert (first.wait(), second.wait()) == (0, 0), one.printed + two.printed
    world.each_once("task-001", "task-002", "task-003")
    printed = one.printed + two.printed
    # Before the repair, and after it.
    assert printed.count(ONCE_MORE) == 2, printed
    assert ONCE_MORE not in two.printed.partition(WAITS)[0]


NEXT = SCHEMA + 1
LEAVES = "touch {0}/works ;; write done done ;; wait {0}/go ;; touch {0}/gone"
# What a later harness brings: first something that older ones need not know, then no more changes by them.
EXPANDED = f"""
alter table harness.task add column later text;
update harness.about set version = {NEXT}, harness = '9.9';
"""
CONTRACTED = f"update harness.about set writes = {NEXT}"
UPDATED = f"update harness.about set writes = {SCHEMA}"


def test_a_run_of_an_older_harness_ends_with_the_version_that_it_needs_and_keeps_its_work(
    world: World,
) -> None:
    """As long as it may, it goes on; then nothing of its work is lost, and no attempt is counted."""
    with (
        postgres.apart(world.url) as world.url,
        psycopg.connect(world.url, autocommit=True) as conn,
    ):
        one = world.machine("one", lease=3)
        go = world.place / "go"
        first = one.file_task("first")
        task = one.add("Work", "test -f done", do=LEAVES.format(world.place))
        world.trust()
        run = one.start(**HURRIED)
        until("the agent", lambda: (world.place / "works").exists() or run.poll() is not None)
        conn.execute(EXPANDED.encode())
        assert one.statuses_now[task] == "in_progress"
        conn.execute(CONTRACTED.encode())
        go.touch()
        assert run.wait() == 7, one.printed
        assert f"format {NEXT}, and this harness knows {SCHEMA}" in one.printed
        assert "Update harness on this machine to 9.9 or a later version." in one.printed
        refused = one("note", task, "late")
        assert refused.code == 7, refused.text
        assert one("status").code == 0

        conn.execute(UPDATED.encode())
        one.ends(0)
        world.each_once(first, task)
        assert [each.attempts for each in one.context("looks").store.ask().search()] == [0, 0]

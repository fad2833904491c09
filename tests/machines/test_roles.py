"""With roles, a worker's machine runs the list to its end, and a reader's looks; neither adds a command."""

from __future__ import annotations

import os
import shlex
import sys

import psycopg

from tests import postgres
from tests.machines.world import SPOILING, World, at, taken
from tests.waiting import until


def login(world: World, keeper: str, role: str) -> str:
    name = f"{role}-{os.urandom(4).hex()}"
    with psycopg.connect(keeper) as conn:
        conn.execute(f'create role "{name}" login'.encode())
        conn.execute("select harness.admit(%s, quote_ident(%s)::regrole, %s)", (world.name, name, role))
    return psycopg.conninfo.make_conninfo(keeper, user=name)


def test_a_worker_runs_the_list_and_a_reader_looks(world: World) -> None:
    """A letter that is refused for good does not hold up those that come after it."""
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

        for machine in (two, three):
            refused = machine("add", "Evil", "--validate", "evil")
            assert refused.code == 7, refused.text
            assert "does not let this user do that" in refused.err
        assert "Make a" in three("status").out
        assert three("claim").code == 7
        assert two.ok("store", "status")["facts"]["role here"] == "worker"

        harness = f"{shlex.quote(sys.executable)} -m harness_lib"
        writes = f"{harness} add Evil --validate evil; {harness} note $HARNESS_TASK_ID heard; {SPOILING}"
        run = two.run("--final-check", "all", agent=writes)
        assert run.returncode == 0, run.stdout + run.stderr
        assert "What the agent left was not recorded (harness add)" in run.stdout
        assert ["heard" in str(each.notes) for each in one.asks().search()] == [True] * 3
        world.each_once("task-001", "task-002", "task-003")
        for machine in (one, two, three):
            assert machine("store", "check").code == 0


def test_a_worker_merges_what_waits_for_other_logins(world: World) -> None:
    """Only the login that owns the tables lets a list that was set back go on, also for their machines."""
    with postgres.apart(world.url, roles=True) as keeper:
        world.url = keeper
        one = world.machine("one")
        tasks = [one.file_task(name) for name in ("a", "b", "c")]
        machines = []
        for name in ("two", "three", "four"):
            world.url = login(world, keeper, "worker")
            machines.append(world.machine(name))
        mine = taken(at(one))
        mine.begin()
        runs = [machine.start() for machine in machines]

        def waits() -> bool:
            mine.keep()
            found = one.asks().in_progress()
            return len(found) == len(tasks) and all(task.intent is not None for task in found)

        until("work that waits", waits)
        mine.leave()
        printed = [machine.printed for machine in machines]
        assert [run.wait() for run in runs] == [0, 0, 0], printed
        world.each_once(*tasks)
        assert "does not let" not in "".join(printed)
        two = machines[0]
        with postgres.set_back(keeper, world.name):
            two.ok("store", "join", world.url, "--list", world.name)
        assert two("store", "check", "--repair", HARNESS_TRUST="1").code == 7
        two.ok("store", "check", "--repair", keeper, HARNESS_TRUST="1")
        assert two.ok("store", "status")["facts"]["role here"] == "worker"

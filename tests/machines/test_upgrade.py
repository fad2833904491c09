"""The tables get a new format while a machine with an older harness is at work."""

from __future__ import annotations

import psycopg

from harness_lib.state.pgstore.connecting import SCHEMA
from tests import postgres
from tests.machines.world import World
from tests.runs.workshop import HURRIED
from tests.waiting import until

NEXT = SCHEMA + 1
LEAVES = "touch {0}/works ;; write done done ;; wait {0}/go ;; touch {0}/gone"
# What a later harness brings: first something that older ones need not know, then no more changes by them.
EXPANDED = f"""
alter table harness.task add column later text;
update harness.about set version = {NEXT}, harness = '9.9';
"""
CONTRACTED = f"update harness.about set writes = {NEXT}"
UPDATED = f"update harness.about set writes = {SCHEMA}"


def test_a_run_of_an_older_harness_names_the_version_that_it_needs(world: World) -> None:
    """As long as it may, it goes on; then nothing of its work is lost, and no attempt is counted."""
    with (
        postgres.apart(world.url) as world.url,
        psycopg.connect(world.url, autocommit=True) as conn,
    ):
        one = world.machine("one", lease=3)
        go = world.place / "go"
        first = one.file_task("first")
        task = one.add("Work", "test -f done", do=LEAVES.format(world.place))
        run = one.start(**HURRIED)
        until("the agent", lambda: (world.place / "works").exists() or run.poll() is not None)
        conn.execute(EXPANDED.encode())
        assert one.statuses_now[task] == "in_progress"
        conn.execute(CONTRACTED.encode())
        go.touch()
        one.has_ended(7)
        assert f"format {NEXT}, and this harness knows {SCHEMA}" in one.printed
        assert "Update harness on this machine to 9.9 or a later version." in one.printed
        refused = one("note", task, "late")
        assert refused.code == 7, refused.text
        assert one("status").code == 0
        assert one.ok("store", "status")["facts"]["format"].endswith("and may only look")

        conn.execute(UPDATED.encode())
        one.ends(0)
        world.each_once(first, task)
        assert [each.attempts for each in one.asks().search()] == [0, 0]

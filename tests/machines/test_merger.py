"""A worker is free once its work is checked: the run has a worker that waits for the turn and merges."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import psycopg
import pytest

from harness_lib.attempts import turn
from harness_lib.runs import run_files
from harness_lib.task import Task
from tests.machines.world import MAIN, Machine, World, held, pushes, wait_for_merge
from tests.system.git.gitrepo import put, sh
from tests.waiting import until


def tasks_of(machine: Machine) -> tuple[Task, ...]:
    return machine.asks().search()


def wait_until_free(machine: Machine, mine: turn.Turn, *tasks: str) -> None:
    """Return once the claims of `tasks` are those of the worker that merges; keep the turn until then."""

    def are_handed_over() -> bool:
        mine.keep()
        found = [task for task in tasks_of(machine) if task.id in tasks]
        return all((task.claimed_by or "").endswith("#0") for task in found)

    until("work that is handed over", are_handed_over)


def test_a_worker_goes_on_while_its_work_waits_for_the_turn(world: World, one: Machine, two: Machine) -> None:
    tasks = [one.file_task(name) for name in ("a", "b", "c")]
    mine = held(world, two)
    run = one.start("-j", "1")

    wait_until_free(one, mine, *tasks)

    assert {(task.fence, task.worktree, task.machine) for task in tasks_of(one)} == {(1, None, "one")}
    assert len(world.refs("ready")) == 3
    mine.keep()
    for verb in ("retry", "remove"):
        # It cannot be released, as nobody works on it.
        refused = one(verb, tasks[0])
        mine.keep()
        assert (refused.code, "harness release" in refused.text) == (8, False)
        assert "waits for its merge: type this again when it is completed" in refused.text
    until("a look at the run", lambda: "3 tasks waiting to be merged" in one("status").text)
    mine.keep()
    assert one("status").text.count("checked, waits to be merged") == 3
    mine.keep()
    shown = one("show", tasks[0]).text
    assert "on one, leased until" in shown
    assert "checked, waits to be merged since" in shown
    mine.leave()
    assert run.wait() == 0, one.printed
    world.each_once(*tasks)
    assert pushes(world) == 1
    assert f"{tasks[0]} has passed its check and waits to be merged" in one.printed
    (ran,) = run_files.records(one.context())
    assert [(each.task, each.status) for each in ran.tried] == [(each, "completed") for each in tasks]


@pytest.mark.parametrize("survivor", ["one", "two"])
def test_a_run_is_killed_while_its_work_waits(
    world: World, one: Machine, two: Machine, survivor: str
) -> None:
    tasks = [one.file_task(name) for name in ("a", "b")]
    mine = held(world, two)
    one.start("-j", "1")
    wait_until_free(one, mine, *tasks)
    one.cut_power()
    mine.leave()
    two.end_claims()

    alive = {"one": one, "two": two}[survivor]
    assert alive.start("-j", "1").wait() == 0, alive.printed

    world.each_once_at_no_cost(*tasks)
    assert sh(world.remote, "show", "main:a", "main:b") == "done\ndone"


def test_a_limit_counts_no_work_that_another_machine_has_taken_over(world: World) -> None:
    """The worker that merges was stopped for longer than its leases, and its run may begin other tasks."""
    one, two = world.machine("one", lease=4), world.machine("two")
    tasks = [one.file_task(name) for name in ("a", "b", "c", "d")]
    mine = held(world, two)
    one.start("-j", "1", "--max-tasks", "3")
    wait_until_free(one, mine, *tasks[:3])
    pid = one.worker(0)
    os.kill(pid, signal.SIGSTOP)

    def are_expired() -> bool:
        mine.keep()
        return len(two.asks().expired()) == 3

    until("the end of the leases", are_expired)
    taken_over: set[str] = set()

    def are_taken_over() -> bool:
        mine.keep()
        taken_over.update(re.findall(r"recovered (\S+): .*one", two("recover").text))
        return len(taken_over) == 3

    # A worker that is stopped in a change keeps its task locked until the database ends the change.
    until("recovery of what waited", are_taken_over)
    mine.leave()
    os.kill(pid, signal.SIGCONT)

    one.has_ended(9)
    assert sorted(one.statuses_now.values()) == ["completed"] * 3 + ["pending"]
    assert {task.attempts for task in tasks_of(one)} == {0}


def test_a_run_waits_for_no_turn_when_its_worker_has_died(world: World, one: Machine, two: Machine) -> None:
    """The next worker takes the next task meanwhile, and the one that merges has the work of both."""
    tasks = [one.file_task(name) for name in ("a", "b")]
    mine = held(world, two)
    reached = world.stop_at("pre-receive", "/ready/")
    run = one.start("-j", "1")
    until("the push of checked work", reached.exists)
    os.kill(one.worker(1), signal.SIGKILL)
    put(reached / "go", "")

    wait_until_free(one, mine, *tasks)
    mine.leave()

    assert run.wait() == 0, one.printed
    world.each_once_at_no_cost(*tasks)
    assert f"{tasks[0]} has passed its check and waits to be merged" in one.printed
    (ran,) = run_files.records(one.context())
    assert [(each.task, each.status) for each in ran.tried] == [(each, "completed") for each in tasks]


# Of changes of the worker that merges the first five meet a deadlock.
DEADLOCK = """
create sequence public.deadlocks;
create function public.deadlock() returns trigger language plpgsql as $$ begin
  if nextval('public.deadlocks') < 6 then raise exception 'of this test' using errcode = '40P01'; end if;
  return new; end $$;
create trigger deadlock before update on harness.task for each row
  when (old.worker like '%#0' and new.worker like '%#0') execute function public.deadlock();
"""
NO_DEADLOCK = """
drop trigger deadlock on harness.task; drop function public.deadlock(); drop sequence public.deadlocks
"""


def test_a_deadlock_counts_as_no_try_to_merge(world: World, one: Machine) -> None:
    task = one.file_task("file")
    with psycopg.connect(world.url, autocommit=True) as conn:
        conn.execute(DEADLOCK)
        try:
            assert one.start("-j", "1").wait() == 0, one.printed
            (met,) = conn.execute("select last_value from public.deadlocks").fetchone() or (0,)
        finally:
            conn.execute(NO_DEADLOCK)

    world.each_once(task)
    assert met >= 6
    assert "could not be merged yet" not in one.printed


def test_work_handed_over_to_a_merger_that_has_ended_is_given_back(world: World, one: Machine) -> None:
    """A run is stopped while a worker pushes what it has checked; the one that merges ends first."""
    task = one.file_task("a")
    reached = world.stop_at("pre-receive", "/ready/")
    run = one.start("-j", "1")
    until("the push of checked work", reached.exists)
    pid = one.worker(0)
    run.send_signal(signal.SIGTERM)
    until("the end of the merger", lambda: not Path(f"/proc/{pid}").exists())
    put(reached / "go", "")
    one.has_ended(9)
    assert one.statuses_now[task] == "pending"
    one.ends(0)
    world.each_once_at_no_cost(task)


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_the_worker_that_merges_is_gone(world: World, one: Machine, two: Machine, how: str) -> None:
    """Another one takes its place; a run that is stopped gives its work back, which needs no agent then."""
    memory = Path(os.environ["AGENT_MEMORY"]) / "begun"
    do = f"write {{0}} done ;; sh echo {{0}} >> {memory}"
    tasks = [one.add(f"Make {name}", f"grep -q done {name}", do=do.format(name)) for name in ("a", "b")]
    mine = held(world, two)
    run = one.start("-j", "1")
    wait_until_free(one, mine, *tasks)
    if how == "killed":
        os.kill(one.worker(0), signal.SIGKILL)
        mine.leave()
    else:
        mine.keep()
        run.send_signal(signal.SIGTERM)
        until("its end", lambda: run.poll() is not None)
        assert run.wait() == 9, one.printed
        assert set(one.statuses_now.values()) == {"pending"}
        mine.leave()
        run = one.start("-j", "1")

    assert run.wait() == 0, one.printed
    world.each_once_at_no_cost(*tasks)
    assert memory.read_text().split() == ["a", "b"]


NO_ROOM = """\
grep -q /rescue/ || exit 0
echo 'fatal: No space left on device' >&2
exit 1
"""


def left_to_two(world: World) -> tuple[str, Path]:
    """Let checked work of a dead machine be handed back by `two`; return its task, and who worked on it."""
    one, two = world.machines[:2]
    memory = Path(os.environ["AGENT_MEMORY"]) / "begun"
    do = f"write file done ;; sh echo $HARNESS_MACHINE >> {memory}"
    task = one.add("Make a file", "grep -q done file", do=do)
    mine = held(world, two)
    one.start("-j", "1")
    wait_until_free(one, mine, task)
    one.cut_power()
    mine.leave()
    two.end_claims()
    assert "its checked work goes into the next attempt" in two("recover").text
    return task, memory


def test_checked_work_is_merged_although_the_remote_had_no_room_to_keep_it(world: World) -> None:
    """Its last push stays there for whoever takes the task, and no run that ends removes it."""
    (_, two), three = world.pair(), world.machine("three")
    hook = world.hook("pre-receive", NO_ROOM)
    task, memory = left_to_two(world)
    assert (world.refs("rescue"), len(world.refs("ready"))) == ([], 1)
    hook.unlink()
    two.start("-j", "1", "--max-hours", "0.000001").wait()

    assert three.start("-j", "1").wait() == 0, three.printed

    world.each_once_at_no_cost(task)
    assert memory.read_text().split() == ["one"]


def test_checked_work_that_cannot_be_fetched_now_is_waited_for(world: World) -> None:
    _, three = world.pair(), world.machine("three")
    task, memory = left_to_two(world)
    (blob,) = sh(world.remote, "rev-parse", f"refs/harness/{world.name}/rescue/{task}/1-2:file").split()
    there = world.remote / "objects" / blob[:2] / blob[2:]
    away = there.rename(world.place / "away")

    run = three.start("-j", "1")
    until("a wait", lambda: "The run waits" in three.printed or run.poll() is not None)
    away.rename(there)

    three.has_ended(0)
    world.each_once(task)
    assert memory.read_text().split() == ["one"]
    assert "origin cannot be asked for the work of task-001" in three.printed


def test_checked_work_that_only_a_dead_machine_has_is_done_again(world: World) -> None:
    _, three = world.pair(), world.machine("three")
    task, memory = left_to_two(world)
    sh(world.remote, "update-ref", "-d", f"refs/harness/{world.name}/rescue/{task}/1-2")

    assert three.start("-j", "1").wait() == 0, three.printed

    world.each_once_at_no_cost(task)
    assert memory.read_text().split() == ["one", "three"]
    assert "Its checked work is on the machine that made it only" in three.printed


def test_work_that_breaks_a_batch_goes_back_alone(world: World, one: Machine, two: Machine) -> None:
    """Each passes alone; together the check of one fails: it is handed to an agent again, uncounted."""
    tasks = [
        one.add(f"Make {name}", f"test -e {name} && {{ test ! -e {other} || test -e both; }}", do=do)
        for name, other, do in (
            ("a", "b", "touch a ;; sh test ! -e b || touch both"),
            ("b", "a", "touch b ;; sh test ! -e a || touch both"),
        )
    ]
    mine = held(world, two)
    one.start("-j", "1")
    wait_until_free(one, mine, *tasks)
    mine.leave()

    one.has_ended(0)
    world.each_once_at_no_cost(*tasks)
    assert "Alone the work passed its check" in one.printed
    assert pushes(world) == 2


FULL = """\
while read old new ref; do
    [ "$ref" = refs/heads/main ] || continue
    echo try >> '{tries}'
    [ "$(wc -l < '{tries}')" -gt 4 ] || {{ echo "{words}" >&2; exit 1; }}
done
"""
WORDS = {
    "objects": "fatal: unable to write loose object file: No space left on device",
    "a ref": "error: cannot update ref 'refs/heads/main': couldn't write './refs/heads/main.lock'",
}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_a_remote_without_room_for_the_branch_is_waited_for(world: World, one: Machine, words: str) -> None:
    """It takes the turn, which is small, and not the work, more often than a worker tries."""
    task = one.file_task("file")
    world.hook("pre-receive", FULL.format(tries=world.place / "tries", words=words))

    assert one.start().wait() == 0, one.printed

    world.each_once(task)
    assert one.printed.count(words.rpartition(": ")[2]) == 1


# -- what waits on several machines is merged as one batch, by whoever has the turn


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
    machines = {name: world.machine(name, lease=4) for name in ("one", "two")}
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

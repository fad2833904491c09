"""Commands that another machine has added run on no machine whose user has not trusted them."""

from __future__ import annotations

import json
import re

import psycopg
import pytest

from harness_lib.task import Task
from tests.machines.world import Machine, World, held, hook, wait_for_merge
from tests.system.git.gitrepo import put
from tests.waiting import PATIENCE, until

HAS = "has commands that are not trusted here"


class Foreign:
    """Commands that write down on which machine they run."""

    def __init__(self, world: World) -> None:
        self.place = world.place / "ran"
        self.place.mkdir()

    def check(self, more: str = "true") -> str:
        return f"touch {self.place}/$HARNESS_MACHINE-check; {more}"

    @property
    def cleanup(self) -> tuple[str, str]:
        return "--cleanup", f"touch {self.place}/$HARNESS_MACHINE-cleanup"

    def ran_on(self, machine: Machine) -> list[str]:
        return [path.name for path in self.place.glob(f"{machine.name}-*")]


@pytest.fixture(autouse=True)
def wary(world: World) -> None:
    """Let no machine trust what another one has added."""
    world.trusting = False


def now(machine: Machine, name: str) -> Task:
    (task,) = machine.asks().tasks([name])
    return task


def rewrite(world: World, name: str, check: str, cleanup: str = "") -> None:
    """Give the task other commands while somebody works on it."""
    mine = "list = (select key from harness.list where name = %s)"
    with psycopg.connect(world.url) as conn:
        for column, field, text in (("validation", "command", check), ("on_failure", "cleanup", cleanup)):
            conn.execute(
                f"update harness.task set {column} = jsonb_set({column}::jsonb, %s, %s)::text "
                f"where id = %s and {mine}",
                ([field], json.dumps(text), name, world.name),
            )
        conn.execute(f"update harness.tally set runs = runs + 1 where {mine}", (world.name,))


def refused(machine: Machine, *argv: str) -> str:
    said = machine(*argv)
    assert said.code == 8, said.text
    return " ".join(said.text.split())


def test_a_chat_runs_no_command_that_is_not_trusted_here(world: World, one: Machine, two: Machine) -> None:
    """Whatever verb is typed: before a claim, with a claim, and of a task that is completed."""
    foreign, first, last = Foreign(world), one.file_task("a"), one.file_task("b")
    world.trust()
    theirs = two.add("Theirs", foreign.check(), "--priority", "P0", *foreign.cleanup)
    red = two.add("Red first", foreign.check("false"), "--priority", "P0", "--red-first")
    both = f"{theirs}, {red}"

    started = one.ok("start")
    assert started["task"]["id"] == first
    assert started["untrusted"] == [theirs, red]
    # What is trusted here is not asked about again, unless the script of the list is new, too.
    assert [one("trust", *more, "--json").json["count"] for more in ((), ("--all",))] == [3, 5]
    script = one.put("harness-init.sh", "true\n")
    assert one("trust", "--json").json["count"] == 6
    assert f"The script {script} has not been trusted on this machine" in refused(one, "validate", first)
    script.unlink()
    assert "have commands that are not trusted here" in " ".join(started["warnings"])
    # A hook knows of no trust.
    assert ", if its commands are trusted on this machine." in hook(one, "SessionStart")
    assert one.ok("claim", "--dry-run")["task"]["id"] == first
    assert one.ok("status")["untrusted"] == [theirs, red]
    assert f"{both} have commands that are not trusted" in one("status").text
    shown = one.ok("show", theirs)
    assert (shown["eligible"], shown["untrusted"], HAS in shown["message"]) == (False, True, True)
    for verb in (("validate", theirs), ("claim", theirs), ("claim", "--dry-run", theirs)):
        assert f"The commands of {theirs} have not been trusted" in refused(one, *verb)
    everything = one("validate", "--all")
    assert (everything.code, f"not trusted {theirs}" in everything.out) == (1, True)
    assert one("validate", "--all").text.count("The check failed") == 2

    # The check of a task is changed while it is worked on here.
    assert one.works("a") == first
    rewrite(world, first, foreign.check(), foreign.cleanup[1])
    assert f"The commands of {first} have not been trusted" in refused(one, "finish")
    assert "harness finish will be refused" in one("start").text
    one.ok("recover")
    one.ok("release")
    assert (now(one, first).status, now(one, first).attempts) == ("pending", 0)
    assert one.works("b") == last
    one.ok("finish")

    # Nothing else is left, and only a user can change that.
    left = one("claim", "--json")
    assert (left.code, left.json["untrusted"]) == (8, [first, theirs, red])
    assert "harness trust" in left.text
    # So its Stop hook lets the agent go.
    assert any("harness trust" in (each.halt or "") for each in one.asks().sessions())
    assert re.search(rf"session \d+ of {one.name}\S* cannot go on: ", two("status").text)
    assert "cannot go on" not in one("status").text
    assert one.ok("start")["untrusted"] == [first, theirs, red]

    # Completed elsewhere, and checked once more everywhere.
    for task in (theirs, first):
        two.ok("claim", task)
        two.ok("finish")
    one.ok("validate", "--all", "--committed")
    assert now(one, theirs).recheck is None
    assert foreign.ran_on(one) == []
    assert sorted(foreign.ran_on(two)) == ["two-check"]


def test_a_run_goes_on_with_other_tasks_and_says_what_waits(world: World, one: Machine, two: Machine) -> None:
    foreign, first, last = Foreign(world), one.file_task("a"), one.file_task("b")
    world.trust()
    theirs = [two.add(f"Theirs {n}", foreign.check(), "--priority", "P0", *foreign.cleanup) for n in "12"]

    said = one.ends(8, "-j", "2", "--final-check", "all")

    assert one.statuses_now == {first: "completed", last: "completed", **dict.fromkeys(theirs, "pending")}
    both = ", ".join(theirs)
    assert f"{both} have commands that are not trusted here" in " ".join(said.stdout.split())
    assert "harness run starts nothing before you have trusted the commands; harness trust" in said.stdout
    report = one("report").out
    assert f"{theirs[0]} and 1 more task  its commands are not trusted here" in report
    assert one.asks().halted() == ()
    # The next one has nothing to begin with.
    assert both in " ".join(one.ends(8).stdout.split())
    assert foreign.ran_on(one) == []

    world.trust()
    one.ends(0)
    assert one.statuses_now == dict.fromkeys([first, last, *theirs], "completed")


def test_a_run_waits_for_work_elsewhere_that_may_free_what_is_trusted_here(world: World) -> None:
    one, two = world.machine("one"), world.machine("two", lease=300)
    foreign, first = Foreign(world), one.file_task("a")
    then = one.file_task("b", "--depends-on", first)
    world.trust()
    theirs = two.add("Theirs", foreign.check(), "--priority", "P0")
    two.ok("claim", first)
    waits = one("claim", "--json")
    assert (waits.code, waits.json["stop"]["reason"], theirs in waits.json["message"]) == (9, "waiting", True)
    one.start("-j", "1")
    until("the run", lambda: len(two.asks().sessions()) > 1)
    assert one.runs[-1].poll() is None

    two.put("a", "done\n")
    two.ok("finish")

    assert one.runs[-1].wait(timeout=PATIENCE) == 8, one.printed
    assert one.statuses_now == {first: "completed", then: "completed", theirs: "pending"}
    assert foreign.ran_on(one) == []


def test_a_check_that_is_changed_during_a_run_costs_no_attempt(world: World, one: Machine) -> None:
    """Its work is kept for whoever trusts the new check, and the run goes on with the others."""
    foreign, works, go = Foreign(world), world.place / "works", world.place / "go"
    task = one.add("Work", "grep -q done done", do=f"touch {works} ;; write done done ;; wait {go}")
    other = one.file_task("b")
    world.trust()
    one.start("-j", "1")
    until("the agent works", works.exists)
    rewrite(world, task, foreign.check("grep -q done done"))
    go.touch()

    assert one.runs[-1].wait(timeout=PATIENCE) == 8, one.printed

    left = now(one, task)
    assert (left.status, left.halt, left.attempts) == ("pending", None, 0)
    assert left.handback is not None
    assert f"{task} {HAS}" in " ".join(one.printed.split())
    assert foreign.ran_on(one) == []
    world.trust()
    one.ends(0)
    world.each_once(task, other)


def test_what_a_user_edits_here_trusts_nothing_of_others(world: World, one: Machine, two: Machine) -> None:
    foreign = Foreign(world)
    world.trust()
    theirs = two.add("Theirs", foreign.check(), *foreign.cleanup)
    mine = one.file_task("a")
    one.ok("edit", theirs, "--priority", "P2", "--title", "Theirs as before")
    one.ok("edit", mine, "--validate", "grep -q done a b")
    put(
        one.home / "plan.json",
        json.dumps({"tasks": [{"title": "Planned", "validation": {"command": "true"}}]}),
    )
    one.ok("import", str(one.home / "plan.json"), "--yes", HARNESS_TRUST="1")
    # Only half of what it runs was typed here.
    one.ok("edit", theirs, "--validate", foreign.check("false"))

    assert one.ok("status")["untrusted"] == [theirs]
    refused(one, "validate", theirs)
    assert one("validate", mine).code == 1
    one.ok("edit", theirs, "--validate", "grep -q done c", "--cleanup", "true")
    assert one.ok("status")["untrusted"] == []
    assert foreign.ran_on(one) == []
    assert "kept in" not in one.ok("remove", mine)["message"], "the database keeps no list of before"


def test_a_machine_merges_for_others_only_what_it_trusts(world: World) -> None:
    one, two, three = (world.machine(name) for name in ("one", "two", "three"))
    foreign, mine = Foreign(world), one.file_task("a")
    world.trust()
    theirs = two.add("Theirs", foreign.check("grep -q done b"), do="write b done")
    turn = held(world, three)
    runs = [machine.start("-j", "1") for machine in (one, two)]
    wait_for_merge(world, turn, mine, theirs)
    turn.leave()

    assert runs[1].wait(timeout=PATIENCE) == 0, two.printed
    assert runs[0].wait(timeout=PATIENCE) == 0, one.printed
    world.each_once(mine, theirs)
    assert foreign.ran_on(one) == []


def test_checked_work_waits_until_its_new_check_is_trusted(world: World, one: Machine, two: Machine) -> None:
    foreign, task = Foreign(world), one.file_task("a")
    world.trust()
    turn = held(world, two)
    one.start("-j", "1")
    wait_for_merge(world, turn, task)
    # Harness refuses an edit now.
    rewrite(world, task, foreign.check("grep -q done a"))
    turn.leave()

    assert one.runs[-1].wait(timeout=PATIENCE) == 8, one.printed
    left = now(one, task)
    assert (left.status, left.halt, left.attempts) == ("pending", None, 0)
    assert foreign.ran_on(one) == []
    two.trusts()
    # No agent is needed for that.
    two.start("-j", "1", agent="false")
    assert two.runs[-1].wait(timeout=PATIENCE) == 0, two.printed
    world.each_once_at_no_cost(task)
    assert foreign.ran_on(two) != []


def test_what_waits_for_a_user_is_accepted_only_with_a_check_that_is_trusted_here(world: World) -> None:
    one, foreign = world.machine("one"), Foreign(world)
    task = one.add("Work", "grep -q done .env", do="write .env done")
    world.trust()
    one.ends(9, "-j", "1")
    assert now(one, task).halt_kind == "SECRET"
    rewrite(world, task, foreign.check("grep -q done .env"))

    assert f"The commands of {task} have not been trusted" in refused(one, "accept", task, "--path", ".env")
    assert now(one, task).halt_kind == "SECRET"
    assert foreign.ran_on(one) == []


def test_work_marked_as_completed_whose_check_is_not_trusted_here_holds_up_nobody(world: World) -> None:
    """Whoever can write other commands into the database can write that, too."""
    one, foreign, task = world.machine("one"), Foreign(world), world.machine("two").file_task("a")
    world.trust()
    rewrite(world, task, foreign.check())
    with psycopg.connect(world.url) as conn:
        conn.execute(
            "update harness.task set open = false, doubted = true, unproven = true, status = 'completed', "
            "document = replace(document, '\"pending\"', '\"completed\"') "
            "where id = %s and list = (select key from harness.list where name = %s)",
            (task, world.name),
        )

    said = one("claim", "--json")

    assert (said.code, said.json["untrusted"]) == (8, [task])
    assert task in " ".join(one.ends(8).stdout.split())
    assert foreign.ran_on(one) == []


def test_a_check_is_changed_on_its_own_machine_only(world: World, one: Machine, two: Machine) -> None:
    """What the attempt may not weaken is taken from its work tree; elsewhere it would be another one."""
    works, go = world.place / "works", world.place / "go"
    task = one.add("Work", "grep -q done a", do=f"touch {works} ;; write a done ;; wait {go}")
    other = one.add("Other", "test -f a", "--depends-on", task)
    world.trust()
    one.start("-j", "1")
    until("the agent works", works.exists)
    said = refused(two, "edit", task, "--validate", "test -f a")
    assert f"{task} is in progress on one, where its check can be changed" in said
    assert refused(two, "edit", task, "--protect", "*.md")
    two.ok("edit", task, "--title", "Work as before")
    one.ok("edit", task, "--validate", "test -f a")
    go.touch()

    assert one.runs[-1].wait(timeout=PATIENCE) == 0, one.printed
    assert one.statuses_now == {task: "completed", other: "completed"}
    assert now(one, task).attempts == 0

"""Work survives its machine, wherever that died: what it had pushed goes on; a late one changes nothing."""

from __future__ import annotations

import json
import signal

import pytest

from harness_lib.attempts import worker_worktrees
from tests import postgres
from tests.conftest import for_release
from tests.machines.world import Machine, World
from tests.runs.workshop import HURRIED
from tests.system.git.gitrepo import sh
from tests.waiting import until

LEASE = 3.0


def has_both_files(world: World) -> None:
    """Assert that the branch has what the first machine left and the second made, and nothing else."""
    names = sh(world.remote, "ls-tree", "--name-only", "main").split()
    assert names == [".gitignore", "README.md", "file", "half"]


def test_the_work_so_far_of_a_dead_machine_goes_on_at_no_cost(world: World) -> None:
    """Files that git does not know come along; what it ignores, and what was there before, does not."""
    one, two = world.pair(lease=LEASE)
    do = "sh test -e half && echo done > file || { echo done > half; echo x > z.pyc; sleep 600; }"
    task = one.add("Make a file", "grep -q done half && grep -q done file && test ! -e z.pyc", do=do)
    # A machine that died between the end of an attempt and the removal of its ref has left this.
    one.sh("push", "-q", "origin", f"HEAD:refs/harness/{world.name}/wip/task-009/1")
    one.dies_working(lambda: len(world.refs("wip")) == 2)

    two.ends(0)

    world.each_once(task)
    has_both_files(world)
    done = two.asks().search()[0]
    assert (done.attempts, done.machine) == (0, "two")
    assert "one does not answer; what it had done goes into the next attempt" in two.log_text


def test_what_a_dead_machine_had_goes_on_although_a_worker_here_is_busy(world: World) -> None:
    one, two = world.pair(lease=LEASE)
    do = "sh test -e half && echo done > file || { echo > half; sleep 600; }"
    lost = one.add("Make a file", "grep -q done file", do=do)
    until_there = f"until git -C {world.remote} cat-file -e main:file; do sleep 0.2; done"
    do = f"sh timeout 60 sh -c '{until_there}' && echo > seen"
    busy = one.add("Wait for it", "test -e seen", do=do)
    one.start()
    until("a snapshot", lambda: world.refs("wip"))
    two.start("-j", "2", **HURRIED)
    until("a claim", lambda: two.statuses_now[busy] == "in_progress")

    one.cut_power()

    two.has_ended(0)
    world.each_once(lost, busy)


def test_a_take_over_that_is_given_up_costs_no_attempt(world: World) -> None:
    """The remote was away: the machine that has the work tree comes back first, while the other one lives."""
    one, two = world.pair(lease=LEASE)
    do = "sh test -e half && echo done > file || { echo done > half; sleep 20; }"
    task = one.add("Make a file", "grep -q done half && grep -q done file", do=do)
    one.dies_working(lambda: world.refs("wip"))
    away = world.remote.rename(world.place / "away.git")
    begun = two("start").text
    until("a try", lambda: "cannot be recovered yet" in begun + two("recover").text)
    away.rename(world.remote)

    one.ends(0)

    world.each_once_at_no_cost(task)
    has_both_files(world)


def test_work_whose_rescue_was_not_pushed_outlives_the_next_machine_that_dies(world: World) -> None:
    """The remote keeps it as the dead machine has pushed it, until it is there under another name."""
    one, two, three, four = (world.machine(name, lease=LEASE) for name in ("one", "two", "three", "four"))
    do = "sh test -e half && echo done > file || { echo done > half; sleep 600; }"
    task = one.add("Make a file", "grep -q done half && grep -q done file", do=do)
    one.dies_working(lambda: world.refs("wip"))
    refusing = world.hook("update", 'case "$1" in */rescue/*) echo "no space left" >&2; exit 1;; esac')
    two.ok("start")
    until("the first recovery", lambda: two.statuses_now[task] == "pending" or two.ok("recover") is None)
    refusing.unlink()
    # Of what began elsewhere the next machine has nothing.
    sh(world.place / "seed", "commit", "-q", "--allow-empty", "-m", "By a person")
    sh(world.place / "seed", "push", "-q", str(world.remote), "main")
    three.sh("pull", "-q")
    three.works()
    until("the second recovery", lambda: two.ok("recover") and two.statuses_now[task] == "pending")
    assert "three does not answer, and had pushed no work on it" in two.log_text

    four.ends(0)

    world.each_once(task)
    has_both_files(world)


@pytest.mark.release
def test_a_machine_that_slept_comes_back_to_a_lost_claim(world: World) -> None:
    one, two = world.pair(lease=LEASE)
    do = "sh if test -e half; then echo done > file; else echo done > half; sleep 5; echo late > file; fi"
    task = one.add("Make a file", "test -e half && test -e file", do=do)
    late = one.start()
    until("a snapshot", lambda: world.refs("wip"))
    one.send(signal.SIGSTOP)
    two.ends(0)
    world.each_once(task)

    one.send(signal.SIGCONT)

    assert late.wait() == 0
    assert "The lease of task-001 was lost" in one.printed
    world.each_once(task)
    assert sh(world.remote, "show", "main:file") == "done"


def test_a_chat_leaves_its_checkpoints_and_comes_back_late(world: World) -> None:
    one, two = world.pair(lease=LEASE)
    one.put("mine.txt", "of the user\n")
    task = one.add("Make a file", "grep -q done file", do="sh cat half > file")
    one.works("half")
    one.ok("checkpoint", "1/2", "half of it")
    assert "on this machine only" not in one("checkpoint", "2/2", "nothing new").text
    one.put("half", "done, and more\n")

    two.ends(0)

    world.each_once(task)
    has_both_files(world)
    said = one("finish", "--json")
    assert said.code == 6, said.text
    assert "two took it over. Nothing was recorded." in said.json["message"]
    assert "+done, and more" in one.ok("rescue", "show", "task-001/late-1")["message"]
    one.ok("rescue", "save", task)
    assert one("claim").code != 6
    assert one.read("mine.txt") == "of the user\n"


def test_work_of_failed_attempts_is_fetched_until_dropped(world: World, one: Machine, two: Machine) -> None:
    one.add("Never done", "grep -q done file && false", "--max-attempts", "2", do="write file done")
    one.ends(9)
    found = two.ok("rescue", "list", "--fetch")["rescues"]
    assert {each["ref"] for each in found} == {f"refs/harness/rescue/task-001/{n}-{n}" for n in (1, 2)}
    assert "+done" in two.ok("rescue", "show", "task-001")["message"]

    two.ok("rescue", "drop", "task-001/1-1", HARNESS_TRUST="1")

    (left,) = two.ok("rescue", "list", "--fetch")["rescues"]
    assert left["ref"] == "refs/harness/rescue/task-001/2-2"
    assert world.refs("rescue") == ["task-001/2-2"]
    world.remote.rename(world.place / "away")
    said = two("rescue", "drop", "task-001/2-2", HARNESS_TRUST="1")
    assert (said.code, "origin cannot be asked for its refs" in said.err) == (0, True)
    assert two.ok("rescue", "list")["count"] == 0


def test_what_a_database_forgot_is_found_on_the_branch(world: World, one: Machine, two: Machine) -> None:
    """It was set back to a backup: the work is not done again."""
    tasks = [one.file_task("a"), one.file_task("b")]
    with postgres.set_back(world.url, world.name):
        one.ends(0)

    said = two("store", "check")
    assert "task-001 is on origin/main (commit " in said.out, said.text
    two.ok("store", "check", "--repair", HARNESS_TRUST="1")

    one.ok("store", "check", "--repair", HARNESS_TRUST="1")
    one.ends(0)
    world.each_once(*tasks)


def test_what_was_added_since_a_backup_is_kept(world: World, one: Machine) -> None:
    """Nobody else has it any more; and whoever has seen it is told what is on the branch, too."""
    task = one.file_task("a")
    with postgres.set_back(world.url, world.name):
        one.ends(0)
        late = one.file_task("late")

    said = one("store", "check").out
    assert "the database was set back" in said
    assert f"{task} is on origin/main (commit " in said
    warnings = one.ok("store", "check", "--repair", HARNESS_TRUST="1")["warnings"]

    kept = next(one.top.glob("harness-tasks.json.set-back-*"))
    assert f"{kept.name}; the database lacks {late} of it." in " ".join(warnings)
    assert late in [each["id"] for each in json.loads(kept.read_text())["tasks"]]
    assert f"is kept in {kept.name}" in one.log_text
    assert one.statuses_now == {task: "completed"}


def test_work_of_a_task_or_a_claim_that_a_backup_lacks_is_kept(world: World) -> None:
    world.others["work"] = world.place / "work.git"
    sh(world.place, "init", "-q", "--bare", "work.git")
    one = world.machine("one", "--work-remote", "work")
    task = one.file_task("a")
    with postgres.set_back(world.url, world.name):
        late = one.file_task("late")
        for kind in ("ready", "wip"):
            one.sh("push", "-q", "work", f"HEAD:refs/harness/{world.name}/{kind}/{late}/1")
        one.sh("push", "-q", "work", f"HEAD:refs/harness/{world.name}/wip/{task}/1")

    away = world.remote.rename(world.place / "away.git")
    said = one("store", "check", "--repair", HARNESS_TRUST="1")
    away.rename(world.remote)
    one.ends(0)

    assert "unmerged work of claims that the list does not know (3 refs)" in said.text
    assert one.sh("for-each-ref", f"refs/harness/rescue/{task}/so-far-1")
    kept = one.sh("for-each-ref", "--format=%(refname)", f"refs/harness/rescue/{late}").split()
    assert kept == [f"refs/harness/rescue/{late}/{name}" for name in ("checked-1", "so-far-1")]
    assert one.file_task("other") != late


LONGER = 4.0
MAIN, READY, GONE = "refs/heads/main", "refs/harness/.*/ready/", "^[0-9a-f]* 0000000.*ready/"
COLLECTED = "refs/heads/harness/main"
# In which hook of the remote a machine dies, and what that sees.
DEATHS = {
    "before the branch moves": ("pre-receive", "BRANCH"),
    "the branch has moved, and the list does not know": ("post-receive", "BRANCH"),
    "the turn is still held": ("post-receive", GONE),
    "only the checked commit is there": ("post-receive", READY),
}
OFTEN = "the branch has moved, and the list does not know"


@pytest.mark.parametrize("death", [OFTEN, *for_release(*(name for name in DEATHS if name != OFTEN))])
def test_a_machine_dies_in_a_merge(world: World, death: str) -> None:
    hook, pattern = DEATHS[death]
    one, two = world.pair(lease=LONGER)
    task = one.add("Make a file", "grep -q done file", do="write file done")
    reached = world.stop_at(hook, pattern.replace("BRANCH", MAIN))
    one.dies_working(reached.exists)

    two.ends(0)

    world.each_once_at_no_cost(task)
    assert ('action="mark completed"' in two.log_text) is (death == OFTEN)


@pytest.mark.parametrize("death", [OFTEN, *for_release("before the branch moves", "the turn is still held")])
@pytest.mark.parametrize("who", ["one", "two"])
def test_a_machine_dies_while_it_collects(world: World, death: str, who: str) -> None:
    """Another machine does the rest, or it does so itself when it is there again."""
    one = world.machine("one", lease=LONGER)
    world.machine("two", lease=LONGER)
    task = one.add("Make a file", "grep -q done file", do="write file done")
    hook, pattern = DEATHS[death]
    reached = world.stop_at(hook, pattern.replace("BRANCH", COLLECTED))
    one.dies_working(reached.exists, "--merge", "branch")

    next(each for each in world.machines if each.name == who).ends(0, "--merge", "branch")

    subjects = sh(world.remote, "log", "--format=%s", "main..harness/main").splitlines()
    assert (world.log(), subjects) == (["Begin"], [f"[{task}] Make a file"])
    assert one.statuses_now == {task: "completed"}
    assert (world.refs("wip"), world.refs("ready")) == ([], [])


def test_a_machine_that_died_in_git_worktree_add_can_fetch_again(world: World, one: Machine) -> None:
    """As long as git knows a work tree without a commit, it fetches nothing."""
    task = one.file_task("a")
    half = worker_worktrees.home(one.context()) / "run-dead/1"
    one.sh("worktree", "add", "-q", "--detach", str(half))
    # Git writes this first, and is killed before the rest.
    one.put(".git/worktrees/1/HEAD", f"{'0' * 40}\n")
    one.put(".git/worktrees/1/locked", "initializing\n")

    one.ends(0)

    world.each_once(task)
    assert not half.exists()


def test_the_remote_refuses_a_machine_that_slept_in_its_push(world: World) -> None:
    """Nobody has moved the branch since: what it lacks is the turn."""
    one, two = world.pair(lease=LONGER)
    task = one.add("Make a file", "grep -q done file", do="write file done")
    asleep, awake = world.place / "asleep", world.place / "awake"
    # After git has seen where the branch is, and before it says what is to change.
    waits = f"touch '{asleep}'; while [ ! -e '{awake}' ]; do sleep 0.05; done"
    one.put(".git/hooks/pre-push", f"#!/bin/sh\ngrep -q {MAIN} || exit 0\n{waits}\n", executable=True)
    late = one.start()
    until("the push", asleep.exists)
    held = world.stop_at("pre-receive", MAIN)
    other = two.start()
    until("the turn of the other machine", held.exists)
    before = sh(world.remote, "rev-parse", "main")

    awake.touch()
    until("the late push", lambda: "lease" in one.printed or late.poll() is not None)
    assert sh(world.remote, "rev-parse", "main") == before

    (held / "go").touch()
    assert (late.wait(), other.wait()) == (0, 0), one.printed + two.printed
    world.each_once(task)

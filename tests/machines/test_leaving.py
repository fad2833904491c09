"""What leaves a machine, to which remote, and what a remote must take."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machines.world import Machine, World
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import sh

LEASE = 3.0
HALF = "sh test -e half && echo done > file || { echo done > half; sleep 600; }"


def bare(world: World, name: str) -> Path:
    sh(world.place, "init", "-q", "--bare", f"{name}.git")
    return world.place / f"{name}.git"


@pytest.mark.release
def test_unfinished_work_goes_to_a_remote_of_its_own(world: World) -> None:
    world.others["work"] = bare(world, "work")
    one, two = (world.machine(name, "--work-remote", "work", lease=LEASE) for name in ("one", "two"))
    assert f"to work ({world.others['work']})" in two.joined
    task = one.add("Make a file", "grep -q done half && grep -q done file", do=HALF)
    one.dies_working(lambda: world.refs("wip", world.others["work"]))

    two.ends(0)

    world.each_once(task)
    assert [world.refs(kind) for kind in ("wip", "ready", "rescue")] == [[], [], []]
    assert world.refs("rescue", world.others["work"]) == ["task-001/1-2"]
    assert world.refs("wip", world.others["work"]) == []


def test_nothing_unfinished_leaves_if_it_is_to_stay(world: World) -> None:
    """Also when the machine joins again."""
    one = world.machine("one", "--no-snapshots", "--max-snapshot", "7")
    assert "unfinished work stays here" in one.joined
    said = one.ok("store", "join", world.url, "--list", world.name)
    assert "unfinished work stays here" in said["message"]
    assert one.sh("config", "harness.maxSnapshot") == "7"
    one.file_task("a")
    one.add("Never done", "false", "--max-attempts", "1", do="write b b ;; sh harness checkpoint 1/2 half")
    seen = world.place / "seen"
    world.hook("update", f"echo $1 >> {seen}")

    one.ends(9)

    kinds = {name.split("/")[3] for name in seen.read_text().split() if name.startswith("refs/harness/")}
    assert kinds == {"turn", "ready"}
    assert one.ok("rescue", "list")["count"] == 1


def test_too_large_work_stays_here_and_it_is_said(world: World) -> None:
    one = world.machine("one", "--max-snapshot", "1")
    assert "up to 1 MB of an attempt" in one.joined
    task = one.add("Make a large file", "test -s large")
    one.works()
    one.sh("-c", "alias.make=!head -c 1100000 /dev/urandom > large", "make")

    said = one("checkpoint", "1/2", "half of it")

    assert "is on this machine only: it has 2 MB, and 1 MB of an attempt leave this machine" in said.err
    assert world.refs("wip") == []
    one.ok("finish")
    world.each_once(task)


def test_a_remote_that_refuses_large_packs_loses_nothing(world: World, one: Machine) -> None:
    task = one.add("Make a large file", "test -s large")
    sh(world.remote, "config", "receive.maxInputSize", "100000")
    one.works()
    one.sh("-c", "alias.make=!head -c 300000 /dev/urandom > large", "make")
    content = (one.top / "large").read_bytes()

    assert "is on this machine only: " in one("checkpoint", "1/2", "half of it").err
    refused = one("finish")

    assert (refused.code, "origin has not taken main" in refused.text) == (7, True)
    assert "exceeds maximum allowed size" in refused.text
    assert (one.statuses_now[task], (one.top / "large").read_bytes() == content) == ("in_progress", True)
    sh(world.remote, "config", "--unset", "receive.maxInputSize")
    one.ok("finish")
    world.each_once(task)


def test_what_a_remote_could_not_take_is_sent_by_the_next_run(world: World, one: Machine) -> None:
    one.add("Never done", "false", "--max-attempts", "1", do="write b b")
    one.add("Dropped", "false", "--max-attempts", "1", do="write c c")
    world.hook("update", r"case $1 in */rescue/*) printf '\377' >&2; exit 1;; esac")
    one.ends(9)
    assert one.ok("rescue", "list")["count"] == 2
    assert world.refs("rescue") == []
    one.ok("rescue", "drop", "task-002/1-1")
    world.hook("update", "exit 0")
    one.file_task("next")

    one.ends(9)

    assert world.refs("rescue") == ["task-001/1-1"]
    kept = sh(world.remote, "for-each-ref", "--format=%(refname)", f"refs/harness/{world.name}/rescue")
    assert sh(world.remote, "show", f"{kept}:b") == "b"
    assert one.sh("for-each-ref", f"refs/harness/there/{world.name}/unsent") == ""


@pytest.mark.release
def test_a_host_that_takes_branches_only_gets_branches(world: World) -> None:
    world.hook("update", 'case $1 in refs/heads/*) ;; *) echo "only branches" >&2; exit 1;; esac')
    one, two = world.pair(lease=LEASE)
    below = f"refs/heads/harness/{world.name}."
    assert f"origin takes branches only, so what machines share is below {below}" in two.joined
    task = one.add("Make a file", "grep -q done half && grep -q done file", do=HALF)
    one.dies_working(lambda: world.refs("wip", below="refs/heads/harness"))

    two.ends(0)

    world.each_once(task)
    assert world.refs("turn", below="refs/heads/harness") == ["main"]
    assert world.refs("wip", below="refs/heads/harness") == []


@pytest.mark.parametrize(
    ("made", "said"),
    [
        pytest.param(
            'case $1 in refs/heads/main) ;; *) echo "no refs here" >&2; exit 1;; esac',
            "Work cannot be shared yet: origin refuses refs below refs/harness/",
            id="neither refs nor branches",
        ),
        pytest.param(
            'case $1 in refs/heads/*) ;; *) echo "only branches" >&2; exit 1;; esac',
            "origin takes branches only, so what machines share is below refs/heads/harness/shop-",
            id="only branches",
        ),
        pytest.param(
            'case $3 in 000000*) echo "kept for ever" >&2; exit 1;; esac',
            "Work cannot be shared yet: origin lets nobody delete a ref",
            id="no deleting",
        ),
        pytest.param("", "A merge pushes two refs at once.", id="one ref at a time"),
    ],
)
def test_what_a_host_refuses_is_said_when_a_machine_joins(world: World, made: str, said: str) -> None:
    world.hook("update", made)
    if not made:
        sh(world.remote, "config", "receive.advertiseAtomic", "false")
    assert said in world.machine("one").joined


def test_machines_that_push_to_different_places_are_told_so(world: World, one: Machine) -> None:
    """A host may have refused for a moment what it has taken before."""
    one.file_task("a")
    one.ends(0)
    world.hook("update", 'case $1 in refs/heads/*) ;; *) echo "only branches" >&2; exit 1;; esac')
    two = world.machine("two")
    assert "takes branches only" in two.joined
    assert f"Other machines have used refs below refs/harness/{world.name}" in two.joined

    world.hook("update", "exit 0")
    said = two.ok("store", "join", world.url, "--list", world.name)["message"]

    assert "branches only" not in said
    two.file_task("b")
    two.ends(0)
    assert (world.refs("turn"), world.refs("turn", below="refs/heads/harness")) == (["main"], [])


def test_what_a_killed_join_has_left_goes_with_the_next_one(world: World, one: Machine) -> None:
    """It may still go on: others, and runs that remove what nobody needs, leave it alone."""
    argv = ("store", "join", world.url, "--list", world.name)
    reached = world.stop_at("post-receive", "/turn/probe")
    one.dies_typing(*argv, reached=reached)
    left = probes(world)
    assert [name.split("/")[0] for name in left] == ["ready", "rescue", "turn", "wip"]

    two = world.machine("two")
    assert "valid" in two.ok("store", "check")["message"]
    two.file_task("a")
    two.ends(0)
    assert probes(world) == left

    one.ok(*argv)
    assert probes(world) == []


def probes(world: World) -> list[str]:
    """Return the refs with which joins try what the remote takes."""
    prefix = f"refs/harness/{world.name}/"
    names = sh(world.remote, "for-each-ref", "--format=%(refname)", prefix).split()
    return [name.removeprefix(prefix) for name in names if "/probe" in name]


def test_a_clone_without_history_and_one_of_a_fork_are_told_apart(world: World, one: Machine) -> None:
    one.file_task("a")
    world.others["upstream"] = world.remote
    fork, remote = world.place / "fork.git", world.remote
    sh(world.place, "clone", "-q", "--bare", str(remote), str(fork))
    one.ends(0)
    remote.rename(world.place / "upstream.git")
    fork.rename(remote)
    world.others["upstream"] = world.place / "upstream.git"

    assert "the finished work of task-001 by one. If this remote is a fork" in world.machine("two").joined
    three = world.machine("three", "--target-remote", "upstream")
    assert "fork" not in three.joined
    assert "finished work, to upstream/main" in three.joined
    three.sh("fetch", "-q", "--depth", "1", f"file://{remote}", "main")
    said = three("store", "join", world.url, "--list", world.name)
    assert (said.code, "git fetch --unshallow" in said.text) == (7, True)


def test_a_list_is_not_called_as_another_one_whose_work_is_on_the_branch(world: World, one: Machine) -> None:
    """Its tasks have the same ids: that work would be taken for theirs."""
    one.file_task("a")
    one.works("a")
    one.ok("finish")
    one.ok("stop")
    one.ok("store", "move", "--to-file")
    other = Workshop(world.place / "other", world.place / "home")
    sh(world.place, "clone", "-q", str(world.remote), str(other.top))
    other.ok("init")
    other.file_task("b")

    said = other.harness("store", "move", world.url, "--list", world.name)
    assert said.returncode == 8
    assert f"work of another list called {world.name} (task-001" in said.stderr
    other.ok("store", "move", world.url, "--list", f"{world.name}-too")
    assert other.harness("store", "check").returncode == 0
    one.ok("store", "move", world.url, "--list", world.name)

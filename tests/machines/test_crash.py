"""A machine dies, or sleeps, at each step of a merge: another one does the rest, each task once."""

from __future__ import annotations

import pytest

from harness_lib.attempts import worker_worktrees
from tests.machines.world import World
from tests.system.git.gitrepo import put, sh
from tests.waiting import until

LEASE = 4.0
MAIN, READY, GONE = "refs/heads/main", "refs/harness/.*/ready/", "^[0-9a-f]* 0000000.*ready/"
COLLECTED = "refs/heads/harness/main"


@pytest.mark.parametrize(
    ("hook", "pattern"),
    [
        pytest.param("post-receive", READY, id="only the checked commit is there", marks=pytest.mark.release),
        pytest.param("pre-receive", MAIN, id="before the branch moves", marks=pytest.mark.release),
        pytest.param("post-receive", MAIN, id="the branch has moved, and the list does not know"),
        pytest.param("post-receive", GONE, id="the turn is still held", marks=pytest.mark.release),
    ],
)
def test_a_machine_dies_in_a_merge(world: World, hook: str, pattern: str) -> None:
    one, two = world.machine("one", lease=LEASE), world.machine("two", lease=LEASE)
    task = one.add("Make a file", "grep -q done file", do="write file done")
    world.trust()
    reached = world.stop_at(hook, pattern)
    one.start()
    until("the step", reached.exists)
    one.cut_power()

    two.ends(0)

    world.each_once(task)
    assert two.context("looks").store.ask().search()[0].attempts == 0


@pytest.mark.parametrize(
    ("hook", "pattern"),
    [
        pytest.param("pre-receive", COLLECTED, id="before the branch moves", marks=pytest.mark.release),
        pytest.param("post-receive", COLLECTED, id="the branch has moved, and the list does not know"),
        pytest.param("post-receive", GONE, id="the turn is still held", marks=pytest.mark.release),
    ],
)
@pytest.mark.parametrize("who", ["one", "two"])
def test_a_machine_dies_while_it_collects_on_a_branch(
    world: World, hook: str, pattern: str, who: str
) -> None:
    """Another machine does the rest, or it does so itself when it is there again."""
    one = world.machine("one", lease=LEASE)
    world.machine("two", lease=LEASE)
    task = one.add("Make a file", "grep -q done file", do="write file done")
    world.trust()
    reached = world.stop_at(hook, pattern)
    one.start("--merge", "branch")
    until("the step", reached.exists)
    one.cut_power()

    next(each for each in world.machines if each.name == who).ends(0, "--merge", "branch")

    subjects = sh(world.remote, "log", "--format=%s", "main..harness/main").splitlines()
    assert (world.log(), subjects) == (["Begin"], [f"[{task}] Make a file"])
    assert one.statuses_now == {task: "completed"}
    assert (world.refs("wip"), world.refs("ready")) == ([], [])


def test_a_machine_that_died_while_git_made_a_work_tree_can_fetch_again(world: World) -> None:
    """As long as git knows a work tree without a commit, it fetches nothing."""
    one = world.machine("one")
    task = one.file_task("a")
    world.trust()
    half = worker_worktrees.home(one.context()) / "run-dead" / "1"
    sh(one.top, "worktree", "add", "-q", "--detach", str(half))
    # Git writes this first, and is killed before the rest.
    put(one.top / ".git" / "worktrees" / "1" / "HEAD", f"{'0' * 40}\n")
    put(one.top / ".git" / "worktrees" / "1" / "locked", "initializing\n")

    one.ends(0)

    world.each_once(task)
    assert not half.exists()


def test_the_remote_refuses_a_machine_that_slept_in_its_push(world: World) -> None:
    """Nobody has moved the branch since: what it lacks is the turn."""
    one, two = world.machine("one", lease=LEASE), world.machine("two", lease=LEASE)
    task = one.add("Make a file", "grep -q done file", do="write file done")
    world.trust()
    asleep, awake = world.place / "asleep", world.place / "awake"
    # After git has seen where the branch is, and before it says what is to change.
    hook = f"#!/bin/sh\ntouch '{asleep}'; while [ ! -e '{awake}' ]; do sleep 0.05; done\n"
    put(one.top / ".git" / "hooks" / "pre-push", hook)
    (one.top / ".git" / "hooks" / "pre-push").chmod(0o755)
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

"""Chats on two machines: what one finishes is pushed, and the other's work goes on top of it."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from tests.machines.world import Machine, World
from tests.system.git.gitrepo import put, sh


@pytest.mark.parametrize(
    "told",
    [
        "[ -s {asked}2 ] || {{ echo >> {asked}2; echo ssh: Network is unreachable >&2; exit 1; }}",
        "echo mux_client_request_session: Connection refused >&2",
    ],
    ids=["away for a moment", "only said to be"],
)
def test_a_remote_is_waited_for_until_it_has_answered(world: World, one: Machine, told: str) -> None:
    """Beside its answer ssh may tell of a lost connection, as where it shares one with other commands."""
    task = one.add("Make a", "grep -q done a")
    one.works("a")
    asked, upload = world.place / "asked", world.place / "upload"
    program = f'echo >> {asked}; {told.format(asked=asked)}; exec git-upload-pack "$@"'
    put(upload, f"#!/bin/sh\n{program}\n").chmod(0o755)
    one.sh("config", "remote.origin.uploadpack", str(upload))

    one.ok("finish")

    assert 0 < len(asked.read_text()) < 10
    world.each_once(task)


def test_work_goes_on_top_of_what_others_have_finished(world: World, one: Machine, two: Machine) -> None:
    tasks = [one.add(f"Make {name}", f"grep -q done {name}") for name in ("a", "b")]
    tasks.append(one.add("Make c", "grep -q done c", "--depends-on", tasks[0]))
    assert [one.works("a"), two.works("b")] == tasks[:2]

    # Whoever looks sees which machine works on what.
    assert " on one since " in two("status").out
    assert " on two in " in one("show", "task-002").out
    assert "machine=two)" in one("log").out
    by_machine = two("status", "--machines").out.splitlines()
    assert by_machine[0] == "one: 0 completed, 1 in progress"
    assert by_machine[1].startswith("  task-001 by ")
    one.ok("finish")
    one.ok("stop")
    # That the checkout follows the others is nothing to look at.
    assert "look_at" not in two.ok("finish")["task"]
    assert "\nFinished on: one 1, two 1\n" in two("report").out

    assert two.sh("rev-parse", "main") == sh(world.remote, "rev-parse", "main")
    assert two.sh("status", "--porcelain") == ""
    assert two.read("a") == "done\n"
    assert one.works() == tasks[2]
    assert one.sh("rev-parse", "main") == sh(world.remote, "rev-parse", "main")
    one.commits("By the agent", {"c": "done\n"})
    one.ok("finish")
    assert world.log() == ["Begin", "[task-001] Make a", "[task-002] Make b", "By the agent"]
    world.each_once(*tasks)


def test_what_a_check_has_left_does_not_help_it_on_the_merged_content(one: Machine, two: Machine) -> None:
    """It runs in a checkout of its own there: what git does not know may be the user's, and stays."""
    mine = one.add("Mine", "test -f a && { test -e left || test ! -e b; } && touch left")
    two.file_task("b")
    one.ok("claim", mine)
    one.put("a", "done\n")
    assert two.works("b") == "task-002"
    two.ok("finish")

    said = one("finish")

    assert "with what was merged meanwhile it does not" in said.text
    assert (one.top / "left").exists()
    assert one.statuses_now == {mine: "in_progress", "task-002": "completed"}


def test_what_the_user_edits_while_it_is_pushed_is_kept_and_named(world: World, one: Machine) -> None:
    """And what they commit is not pushed along."""
    for name in "ab":
        one.add(f"Make {name}", f"grep -q done {name}")
    one.works("a")
    world.hook("post-receive", f"echo edited >> {one.top}/README.md")

    (said,) = one.ok("finish")["task"]["look_at"]

    assert "the change is kept" in said
    assert "+edited" in one("rescue", "show", "task-001").out
    one.sh("commit", "-q", "--allow-empty", "-m", "Of the user")
    refused = one("claim", "--json")
    assert (refused.code, "commits that origin/main lacks" in refused.json["message"]) == (8, True)


def test_a_conflict_stays_in_progress_until_it_is_resolved(world: World, one: Machine, two: Machine) -> None:
    tasks = [one.add(f"Write {name}", f"grep -q {name} file") for name in ("a", "b")]
    assert [one.works(), two.works()] == tasks
    one.put("file", "a\n")
    two.put("file", "b\n")
    one.ok("finish")

    said = two("finish", "--json")

    assert said.code == 1
    assert "conflicts with what was merged meanwhile, in file" in said.json["message"]
    assert two.read("file") == "b\n"
    two.sh("add", "file")
    two.sh("commit", "-q", "-m", "WIP")
    two.sh("pull", "-q", "--no-rebase", "origin", "main", check=False)
    two.commits("Both", {"file": "a\nb\n"})
    two.ok("finish")
    world.each_once(*tasks)
    assert sh(world.remote, "show", "main:file") == "a\nb"


@pytest.mark.release
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("hook", ["pre-receive", "post-receive"])
def test_a_finish_that_was_killed_in_its_push_is_done_again(world: World, hook: str, merged: bool) -> None:
    one, two = world.machine("one"), world.machine("two", lease=2)
    tasks = [one.add(f"Make {name}", f"grep -q done {name}") for name in ("a", "b")]
    assert one.works("a") == tasks[0]
    if merged:
        assert two.works("b") == tasks[1]
        two.ok("finish")
    one.dies_typing("finish", reached=world.stop_at(hook, "refs/heads/main"))

    done = one("finish")
    if hook == "pre-receive":
        assert "was killed before origin/main had the work" in done.out
        done = one("finish")

    assert done.code == 0, done.text
    assert one.sh("status", "--porcelain") == ""
    assert one.sh("rev-parse", "main") == sh(world.remote, "rev-parse", "main")
    if not merged:
        tasks.pop()
    world.each_once(*tasks)


@pytest.mark.release
def test_a_list_that_is_in_a_file_again_forgets_its_machines(one: Machine) -> None:
    """Whose files an attempt has made is decided by it."""
    one.add("Make a", "grep -q done a")
    one.works()
    one.ok("release")
    one.ok("stop")
    assert one.task("task-001")["machine"] == "one"

    one.ok("store", "move", "--to-file", HARNESS_TRUST="1")
    one.works()

    assert "machine" not in one.task("task-001")


def test_a_commit_while_the_check_runs_is_noticed(world: World, one: Machine) -> None:
    moves = f"git -C {one.top} log --format=%s | grep -q Moved"
    moves += f" || git -C {one.top} commit -q --allow-empty -m Moved"
    one.add("Make a", f"{moves}; grep -q done a")
    one.works("a")

    refused = one("finish")
    assert refused.code == 8
    assert "HEAD has moved while the check ran." in refused.err
    assert "harness: hint: Type it again: harness finish task-001" in refused.err

    one.ok("finish")
    assert world.log() == ["Begin", "Moved", "[task-001] Make a"]


def test_a_chat_that_was_killed_in_its_rollback_is_not_called_late(world: World, one: Machine) -> None:
    """Its own next command has taken the task over and put it back."""
    one.add("Make a", "grep -q done a")
    one.works()
    one.put("a", "not yet\n")
    one.put("README.md", "changed\n")
    kills = f'#!/bin/sh\ncase " $* " in *" reset "*) kill -9 $PPID ;; esac\nexec {shutil.which("git")} "$@"\n'
    put(world.place / "bin/git", kills, executable=True)
    path = f"{world.place}/bin:{os.environ['PATH']}"
    assert one("fail", "--message", "no", PATH=path).code == -signal.SIGKILL

    assert "finish the interrupted rollback" in one("start").text
    assert one.ok("start")["task"]["id"] == "task-001"


def test_a_chat_is_not_late_for_a_task_whose_attempt_it_has_ended(one: Machine, two: Machine) -> None:
    one.add("Make a", "grep -q done a")
    one.works()
    one.ok("fail", "--message", "no")
    two.works("a")
    two.ok("finish")

    assert one("claim", "--json").json["stop"]["reason"] == "done"

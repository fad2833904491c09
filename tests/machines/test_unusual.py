"""Remotes, clones and names that are not as usual: nothing is lost, and what is wrong is said."""

from __future__ import annotations

import json
import os

import pytest

from harness_lib.attempts import snapshots
from harness_lib.attempts.remote import Answer
from harness_lib.core.context import Context
from harness_lib.rules import transitions
from harness_lib.task import Handback
from tests.machines.world import Machine, World
from tests.system.git.gitrepo import put, sh
from tests.waiting import until


def rewritten(world: World) -> None:
    """Let somebody replace the branch of the remote by a history without the last work, the file a."""
    clone = world.place / "person"
    sh(world.place, "clone", "-q", str(world.remote), str(clone))
    sh(clone, "rm", "-q", "a")
    sh(clone, "commit", "-q", "--amend", "--allow-empty", "-m", "By a person")
    sh(clone, "push", "-q", "--force", "origin", "HEAD:main")


def test_a_branch_that_is_on_no_remote_is_to_be_pushed_once(world: World, one: Machine) -> None:
    one.file_task("a")
    one.sh("switch", "-qc", "mine")
    one.sh("remote", "rename", "origin", "hub")
    assert "Push it once: git push --set-upstream hub mine" in one("claim").err
    one.sh("remote", "remove", "hub")
    push = "Push it once: git push --set-upstream origin mine"
    assert f"Name a remote: git remote add origin URL. {push}" in " ".join(one("claim").err.split())
    one.sh("remote", "add", "origin", str(world.remote))
    assert push in one("claim").err
    # As a clone of an empty repository has it.
    one.sh("config", "branch.mine.remote", "origin")
    one.sh("config", "branch.mine.merge", "refs/heads/mine")
    for words in (("claim",), ("run",)):
        said = one(*words)
        assert (said.code, push in said.err) == (7, True), said.text
    assert push in one("store", "check").out

    one.sh("push", "-q", "--set-upstream", "origin", "mine")
    one.ok("claim")


@pytest.mark.release
def test_a_rewritten_branch_gets_the_work_and_what_it_lost_is_named(world: World, one: Machine) -> None:
    first = one.file_task("a")
    one.ends(0)
    lost = world.log("%H")[-1][:12]
    waits = world.place / "waits"
    second = one.add("Make b", "grep -q done b", do=f"touch {waits} ;; wait {waits}.go ;; write b done")
    one.start()
    until("the agent", waits.exists)
    rewritten(world)
    put(waits.with_suffix(".go"), "")

    one.has_ended(0)
    assert world.log() == ["Begin", "By a person", "[task-002] Make b"]
    said = one("store", "check")
    assert f"{first} is completed, and no branch of origin has its commit {lost}" in said.text
    assert second not in said.text


def test_old_rescued_work_leaves_the_remote_and_what_is_needed_stays(world: World, one: Machine) -> None:
    """The clock of a machine makes none of it old; a ref of the user may be nowhere else any more."""
    task = one.file_task("a")
    one.ends(0)
    one.sh("push", "-q", "origin", "HEAD:refs/heads/gone")
    one.sh("fetch", "-q")
    sh(world.remote, "branch", "-D", "gone")
    long_ago = {**os.environ, "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"}
    rescue = f"refs/harness/{world.name}/rescue"
    old = one.sh("commit-tree", "-m", "old", "HEAD^{tree}", env=long_ago)
    new = one.sh("commit-tree", "-m", "new", "HEAD^{tree}")
    kept = {f"{task}/1-1": old, "task-009/1-1": old, "task-009/2-2": new}
    one.sh("push", "-q", "origin", *(f"{oid}:{rescue}/{name}" for name, oid in kept.items()))

    said = one("store", "check")
    assert said.code == 3, said.text
    assert "1 ref of rescued work in the remote, older than 30 days" in said.text
    one.ok("store", "check", "--repair", HARNESS_TRUST="1")

    assert world.refs("rescue") == [f"{task}/1-1", "task-009/2-2"]
    assert f"dropped {rescue}/task-009/1-1 {old}" in one.log_text
    assert one.sh("rev-parse", "refs/harness/rescue/task-009/1-1") == old
    assert one.sh("rev-parse", "origin/gone") == one.sh("rev-parse", "HEAD")


def test_rescued_work_of_a_task_that_is_handed_back_during_the_look_stays(
    world: World, one: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = one.file_task("a")
    long_ago = {**os.environ, "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"}
    old = one.sh("commit-tree", "-m", "old", "HEAD^{tree}", env=long_ago)
    one.sh("push", "-q", "origin", f"{old}:refs/harness/{world.name}/rescue/{task}/1-1")
    bring_all = snapshots.bring_all

    def during(ctx: Context) -> Answer:
        with one.context().store.transaction() as tx:
            back = Handback("It conflicts.", 0, f"refs/harness/rescue/{task}/1-1", old)
            (mine,) = tx.tasks([task])
            tx.replace(mine._replace(handback=back))
        return bring_all(ctx)

    monkeypatch.setattr(snapshots, "bring_all", during)

    assert snapshots.outlived(one.context()) == {}


def test_too_many_refs_are_named(world: World, one: Machine) -> None:
    tip = sh(world.remote, "rev-parse", "main")
    lines = "".join(f"{tip} refs/tags/build-{number}\n" for number in range(5001))
    put(
        world.remote / "packed-refs",
        f"# pack-refs with: peeled fully-peeled sorted \n{tip} refs/heads/main\n{lines}",
    )

    assert "origin has 5003 refs, and a push takes longer with each above 5000" in one("doctor").text
    assert "origin has 5003 refs" in one("store", "check").text


@pytest.mark.release
def test_work_gets_to_a_remote_with_a_hundred_thousand_refs(world: World, one: Machine, two: Machine) -> None:
    tip = sh(world.remote, "rev-parse", "main")
    lines = "".join(f"{tip} refs/tags/build-{number:06}\n" for number in range(100_000))
    head = f"# pack-refs with: peeled fully-peeled sorted \n{tip} refs/heads/main\n"
    put(world.remote / "packed-refs", head + lines)
    tasks = [one.file_task(name) for name in ("a", "b", "c")]

    runs = [machine.start("-j", "1") for machine in (one, two)]

    assert [run.wait() for run in runs] == [0, 0], one.printed + two.printed
    world.each_once(*tasks)
    # None of them has come along.
    assert one.sh("tag") == ""


def test_two_machines_with_one_worker_name_are_told_apart(world: World, one: Machine, two: Machine) -> None:
    task = one.add("Make a", "grep -q done a")
    name = {"HARNESS_WORKER_ID": "me"}
    one.ok("claim", **name)

    for verb in ("start", "claim", "finish", "recover", "stop"):
        said = two(verb, **name)
        assert said.code == 8, said.text
        assert f"{task} is in progress on one, under your name: me." in said.text
    for argv in (("status",), ("show", task)):
        assert two.ok(*argv, **name)["next"] == "harness status --machines"
    assert two.ok("beat", **name)["message"] == "No active lease to renew."
    assert one.ok("beat", **name)["message"] == f"renewed: {task}"

    one.put("a", "done\n")
    one.ok("finish", **name)
    world.each_once(task)


def test_work_of_a_namesake_is_taken_over_after_its_claim(world: World, one: Machine, two: Machine) -> None:
    """As of a container that is made anew: its host name is another one, its worker's name is not."""
    task = one.add("Make a", "grep -q done a")
    name = {"HARNESS_WORKER_ID": "me"}

    one.ok("claim", **name)
    one.put("a", "half\n")
    one.ok("checkpoint", task, "1/2", "half", **name)
    one.end_claims()

    claimed = two.ok("claim", **name)

    assert (claimed["resumed"], claimed["task"]["machine"]) == (False, "two")
    assert "half" in two.ok("rescue", "show", claimed["task"]["handback"]["rescue"])["message"]
    assert one("finish", **name).code == 8
    one.end_claims()
    # What it takes back from there is another claim than the one that it has lost.
    for late in (one, two):
        said = late("claim", **name)
        assert (said.code, "is kept: harness rescue show task-001/late-" in said.text) == (6, True), said.text
        (late.top / "a").unlink()
    two.ok("claim", **name)
    two.put("a", "done\n")
    two.ok("finish", **name)
    world.each_once_at_no_cost(task)


def test_a_chat_cut_off_in_a_take_over_is_told_when_it_goes_on(one: Machine, two: Machine) -> None:
    """What it takes over is in progress on the other machine until that is recorded."""
    task = one.add("Make a", "grep -q done a")
    one.ok("claim", HARNESS_WORKER_ID="gone")

    def cut_off(lease_seconds: int) -> str | None:
        with two.context("me").store.transaction("tasks") as tx:
            held = tx.task(task)
            assert held is not None
            taken = transitions.resume(
                held, worker="me", now=tx.now, worktree=held.worktree, lease_seconds=lease_seconds
            )
            tx.replace(taken)
        return taken.lease_expires_at

    end = cut_off(600)
    said = two("claim", HARNESS_WORKER_ID="me")
    assert (said.code, f"type it again when that claim ends: {end}." in said.text) == (8, True)

    cut_off(0)
    two.ok("claim", HARNESS_WORKER_ID="me")
    assert two.statuses_now == {task: "in_progress"}


@pytest.mark.release
def test_a_partial_clone_works(world: World, one: Machine) -> None:
    sh(world.remote, "config", "uploadpack.allowFilter", "true")
    sh(world.remote, "config", "uploadpack.allowAnySHA1InWant", "true")
    two = world.machine("two")
    sh(two.top.parent, "clone", "-q", "--filter=blob:none", f"file://{world.remote}", "partial")
    two.top = two.top.parent / "partial"
    two.ok("store", "join", world.url, "--list", world.name)
    tasks = [one.file_task("a"), one.add("Change it", "grep -q done README.md", do="write README.md done")]
    two.trusts()

    two.ends(0)

    world.each_once(*tasks)


ANEW = """\
while read -r old new ref; do
  [ "$ref" = refs/heads/main ] || continue
  export GIT_COMMITTER_NAME=host GIT_COMMITTER_EMAIL=host@example.org GIT_AUTHOR_NAME=host
  export GIT_AUTHOR_EMAIL=host@example.org
  top=$old
  for each in $(git rev-list --reverse "$old..$new"); do
    top=$(git log -1 --format=%B "$each" | git commit-tree "$each^{tree}" -p "$top")
  done
  git update-ref refs/heads/main "$top" "$new"
done
"""


def test_a_remote_that_makes_each_commit_anew_loses_nothing(world: World, one: Machine, two: Machine) -> None:
    """As a host that rebases what is pushed: no machine but its own has ever had the commit of a task."""
    tasks = [one.file_task(name) for name in ("a", "b", "c", "d")]
    world.hook("post-receive", ANEW)
    for machine in (one, two, one, two):
        machine.start("-j", "1", "--max-tasks", "1").wait()

    world.each_once(*tasks)
    (parted,) = [each for each in one.ok("report")["report"]["decisions"] if each["kind"] == "merge"]
    assert "main has commits of its own" in parted["what"]
    one.sh(*parted["commands"][0].split()[1:])
    assert "harness/main" not in str(one.ok("report")["report"]["decisions"])
    for machine in (one, two):
        machine.ok("store", "check")
        machine.sh("fetch", "-q")
        assert machine.sh("branch", "--format=%(refname:short)").splitlines() == ["harness/main", "main"]


SQUASHED = """\
while read -r old new ref; do
  [ "$ref" = refs/heads/main ] || continue
  export GIT_COMMITTER_NAME=host GIT_COMMITTER_EMAIL=host@example.org GIT_AUTHOR_NAME=host
  export GIT_AUTHOR_EMAIL=host@example.org
  git update-ref refs/heads/main "$(echo Squashed | git commit-tree "$new^{tree}" -p "$old")" "$new"
done
"""


def test_what_a_remote_squashed_only_its_machine_can_tell(world: World, one: Machine, two: Machine) -> None:
    """One without its repository still shows the list."""
    task = one.file_task("a")
    world.hook("post-receive", SQUASHED)
    two.ends(0)

    assert world.log() == ["Begin", "Squashed"]
    two.ok("store", "check")
    said = one("store", "check")
    assert said.code == 3
    assert f"{task} is completed, and no branch of origin has its commit" in said.text
    assert "store check on two tells whether its change is there" in said.text
    (two.top / ".git").rename(two.top / "git")
    assert f"{task}: Make a" in two("status").out


def test_a_repair_is_named_only_where_it_may_help(world: World, one: Machine) -> None:
    one.file_task("a")
    one.ends(0)
    rewritten(world)

    def then(*argv: str) -> object:
        said = json.loads(one("store", "check", "--json", *argv, HARNESS_TRUST="1").out)
        assert said["exit"] == 3
        return said["next"]

    assert then() == "harness store check --repair"
    assert then("--repair") == "harness status"
    world.remote.rename(world.place / "away")
    assert then() == "harness status"
    assert "See whether it answers: git ls-remote origin" in one("store", "check").text

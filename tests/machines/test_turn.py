"""Whose turn it is to merge: the database says so, and the remote refuses everybody else."""

from __future__ import annotations

import os
import shlex
from contextlib import nullcontext
from pathlib import Path

import pytest

from harness_lib.attempts import check, merge_queue, pending_merges, remote, target_branch, turn
from harness_lib.attempts.remote import Answer
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, HeldError, RemoteAwayError
from harness_lib.rules import transitions
from harness_lib.system.clock import Clock
from harness_lib.task import Task
from tests.machines.world import MAIN, Machine, World, at, taken
from tests.system.git.gitrepo import sh


def work(ctx: Context, onto: str) -> tuple[target_branch.Move, str]:
    """Return the move of the branch from `onto` to a new commit, and that commit."""
    commit = ctx.git.commit(ctx.git.tree_of(onto), [onto], f"Work of {ctx.owner.worker}\n")
    return target_branch.Move(MAIN, onto), commit


def test_a_late_holder_is_refused_although_nobody_has_pushed(world: World) -> None:
    slow, quick = at(world.machine("slow", lease=1)), at(world.machine("quick", lease=1))
    mine, other = taken(slow), taken(quick)
    before = mine.begin()
    assert other.begin() == before

    with pytest.raises(target_branch.MovedError):
        mine.move(*work(slow, before))

    assert sh(world.remote, "rev-parse", "main") == before
    move, commit = work(quick, before)
    other.move(move, commit)
    assert sh(world.remote, "rev-parse", "main") == commit
    other.leave()
    assert mine.begin() == commit
    mine.move(*work(slow, commit))


def test_finished_work_that_waits_on_the_branch_of_runs_is_kept(world: World) -> None:
    """An earlier run with `--merge branch` has left it there, and the list was moved since."""
    ctx = at(world.machine("first"))
    tip = str(ctx.main.ref(MAIN))
    waits = ctx.main.commit(ctx.main.tree_of(tip), [tip], "Finished\n")
    ctx.main.set_ref("refs/heads/harness/main", waits)

    merge_queue.refresh(ctx)

    assert ctx.main.ref("refs/heads/harness/main") == tip
    assert ctx.main.ref(f"refs/heads/harness/main-{waits[:12]}") == waits


def test_a_turn_that_is_kept_is_waited_for_and_one_that_is_left_is_free(world: World) -> None:
    first, second = at(world.machine("first")), at(world.machine("second"))
    shared = first.store.shared
    assert shared is not None
    mine = taken(first)
    mine.begin()
    # Nobody has taken it since it had ended: it is taken again.
    mine.leave()
    mine.keep()

    assert [branch for branch, _ in shared.turns()] == [MAIN]
    assert shared.turns()[0][1].startswith("first run-1 ")
    with pytest.raises(HeldError, match="enough"):
        turn.Turn(second, remote.of(second), shared, enough).begin()
    mine.leave()
    assert shared.turns() == ()
    taken(second).begin()


def enough() -> None:
    raise HeldError("enough", "")


def begun(world: World) -> tuple[Context, turn.Turn, str]:
    """Return what a run sees that has the turn, its turn, and the commit that the branch has then."""
    ctx = at(world.machine("one"))
    mine = taken(ctx)
    return ctx, mine, mine.begin()


def test_a_person_who_pushes_in_between_is_no_obstacle(world: World, tmp_path: Path) -> None:
    ctx, mine, before = begun(world)
    sh(tmp_path, "clone", "-q", str(world.remote), "person")
    sh(tmp_path / "person", "commit", "-q", "--allow-empty", "-m", "Of a person")
    sh(tmp_path / "person", "push", "-q")

    with pytest.raises(target_branch.MovedError):
        mine.move(*work(ctx, before))
    theirs = mine.begin()
    mine.move(*work(ctx, theirs))

    assert world.log() == ["Begin", "Of a person", "Work of run-1"]


def test_a_mark_that_the_remote_has_lost_is_made_again(world: World) -> None:
    """Somebody has removed the refs of harness, or set the remote up anew."""
    ctx = at(world.machine("one"))
    mine, mark = taken(ctx), f"refs/harness/{world.name}/turn/main"
    mine.begin()
    mine.leave()
    sh(world.remote, "update-ref", "-d", mark)
    again = taken(ctx)
    before = again.begin()
    sh(world.remote, "update-ref", "-d", mark)

    with pytest.raises(target_branch.MovedError):
        again.move(*work(ctx, before))
    assert again.begin() == before
    again.move(*work(ctx, before))

    assert world.log() == ["Begin", "Work of run-1"]


def test_a_remote_that_refuses_says_so_and_one_that_is_away_is_waited_for(world: World) -> None:
    ctx, mine, before = begun(world)
    for says in ("frozen", "lint timed out"):
        world.hook("update", f'case "$1" in refs/heads/*) echo {says} >&2; exit 1; esac')
        with pytest.raises(EnvSetupError, match=f"has not taken main: .*{says}"):
            mine.move(*work(ctx, before))

    world.remote.rename(world.place / "away")
    with pytest.raises(HeldError, match="origin/main cannot be fetched"):
        mine.move(*work(ctx, before))
    with pytest.raises(HeldError, match="origin/main cannot be fetched"):
        merge_queue.refresh(ctx)


def test_why_a_run_has_ended_is_told_until_another_session_is_opened(one: Machine, two: Machine) -> None:
    """Beside it a later session may go on, or have ended in the meantime."""
    one.file_task("a")
    one.ok("start")
    two.ok("start")
    with one.context("looks").store.transaction() as tx:
        tx.log("ERROR", "[ENV_SETUP] the run ended: main is frozen", 1)
        tx.log("LOCK", "acquired again (pid=7)", 2)
    for machine in (one, two):
        for verb in ("status", "report"):
            assert "the last run ended: main is frozen" in machine(verb).text
    two.ok("stop")
    two.ok("start")
    assert "frozen" not in one("report").text


def test_a_remote_that_never_answers_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = at(world.machine("one"))
    silence = world.place / "silence"
    os.mkfifo(silence)
    ctx.main.text("config", "remote.origin.uploadpack", f"read line < {shlex.quote(str(silence))};")
    monkeypatch.setattr(remote, "SECONDS", 0.5)

    with pytest.raises(RemoteAwayError) as raised:
        remote.refresh(ctx)
    os.close(os.open(silence, os.O_RDWR))

    assert raised.value.message == (
        "origin/main cannot be fetched: git fetch has timed out, as origin gave no answer for 0.5 seconds."
    )
    assert raised.value.hint == "See whether it answers: git ls-remote origin"


def test_a_push_that_was_taken_and_not_answered_is_found(world: World) -> None:
    ctx, mine, before = begun(world)
    world.hook("post-receive", "kill -9 $PPID")
    move, commit = work(ctx, before)

    mine.move(move, commit)

    assert sh(world.remote, "rev-parse", "main") == commit


# What git says of answers to a push, and whether another try may go better.
ANSWERS = {
    "fatal: the receiving end does not support --atomic push; fatal: the remote end hung up": False,
    "RPC failed; HTTP 413 curl 22 The requested URL returned error: 413; the remote end hung up": False,
    "RPC failed; HTTP 403 curl 22 The requested URL returned error: 403; the remote end hung up": False,
    "RPC failed; HTTP 429 curl 22 The requested URL returned error: 429; the remote end hung up": True,
    "fatal: unable to access 'http://host/': The requested URL returned error: 502": True,
    "fatal: unable to access 'http://host/': The requested URL returned error: 429": True,
    "fatal: Authentication failed for 'http://host/'": False,
}


def test_a_remote_that_will_not_take_a_push_is_not_waited_for_and_one_that_cannot_is(world: World) -> None:
    there = remote.of(at(world.machine("one")))
    for says, passes in ANSWERS.items():
        with pytest.raises(RemoteAwayError) if passes else nullcontext():
            remote.require_refusal(there, Answer(done=False, why=says))


class Hasty(Clock):
    """A clock by which each look at it takes longer than a lease."""

    passed = 0.0

    def monotonic(self) -> float:
        self.passed += 3600.0
        return self.passed


def test_claims_are_renewed_between_steps_that_are_shorter_than_a_third_of_a_lease(world: World) -> None:
    """A batch has up to 32 checks, each of which renews the claims only if it lasts."""
    one = world.machine("one", lease=600)
    names = [one.file_task(name) for name in ("a", "b")]
    ctx = at(one)
    first, second = remaining = [merging(ctx, name) for name in names]
    steps: list[int] = []

    batch = pending_merges.stack(ctx, remaining, str(ctx.git.head()), lambda: steps.append(1))

    assert ([member.task.id for member in batch.members], len(steps)) == (names, 2)
    check.renewing(ctx, first)()
    ctx.clock = Hasty()
    check.renewing(ctx, second)()
    renewed = ctx.store.ask().tasks(names)
    assert [before == after for before, after in zip(remaining, renewed, strict=True)] == [True, False]


def merging(ctx: Context, name: str) -> Task:
    """Claim a task in the name of a worker of its own, and say that an empty commit of it is to be merged."""
    head = str(ctx.git.head())
    commit = ctx.git.commit(ctx.git.tree_of(head), [head], f"Work of {name}")
    with ctx.store.transaction("tasks") as tx:
        task = tx.task(name)
        assert task is not None
        claimed = transitions.claim(
            task, worker=f"run-{name}", now=tx.now, base=head, gate=None, worktree=None, lease_seconds=60
        )
        tx.replace(claimed)
        tx.replace(transitions.begin_merge(claimed, now=tx.now, commit=commit))
    found = ctx.store.ask().task(name)
    assert found is not None
    return found


def test_a_turn_is_kept_in_a_check_that_is_longer_than_it(world: World) -> None:
    """It lasts a minute, and a claim half an hour."""
    ctx = at(world.machine("one", lease=1800))
    shared = ctx.store.shared
    assert shared is not None
    assert check.renewal_seconds(ctx) == 600.0

    with turn.taken(ctx, remote.of(ctx), lambda: None):
        assert check.renewal_seconds(ctx) * check.RENEWALS_PER_LEASE <= turn.SECONDS

"""A task gets a holder: what a claim begins anew, what it keeps, and how another worker goes on."""

from __future__ import annotations

from harness_lib.rules import transitions as arrows
from harness_lib.task import Checkpoint, Intent, Interruption, Task
from tests.rules.arrow_calls import BASE, COMMIT, GATE, claim, resume, roll_back
from tests.rules.lists import NOW, STAMP


def test_a_claim_begins_a_fresh_attempt() -> None:
    old = Task(
        "a",
        status="failed",
        attempts=1,
        error_log=("[TEST_FAIL] x",),
        fence=4,
        checkpoints=(Checkpoint(1, 2),),
        failed_at=STAMP,
        started_at_commit="0" * 40,
    )

    assert claim(old) == Task(
        "a",
        status="in_progress",
        attempts=1,
        error_log=("[TEST_FAIL] x",),
        fence=5,
        attempted_by=("w1",),
        claimed_by="w1",
        claimed_at=STAMP,
        lease_expires_at="2025-07-01T10:01:00Z",
        worktree="/wt",
        started_at_commit=BASE,
        gate=GATE,
    )


def test_a_claim_takes_nothing_over_that_the_prose_let_stand() -> None:
    old = Task(
        "a",
        intent=Intent("commit", STAMP, commit=COMMIT),
        completed_at=STAMP,
        completed_commit=COMMIT,
        touched=("x",),
        look_at=("x",),
        interruptions=2,
        interrupted=Interruption("7" * 40),
        halt="lifted by hand",
        unproven=True,
    )

    assert claim(old) == claim(Task("a"))


def test_whoever_goes_on_holds_the_task_for_as_long_as_a_new_claim_does() -> None:
    before = claim(Task("a"))._replace(claimed_at="x", lease_expires_at="x", halt="lifted")

    after = arrows.resume(before, worker="w2", now=NOW, worktree=None, lease_seconds=60)

    assert after == before._replace(
        claimed_by="w2",
        claimed_at=STAMP,
        lease_expires_at="2025-07-01T10:01:00Z",
        worktree=None,
        fence=2,
        attempted_by=("w1", "w2"),
        halt=None,
    )


def test_an_exclusive_claim_has_no_lease_and_a_beat_gives_it_none() -> None:
    task = claim(Task("a"), lease_seconds=None)

    assert task.lease_expires_at is None
    assert arrows.renew(task, NOW, 60) is task


def test_a_checkpoint_is_appended_and_renews_the_lease() -> None:
    task = claim(Task("a"))._replace(lease_expires_at=STAMP)

    after = arrows.checkpoint(task, Checkpoint(2, 4, "half"), now=NOW, lease_seconds=60)

    assert after.checkpoints == (Checkpoint(2, 4, "half"),)
    assert after.lease_expires_at == "2025-07-01T10:01:00Z"


def test_whoever_takes_over_gets_the_attempt_as_it_is_and_shuts_out_its_predecessor() -> None:
    before = roll_back(claim(Task("a")))

    after = resume(before)

    assert after.fence == before.fence + 1
    assert (after.claimed_by, after.worktree, after.lease_expires_at) == ("w2", "/wt2", None)
    assert (after.started_at_commit, after.gate, after.intent) == (BASE, GATE, before.intent)
    assert after.attempts == before.attempts


def test_the_last_workers_that_have_claimed_a_task_are_remembered_once_each() -> None:
    task = Task("a", attempted_by=tuple(f"w{n}" for n in range(9)))
    again = claim(Task("a", attempted_by=("w1", "w2")))
    assert again.attempted_by == ("w2", "w1")
    assert len(claim(task).attempted_by) == arrows.REMEMBERED

"""What ends an attempt or a completion, and what a task keeps of it."""

from __future__ import annotations

import pytest

from harness_lib.rules import transitions as arrows
from harness_lib.rules.endings import Ending
from harness_lib.rules.failures import is_permanent
from harness_lib.rules.halting import Halt
from harness_lib.task import Attempt, Checkpoint, Handback, Intent, Interruption, Task
from tests.rules.arrow_calls import BASE, CALLS, COMMIT, HEAD, RESCUE, claim, commit, release, roll_back
from tests.rules.lists import BLOCKED, NOW, STAMP


def test_what_is_unproven_is_confirmed_or_doubted_by_its_check() -> None:
    said = Task(
        "a", status="completed", completed_at="x", attempts=1, unproven=True, proof="y", claimed_by="w"
    )

    assert arrows.confirm(said, now=NOW, commit=COMMIT) == Task(
        "a", status="completed", completed_at="x", completed_commit=COMMIT, attempts=1, proof="y"
    )
    assert arrows.doubt(said) == Task("a", attempts=1, proof="y")


def test_what_is_confirmed_or_doubted_keeps_nothing_of_how_it_ended_before() -> None:
    said = Task(
        "a",
        status="completed",
        completed_commit=HEAD,
        failed_at=STAMP,
        handback=Handback("it conflicts", 1, RESCUE, BASE),
        unproven=True,
    )

    confirmed, doubted = arrows.confirm(said, now=NOW, commit=COMMIT), arrows.doubt(said)

    assert confirmed == Task("a", status="completed", completed_at=STAMP, completed_commit=COMMIT)
    assert doubted == Task("a", handback=said.handback)


def test_a_merge_says_what_is_brought_where_from() -> None:
    task = claim(Task("a"))

    assert CALLS["begin_merge"](task).intent == Intent("merge", STAMP, base=BASE, commit=COMMIT)
    onto = arrows.begin_merge(task, now=NOW, commit=COMMIT, base=HEAD)
    assert onto.intent == Intent("merge", STAMP, base=HEAD, commit=COMMIT)


def test_a_claim_is_handed_back_with_what_was_said_and_where_its_work_is_kept() -> None:
    begun = arrows.release(
        claim(Task("a", attempts=1)), now=NOW, message="no\ntime", rescue=RESCUE, head=HEAD
    )

    assert begun.intent == Intent(
        "rollback", STAMP, base=BASE, head=HEAD, rescue=RESCUE, message="no | time", outcome="pending"
    )
    assert (begun.attempts, begun.error_log) == (1, ())
    silent = release(claim(Task("a"))).intent
    assert silent is not None
    assert silent.message is None


def test_a_commit_says_what_moves_where_from_and_where_to() -> None:
    task = claim(Task("a"))

    assert commit(task).intent == Intent("commit", STAMP, base=BASE, head=HEAD, commit=COMMIT)
    batch = arrows.begin_commit(task, now=NOW, head=None, commit=COMMIT, ref="refs/heads/main", base=HEAD)
    assert batch.intent == Intent("commit", STAMP, base=HEAD, commit=COMMIT, ref="refs/heads/main")


def test_what_is_completed_has_not_failed() -> None:
    assert arrows.complete(commit(claim(Task("a"))._replace(failed_at="x")), now=NOW).failed_at is None


def test_why_a_task_is_halted_stays_until_somebody_lifts_it() -> None:
    halted = arrows.halt(roll_back(claim(Task("a"))), Halt("CONFIG", "CONFIG: no check"))

    assert arrows.fail(halted, now=NOW).halt == "CONFIG: no check"


def test_the_checkpoints_of_work_that_is_handed_back_are_gone_with_its_claim() -> None:
    cut_off = arrows.interrupt(claim(Task("a")), Interruption("7" * 40, checkpoints=3, times=2))
    handed = CALLS["hand_back"](roll_back(cut_off, None, ending=Ending.REQUEUED))
    blamed = CALLS["hand_back"](roll_back(cut_off))

    assert arrows.fail(handed, now=NOW).interrupted == Interruption("7" * 40, checkpoints=0, times=2)
    assert arrows.fail(blamed, now=NOW).interrupted is None


def test_a_completed_task_that_is_wanted_again_is_as_good_as_new() -> None:
    done = arrows.complete(commit(claim(Task("a"))), now=NOW)

    assert arrows.reset(done) == Task(
        "a", started_at_commit=BASE, fence=1, attempted_by=("w1",), attempt_log=done.attempt_log
    )


def test_work_that_is_handed_back_stays_known_until_it_is_merged_or_blamed() -> None:
    handed = CALLS["hand_back"](roll_back(claim(Task("a")), None, ending=Ending.REQUEUED))
    pending = arrows.fail(handed, now=NOW)
    blamed = arrows.fail(CALLS["hand_back"](roll_back(claim(pending))), now=NOW)
    merged = arrows.complete(commit(claim(pending)), now=NOW)

    assert pending.status == "pending"
    assert pending.handback == claim(pending).handback == Handback("it conflicts", 1, RESCUE, BASE)
    assert (blamed.handback, merged.handback, arrows.reset(pending).handback) == (None, None, None)


def test_interruptions_are_known_until_the_attempt_ends_or_is_handed_back_for_good() -> None:
    cut_off = CALLS["interrupt"](claim(Task("a")))
    handed = CALLS["hand_back"](roll_back(cut_off, None, ending=Ending.REQUEUED))
    pending = arrows.fail(handed, now=NOW)
    again = claim(pending)
    ended = (
        arrows.complete(commit(cut_off), now=NOW),
        arrows.fail(roll_back(cut_off), now=NOW),
        claim(arrows.fail(release(cut_off), now=NOW)),
        arrows.reset(pending),
    )

    assert (cut_off.interruptions, cut_off.attempts) == (1, 0)
    assert (again.interruptions, again.interrupted) == (1, Interruption("7" * 40))
    assert [(task.interruptions, task.interrupted) for task in ended] == [(0, None)] * 4


def test_a_completed_task_remembers_its_commit_and_nobody_holds_it() -> None:
    after = arrows.complete(commit(claim(Task("a"))), now=NOW)

    assert after == Task(
        "a",
        status="completed",
        completed_at=STAMP,
        completed_commit=COMMIT,
        started_at_commit=BASE,
        fence=1,
        attempted_by=("w1",),
        attempt_log=(Attempt(1, 1, "completed", STAMP, STAMP),),
    )


def test_a_commit_that_was_not_made_leaves_the_task_as_it_was() -> None:
    task = claim(Task("a"))

    assert arrows.drop_intent(commit(task)) == task


def test_a_failed_attempt_is_counted_once_and_before_git_moves() -> None:
    begun = roll_back(claim(Task("a")))

    assert begun.attempts == 1
    assert begun.error_log == ("[TEST_FAIL] 2 failed | 1 passed",)
    assert begun.intent == Intent(
        "rollback",
        STAMP,
        base=BASE,
        head=HEAD,
        rescue=RESCUE,
        category="TEST_FAIL",
        message="2 failed | 1 passed",
    )

    after = arrows.fail(begun, now=NOW)
    assert after == Task(
        "a",
        status="failed",
        attempts=1,
        error_log=begun.error_log,
        failed_at=STAMP,
        started_at_commit=BASE,
        fence=1,
        attempted_by=("w1",),
        attempt_log=(Attempt(1, 1, "failed", STAMP, STAMP),),
    )


@pytest.mark.parametrize(("attempts", "after"), [(0, 3), (2, 3), (3, 4)])
def test_a_permanent_failure_uses_up_all_attempts(attempts: int, after: int) -> None:
    begun = roll_back(claim(Task("a", attempts=attempts)), ending=Ending.FAILED_FOR_GOOD)

    assert begun.attempts == after
    assert is_permanent(arrows.fail(begun, now=NOW))


def test_a_dependency_failure_counts_no_attempt_and_is_permanent_all_the_same() -> None:
    after = arrows.fail(roll_back(claim(Task("a")), "DEPENDENCY", ending=Ending.EXCUSED), now=NOW)

    assert after.attempts == 0
    assert is_permanent(after)


def test_a_claim_handed_back_leaves_no_trace_but_base_fence_and_worker() -> None:
    after = arrows.fail(release(claim(Task("a", attempts=1, error_log=("[TEST_FAIL] x",)))), now=NOW)

    assert after == Task(
        "a", attempts=1, error_log=("[TEST_FAIL] x",), started_at_commit=BASE, fence=1, attempted_by=("w1",)
    )


def test_a_failure_without_a_category_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="BUG: a fails without a category"):
        roll_back(claim(Task("a")), None)


def test_a_reset_keeps_what_the_next_attempt_can_learn_from() -> None:
    old = Task(
        "a",
        status="failed",
        attempts=3,
        error_log=("[TEST_FAIL] x", BLOCKED),
        fence=7,
        failed_at=STAMP,
        halt="x",
        checkpoints=(Checkpoint(1, 2),),
        started_at_commit=BASE,
    )

    assert arrows.reset(old) == Task("a", error_log=("[TEST_FAIL] x",), fence=7, started_at_commit=BASE)


def test_a_halt_can_be_lifted() -> None:
    assert arrows.halt(arrows.halt(Task("a"), Halt("CONFIG", "CONFIG")), None) == Task("a")

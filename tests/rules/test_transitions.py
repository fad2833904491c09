"""What each arrow makes of a task, and which there are: a claim, the end of an attempt, what is kept."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lib.rules import arrows, transitions
from harness_lib.rules.attempts import Ending, Halt, cost, without_base
from harness_lib.rules.selection import is_permanent
from harness_lib.task import STATUSES, Attempt, Checkpoint, Handback, Intent, Interruption, Task
from tests.rules.arrow_calls import (
    BASE,
    CALLS,
    COMMIT,
    GATE,
    HEAD,
    RESCUE,
    claim,
    commit,
    release,
    resume,
    roll_back,
)
from tests.rules.lists import BLOCKED, NOW, STAMP

LEASE_END = "2025-07-01T10:01:00Z"
CLAIMED = Task(
    "a",
    status="in_progress",
    fence=1,
    attempted_by=("w1",),
    claimed_by="w1",
    claimed_at=STAMP,
    lease_expires_at=LEASE_END,
    worktree="/wt",
    started_at_commit=BASE,
    gate=GATE,
)
# What a task keeps of its attempt when nobody holds it any more.
ENDED = Task("a", fence=1, attempted_by=("w1",), started_at_commit=BASE)
HANDED = Handback("it conflicts", 1, RESCUE, BASE)


def test_what_comes_after_a_rollback_that_was_killed_is_still_the_users_to_decide() -> None:
    waits = transitions.halt(roll_back(CLAIMED), Halt("MERGE", "MERGE: it waits for others"))

    assert resume(waits).halt_kind == "MERGE"
    assert resume(transitions.halt(CLAIMED, Halt("MERGE", "MERGE: it waits for others"))).halt is None


def test_a_claim_begins_a_fresh_attempt_and_keeps_what_was_used_up_and_learned() -> None:
    learned: dict[str, Any] = {
        "attempts": 1,
        "error_log": ("[TEST_FAIL] x",),
        "attempted_by": ("w0", "w1", "w2"),
        "fence": 4,
    }
    old = Task(
        "a",
        status="failed",
        checkpoints=(Checkpoint(1, 2),),
        failed_at=STAMP,
        started_at_commit="0" * 40,
        # What the legacy protocol let stand, or the user lifted by hand.
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

    assert claim(Task("a")) == CLAIMED
    assert claim(old) == CLAIMED
    later = claim(old._replace(**learned))
    assert later == CLAIMED._replace(**{**learned, "fence": 5, "attempted_by": ("w0", "w2", "w1")})


def test_whoever_takes_over_gets_the_attempt_as_it_is_and_shuts_out_its_predecessor() -> None:
    before = roll_back(CLAIMED)._replace(claimed_at="x", lease_expires_at="x")

    taken = before._replace(
        claimed_by="w2",
        claimed_at=STAMP,
        lease_expires_at=None,
        worktree="/wt2",
        fence=2,
        attempted_by=("w1", "w2"),
    )
    assert resume(before) == taken
    leased = transitions.resume(before, worker="w2", now=NOW, worktree="/wt2", lease_seconds=60)
    assert leased == taken._replace(lease_expires_at=LEASE_END)


def test_an_exclusive_claim_has_no_lease_and_a_beat_gives_it_none() -> None:
    task = claim(Task("a"), lease_seconds=None)

    assert task.lease_expires_at is None
    assert transitions.renew(task, NOW, 60) is task


def test_a_checkpoint_is_appended_and_renews_the_lease() -> None:
    points = (Checkpoint(1, 4), Checkpoint(2, 4, "half"))
    task = CLAIMED._replace(checkpoints=points[:1], lease_expires_at=STAMP)

    after = transitions.checkpoint(task, points[1], now=NOW, lease_seconds=60)

    assert after == CLAIMED._replace(checkpoints=points)


def test_the_last_workers_that_have_claimed_a_task_are_remembered() -> None:
    task = Task("a", attempted_by=tuple(f"w{n}" for n in range(9)))

    assert len(claim(task).attempted_by) == transitions.REMEMBERED


def test_what_is_unproven_is_confirmed_or_doubted_by_its_check() -> None:
    """It keeps nothing of how it ended before, nor of a claim, but all that it had used up and learned."""
    said = Task(
        "a",
        status="completed",
        completed_commit=HEAD,
        attempts=1,
        proof="y",
        failed_at=STAMP,
        claimed_by="w",
        unproven=True,
        handback=HANDED,
    )

    doubted = Task("a", attempts=1, proof="y", handback=HANDED)
    confirmed = doubted._replace(status="completed", completed_commit=COMMIT, handback=None)
    for at, completed_at in (("x", "x"), (None, STAMP)):
        task = said._replace(completed_at=at)
        after = transitions.confirm(task, now=NOW, commit=COMMIT)
        assert after == confirmed._replace(completed_at=completed_at)
        assert transitions.doubt(task) == doubted


def test_a_merge_and_a_commit_say_what_moves_where_from_and_where_to() -> None:
    merge = Intent("merge", STAMP, base=BASE, commit=COMMIT)
    assert CALLS["begin_merge"](CLAIMED) == CLAIMED._replace(intent=merge)
    onto = transitions.begin_merge(CLAIMED, now=NOW, commit=COMMIT, base=HEAD)
    assert onto.intent == merge._replace(base=HEAD)
    handed = CALLS["hand_over"](onto)
    assert handed == onto._replace(claimed_by="w1#0", worktree=None)

    alone = Intent("commit", STAMP, base=BASE, head=HEAD, commit=COMMIT)
    assert commit(CLAIMED) == CLAIMED._replace(intent=alone)
    assert transitions.drop_intent(commit(CLAIMED)) == transitions.uncommitted(commit(CLAIMED)) == CLAIMED
    back = CALLS["begin_rollback"](CLAIMED)
    assert transitions.uncommitted(back) is back
    batch = transitions.begin_commit(
        CLAIMED, now=NOW, head=None, commit=COMMIT, ref="refs/heads/main", base=HEAD
    )
    assert batch.intent == Intent("commit", STAMP, base=HEAD, commit=COMMIT, ref="refs/heads/main")


def test_a_completed_task_remembers_its_commit_and_nobody_holds_it() -> None:
    after = transitions.complete(commit(CLAIMED._replace(failed_at="x")), now=NOW, look_at=("x",))

    assert after == ENDED._replace(
        status="completed",
        completed_at=STAMP,
        completed_commit=COMMIT,
        look_at=("x",),
        attempt_log=(Attempt(1, 1, "completed", STAMP, STAMP),),
    )
    # If it is wanted again, it is as good as new.
    assert transitions.reset(after) == ENDED._replace(attempt_log=after.attempt_log)


def test_a_failed_attempt_is_counted_once_and_before_git_moves() -> None:
    begun = roll_back(CLAIMED)

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
    assert transitions.fail(begun, now=NOW) == ENDED._replace(
        status="failed",
        attempts=1,
        error_log=begun.error_log,
        failed_at=STAMP,
        attempt_log=(Attempt(1, 1, "failed", STAMP, STAMP),),
    )


def test_a_claim_handed_back_says_why_and_leaves_no_trace_but_base_fence_and_worker() -> None:
    used: dict[str, Any] = {"attempts": 1, "error_log": ("[TEST_FAIL] x",)}
    begun = transitions.release(CLAIMED._replace(**used), now=NOW, message="no\ntime")

    silent = Intent("rollback", STAMP, base=BASE, outcome="pending")
    assert begun == CLAIMED._replace(**used, intent=silent._replace(message="no | time"))
    assert release(CLAIMED).intent == silent
    assert transitions.fail(begun, now=NOW) == ENDED._replace(**used)


def test_only_work_that_others_have_merged_keeps_what_is_to_be_looked_at() -> None:
    begun = roll_back(CLAIMED)._replace(look_at=("x",))

    assert transitions.fail(begun, now=NOW).look_at == ()
    assert transitions.fail(begun._replace(halt="waits", halt_kind="MERGE"), now=NOW).look_at == ("x",)


def test_what_each_ending_means() -> None:
    """Beside what it costs and makes of the task: how an attempt ends then whose base is gone."""
    assert {ending.name: (*cost(ending), without_base(ending).name) for ending in Ending} == {
        "FAILED": (True, False, "failed", "FAILED_FOR_GOOD"),
        "FAILED_FOR_GOOD": (True, True, "failed", "FAILED_FOR_GOOD"),
        "EXCUSED": (False, False, "failed", "FAILED_FOR_GOOD"),
        "RELEASED": (False, False, "pending", "RELEASED"),
        "REQUEUED": (False, False, "pending", "REQUEUED"),
    }


@pytest.mark.parametrize(("attempts", "after"), [(0, 3), (2, 3), (3, 4)])
def test_a_permanent_failure_uses_up_all_attempts(attempts: int, after: int) -> None:
    begun = roll_back(CLAIMED._replace(attempts=attempts), ending=Ending.FAILED_FOR_GOOD)

    assert begun.attempts == after
    assert is_permanent(transitions.fail(begun, now=NOW))


def test_a_dependency_failure_counts_no_attempt_and_is_permanent_all_the_same() -> None:
    after = transitions.fail(roll_back(CLAIMED, "DEPENDENCY", ending=Ending.EXCUSED), now=NOW)

    assert after.attempts == 0
    assert is_permanent(after)


def test_a_failure_without_a_category_is_a_bug() -> None:
    with pytest.raises(AssertionError, match=r"^BUG: a fails without a category\.$"):
        roll_back(CLAIMED, None)


def test_work_that_is_handed_back_stays_known_until_it_is_merged_or_blamed() -> None:
    pending = transitions.fail(CALLS["hand_back"](roll_back(CLAIMED, None, ending=Ending.REQUEUED)), now=NOW)
    blamed = transitions.fail(CALLS["hand_back"](roll_back(claim(pending))), now=NOW)
    merged = transitions.complete(commit(claim(pending)), now=NOW)

    assert pending.status == "pending"
    assert pending.handback == claim(pending).handback == HANDED
    assert (blamed.handback, merged.handback, transitions.reset(pending).handback) == (None, None, None)


def test_interruptions_are_known_until_the_attempt_ends_or_is_handed_back_for_good() -> None:
    """The checkpoints of work that is handed back are gone with its claim."""
    cut_off = transitions.interrupt(CLAIMED, Interruption("7" * 40, checkpoints=3, times=2))
    handed = CALLS["hand_back"](roll_back(cut_off, None, ending=Ending.REQUEUED))
    pending = transitions.fail(handed, now=NOW)
    again = claim(pending)
    ended = (
        transitions.complete(commit(cut_off), now=NOW),
        transitions.fail(roll_back(cut_off), now=NOW),
        transitions.fail(CALLS["hand_back"](roll_back(cut_off)), now=NOW),
        claim(transitions.fail(release(cut_off), now=NOW)),
        transitions.reset(pending),
    )

    assert (cut_off.interruptions, cut_off.attempts) == (1, 0)
    kept = (1, Interruption("7" * 40, checkpoints=0, times=2))
    assert [(task.interruptions, task.interrupted) for task in (pending, again)] == [kept] * 2
    assert [(task.interruptions, task.interrupted) for task in ended] == [(0, None)] * 5


def test_a_reset_keeps_what_the_next_attempt_can_learn_from() -> None:
    old = ENDED._replace(
        status="failed",
        attempts=3,
        error_log=("[TEST_FAIL] x", BLOCKED),
        failed_at=STAMP,
        halt="x",
        checkpoints=(Checkpoint(1, 2),),
        accepted=("x",),
    )

    assert transitions.reset(old) == ENDED._replace(error_log=("[TEST_FAIL] x",))


def test_why_a_task_is_halted_stays_until_somebody_lifts_it() -> None:
    halted = transitions.halt(roll_back(CLAIMED), Halt("SECRET", "a key", (".env",)))

    after = transitions.fail(halted, now=NOW)

    assert (after.halt, after.halt_kind, after.halt_about) == ("a key", "SECRET", (".env",))
    assert transitions.halt(transitions.halt(Task("a"), Halt("CONFIG", "no check")), None) == Task("a")


# -- which arrow may be taken from where: the table allows it, or it is a bug that is told


INTENTS = (
    None,
    Intent("commit", STAMP, commit=COMMIT),
    Intent("rollback", STAMP),
    Intent("merge", STAMP, commit=COMMIT),
)
TASKS = [
    Task("a", status=status, intent=intent, unproven=unproven)
    for status in STATUSES
    for intent in INTENTS
    for unproven in (False, True)
]


def test_every_arrow_of_the_table_is_tried_here() -> None:
    assert set(CALLS) == set(arrows.ARROWS)


@pytest.mark.parametrize("name", CALLS)
def test_an_arrow_is_either_in_the_table_or_a_bug(name: arrows.ArrowName) -> None:
    """And the kind of a halt comes and goes with its words, whatever is done to the task."""
    for task in TASKS:
        if arrows.may(name, task):
            assert CALLS[name](task).status in arrows.ARROWS[name].end
            for before in (task, task._replace(halt="x", halt_kind="REFUSED", halt_about=("y",))):
                after = CALLS[name](before)
                assert (after.halt is None) == (after.halt_kind is None)
                assert after.halt or not after.halt_about
        else:
            doing = task.intent.action if task.intent and task.status == "in_progress" else None
            told = f"{task.status}, {doing} under way" if doing else task.status
            with pytest.raises(AssertionError) as caught:
                CALLS[name](task)
            assert str(caught.value) == f"BUG: no arrow {name} for task a, which is {told}."


def test_an_arrow_leads_on_from_its_statuses_with_its_intents_only() -> None:
    for name, arrow in arrows.ARROWS.items():
        for task in TASKS:
            under_way = task.intent.action if task.intent and task.status == "in_progress" else None
            only = {"confirm": True, "doubt": True, "recheck": False}.get(name, task.unproven)
            fits = task.status in arrow.start and under_way in arrow.underway
            assert arrows.may(name, task) is (fits and task.unproven == only)


def test_a_completed_task_moves_only_when_the_user_wants_it_again() -> None:
    allowed = [name for name in arrows.ARROWS if arrows.may(name, Task("a", status="completed"))]
    assert [name for name in allowed if arrows.ARROWS[name].end != ("completed",)] == ["reset"]

"""How a task changes: each arrow, what it refuses, and any walk along them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from harness_lib.rules import transitions as arrows
from harness_lib.rules.endings import Ending
from harness_lib.rules.failures import is_permanent
from harness_lib.rules.halting import Halt
from harness_lib.task import (
    STATUSES,
    Attempt,
    Category,
    Checkpoint,
    Gate,
    Handback,
    Intent,
    Interruption,
    Status,
    Task,
)
from tests.rules.lists import BLOCKED, NOW, STAMP

BASE, HEAD, COMMIT = "b" * 40, "e" * 40, "c" * 40
GATE = Gate("sha256:x")
RESCUE = "refs/harness/rescue/a/1"


def claim(task: Task, worker: str = "w1", lease_seconds: int | None = 60) -> Task:
    return arrows.claim(
        task, worker=worker, now=NOW, base=BASE, gate=GATE, worktree="/wt", lease_seconds=lease_seconds
    )


def resume(task: Task, worker: str = "w2") -> Task:
    return arrows.resume(task, worker=worker, now=NOW, worktree="/wt2", lease_seconds=None)


def commit(task: Task) -> Task:
    return arrows.begin_commit(task, now=NOW, head=HEAD, commit=COMMIT)


def roll_back(
    task: Task,
    category: Category | None = "TEST_FAIL",
    *,
    ending: Ending = Ending.FAILED,
) -> Task:
    return arrows.begin_rollback(
        task,
        now=NOW,
        category=category,
        message="2 failed\n1 passed",
        rescue=RESCUE,
        head=HEAD,
        ending=ending,
    )


def release(task: Task) -> Task:
    return arrows.release(task, now=NOW, message=None, rescue=RESCUE, head=HEAD)


CALLS: dict[arrows.ArrowName, Callable[[Task], Task]] = {
    "claim": claim,
    "resume": resume,
    "checkpoint": lambda task: arrows.checkpoint(task, Checkpoint(1, 2), now=NOW, lease_seconds=60),
    "renew": lambda task: arrows.renew(task, NOW, 60),
    "begin_commit": commit,
    "complete": lambda task: arrows.complete(task, now=NOW),
    "begin_rollback": roll_back,
    "fail": lambda task: arrows.fail(task, now=NOW),
    "drop_intent": arrows.drop_intent,
    "reset": arrows.reset,
    "halt": lambda task: arrows.halt(task, Halt("CONFIG", "CONFIG")),
    "doom": lambda task: arrows.doom(task, now=NOW, message="Blocked by failed b"),
    "begin_merge": lambda task: arrows.begin_merge(task, now=NOW, commit=COMMIT),
    "confirm": lambda task: arrows.confirm(task, now=NOW, commit=COMMIT),
    "doubt": arrows.doubt,
    "hand_back": lambda task: arrows.hand_back(task, Handback("it conflicts", 1, RESCUE, BASE)),
    "interrupt": lambda task: arrows.interrupt(task, Interruption("7" * 40)),
}
INTENTS = (
    None,
    Intent("commit", STAMP, commit=COMMIT),
    Intent("rollback", STAMP),
    Intent("merge", STAMP, commit=COMMIT),
)


def test_every_arrow_of_the_table_is_tried_here() -> None:
    assert set(CALLS) == set(arrows.ARROWS)


@pytest.mark.parametrize("intent", INTENTS, ids=lambda intent: intent.action if intent else "idle")
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("unproven", [False, True])
def test_an_arrow_is_either_in_the_table_or_a_bug(
    name: arrows.ArrowName, status: Status, intent: Intent | None, *, unproven: bool
) -> None:
    task = Task("a", status=status, intent=intent, unproven=unproven)

    if arrows.may(name, task):
        assert CALLS[name](task).status in arrows.ARROWS[name].end
    else:
        with pytest.raises(AssertionError, match=rf"BUG: no arrow {name} .* is {status}"):
            CALLS[name](task)


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (Task("a", status="failed", intent=Intent("merge", STAMP)), "which is failed."),
        (
            Task("a", status="in_progress", intent=Intent("merge", STAMP)),
            "which is in_progress, merge under way.",
        ),
    ],
)
def test_a_bug_is_told_with_what_is_under_way(task: Task, told: str) -> None:
    with pytest.raises(AssertionError) as caught:
        arrows.doubt(task)

    assert str(caught.value) == f"BUG: no arrow doubt for task a, {told}"


def test_a_completed_task_moves_only_when_a_person_wants_it_again() -> None:
    assert [name for name in arrows.ARROWS if arrows.may(name, Task("a", status="completed"))] == ["reset"]


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
        halt=None,
    )


def test_a_commit_says_what_moves_where_from_and_where_to() -> None:
    task = claim(Task("a"))

    assert commit(task).intent == Intent("commit", STAMP, base=BASE, head=HEAD, commit=COMMIT)
    batch = arrows.begin_commit(task, now=NOW, head=None, commit=COMMIT, ref="refs/heads/main", base=HEAD)
    assert batch.intent == Intent("commit", STAMP, base=HEAD, commit=COMMIT, ref="refs/heads/main")


def test_what_is_completed_has_not_failed() -> None:
    assert arrows.complete(commit(claim(Task("a"))._replace(failed_at="x")), now=NOW).failed_at is None


@pytest.mark.parametrize("name", CALLS)
def test_the_kind_of_a_halt_comes_and_goes_with_its_words(name: arrows.ArrowName) -> None:
    for status, intent, unproven in itertools.product(STATUSES, INTENTS, (False, True)):
        task = Task("a", status=status, intent=intent, unproven=unproven)
        for before in (task, task._replace(halt="x", halt_kind="REFUSED")):
            if arrows.may(name, before):
                after = CALLS[name](before)
                assert (after.halt is None) == (after.halt_kind is None)

    halted = arrows.halt(Task("a"), Halt("REFUSED", "it would lose work"))
    assert (halted.halt, halted.halt_kind) == ("it would lose work", "REFUSED")


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


class Walk(RuleBasedStateMachine):
    """Any walk of one task along the arrows, by workers that come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.task = Task("a", max_attempts=2)
        self.fence = 0
        self.begun = 0
        self.errors = 0

    def may(self, name: arrows.ArrowName) -> bool:
        return arrows.may(name, self.task)

    @precondition(lambda self: self.may("claim") and not is_permanent(self.task))
    @rule(worker=st.sampled_from(("w1", "w2")))
    def claims(self, worker: str) -> None:
        self.task = claim(self.task, worker)
        self.fence += 1

    @precondition(lambda self: self.may("resume"))
    @rule(worker=st.sampled_from(("w1", "w2")))
    def resumes(self, worker: str) -> None:
        self.task = resume(self.task, worker)
        self.fence += 1

    @precondition(lambda self: self.may("begin_rollback"))
    @rule(ending=st.sampled_from([each for each in Ending if each is not Ending.FAILED_FOR_GOOD]))
    def rolls_back(self, ending: Ending) -> None:
        self.task = roll_back(self.task, ending=ending)
        self.begun += ending is Ending.FAILED
        self.errors += ending in {Ending.FAILED, Ending.EXCUSED}

    @rule(
        name=st.sampled_from(
            (
                "checkpoint",
                "renew",
                "begin_merge",
                "begin_commit",
                "complete",
                "hand_back",
                "fail",
                "drop_intent",
                "halt",
            )
        )
    )
    def goes_on(self, name: arrows.ArrowName) -> None:
        if self.may(name):
            self.task = CALLS[name](self.task)

    @precondition(lambda self: self.may("reset"))
    @rule()
    def resets(self) -> None:
        self.task = arrows.reset(self.task)
        self.begun = 0

    @invariant()
    def nobody_is_blamed_twice_or_too_often(self) -> None:
        assert self.task.attempts == self.begun <= self.task.max_attempts
        assert len(self.task.error_log) == self.errors

    @invariant()
    def the_fence_grows_with_every_claim_and_never_shrinks(self) -> None:
        assert self.task.fence == self.fence

    @invariant()
    def a_claim_belongs_to_somebody_exactly_while_in_progress(self) -> None:
        working = self.task.status == "in_progress"
        assert (self.task.claimed_by is not None) == working
        assert (self.task.gate is not None) == working
        assert working or self.task.intent is None
        assert working or self.task.lease_expires_at is None

    @invariant()
    def the_time_of_the_end_stands_exactly_when_it_has_ended(self) -> None:
        assert (self.task.completed_at is not None) == (self.task.status == "completed")
        assert (self.task.failed_at is not None) == (self.task.status == "failed")


TestWalk = Walk.TestCase

"""Any walk of one task along the arrows: counts, fence, claim and times always agree."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from harness_lib.rules import arrows, transitions
from harness_lib.rules.attempts import Ending
from harness_lib.rules.selection import is_permanent
from harness_lib.task import Task
from tests.rules.arrow_calls import CALLS, claim, resume, roll_back


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
                "hand_over",
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
        self.task = transitions.reset(self.task)
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

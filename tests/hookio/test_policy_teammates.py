"""What a hook decides for idle teammates: who owns a task or could take one is kept at work."""

from __future__ import annotations

import pytest

from harness_lib.hookio import messages, policy
from harness_lib.hookio.situation import Answer, Situation, Tally
from harness_lib.task import Task
from tests.hookio.situations import (
    BUSY,
    HALTED,
    PENDING,
    THEIRS,
    TORN,
    allowed,
    make_situation,
    payload,
    said,
)

IDLE: dict[str, tuple[Situation, str]] = {
    "it owns a task": (make_situation(Task("a", status="in_progress", claimed_by="worker1")), "keep"),
    "its task is halted": (
        make_situation(Task("a", status="in_progress", claimed_by="worker1", halt="CONFIG")),
        "allow",
    ),
    "nobody owns the task": (make_situation(Task("a", status="in_progress")), "allow"),
    "work waits for all": (make_situation(PENDING, mode="concurrent", mine=False), "keep"),
    "work waits in a list of the prose": (make_situation(PENDING, sessions=None), "keep"),
    "work waits for the one session": (make_situation(PENDING, mine=False), "allow"),
    "nothing waits": (make_situation(THEIRS, mode="concurrent", mine=False), "allow"),
    "unreadable": (TORN, "allow"),
}


@pytest.mark.parametrize("row", IDLE, ids=lambda row: row.replace(" ", "-"))
def test_teammate_idle(row: str) -> None:
    situation, kind = IDLE[row]

    assert policy.teammate_idle(situation, payload("TeammateIdle", teammate_name="worker1")).kind == kind


def test_idle_teammates_have_the_same_patience() -> None:
    situation = make_situation(PENDING, mode="concurrent", tally=Tally("waiting a", 8))

    answer = policy.teammate_idle(situation, payload("TeammateIdle", teammate_name="worker1"))

    assert (answer.kind, bool(answer.warning)) == ("allow", True)


def test_an_idle_teammate_is_told_of_its_task_or_of_what_waits() -> None:
    def idle(situation: Situation) -> Answer:
        return policy.teammate_idle(situation, payload("TeammateIdle", teammate_name="mate"))

    own = make_situation(BUSY._replace(claimed_by="mate"), PENDING, mode="concurrent")
    waits = make_situation(PENDING, mode="concurrent")
    doubted = make_situation(Task("u", status="completed", unproven=True), PENDING, mode="concurrent")
    halted = make_situation(PENDING, sessions=(HALTED,), mode="concurrent")
    assert own.digest is not None

    reason = messages.stop(own, own.digest["in_progress"])
    assert said(idle(own)) == ("keep", reason, "", "teammate a/2/1", False, False)
    assert said(idle(waits)) == ("keep", messages.stop(waits, ()), "", "waiting a", False, False)
    assert said(idle(doubted)) == ("keep", messages.stop(doubted, ()), "", "waiting u", False, False)
    assert said(idle(halted)) == allowed(messages.halted("CONFIG: no check", "HARNESS"))
    assert idle(make_situation(PENDING, mode="concurrent", trouble="torn")).kind == "allow"
    assert idle(make_situation(BUSY, PENDING, mode="concurrent", workers=["me"])).progress == "teammate a/2/1"

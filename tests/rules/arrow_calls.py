"""Each arrow with values that fit any task: how tests of the changes of a task call them."""

from __future__ import annotations

from collections.abc import Callable

from harness_lib.rules import arrows, transitions
from harness_lib.rules.attempts import Ending, Halt
from harness_lib.task import Category, Checkpoint, Gate, Handback, Interruption, Recheck, Task
from tests.rules.lists import NOW

BASE, HEAD, COMMIT = "b" * 40, "e" * 40, "c" * 40
GATE = Gate("sha256:x")
RESCUE = "refs/harness/rescue/a/1"


def claim(task: Task, worker: str = "w1", lease_seconds: int | None = 60) -> Task:
    return transitions.claim(
        task, worker=worker, now=NOW, base=BASE, gate=GATE, worktree="/wt", lease_seconds=lease_seconds
    )


def resume(task: Task, worker: str = "w2") -> Task:
    return transitions.resume(task, worker=worker, now=NOW, worktree="/wt2", lease_seconds=None)


def commit(task: Task) -> Task:
    return transitions.begin_commit(task, now=NOW, head=HEAD, commit=COMMIT)


def roll_back(
    task: Task,
    category: Category | None = "TEST_FAIL",
    *,
    ending: Ending = Ending.FAILED,
) -> Task:
    return transitions.begin_rollback(
        task,
        now=NOW,
        category=category,
        message="2 failed\n1 passed",
        rescue=RESCUE,
        head=HEAD,
        ending=ending,
    )


def release(task: Task) -> Task:
    return transitions.release(task, now=NOW, message=None)


CALLS: dict[arrows.ArrowName, Callable[[Task], Task]] = {
    "claim": claim,
    "resume": resume,
    "checkpoint": lambda task: transitions.checkpoint(task, Checkpoint(1, 2), now=NOW, lease_seconds=60),
    "renew": lambda task: transitions.renew(task, NOW, 60),
    "begin_commit": commit,
    "complete": lambda task: transitions.complete(task, now=NOW),
    "begin_rollback": roll_back,
    "fail": lambda task: transitions.fail(task, now=NOW),
    "drop_intent": transitions.drop_intent,
    "reset": transitions.reset,
    "halt": lambda task: transitions.halt(task, Halt("CONFIG", "CONFIG")),
    "doom": lambda task: transitions.doom(task, now=NOW, message="Blocked by failed b"),
    "begin_merge": lambda task: transitions.begin_merge(task, now=NOW, commit=COMMIT),
    "hand_over": lambda task: transitions.hand_over(task, worker="w1#0", now=NOW, lease_seconds=60),
    "confirm": lambda task: transitions.confirm(task, now=NOW, commit=COMMIT),
    "doubt": transitions.doubt,
    "attest": lambda task: transitions.attest(task, now=NOW, commit=None),
    "recheck": lambda task: transitions.recheck(task, Recheck(COMMIT, passed=True)),
    "hand_back": lambda task: transitions.hand_back(task, Handback("it conflicts", 1, RESCUE, BASE)),
    "interrupt": lambda task: transitions.interrupt(task, Interruption("7" * 40)),
}

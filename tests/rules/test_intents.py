"""What may stand in a list as under way: what we write of a batch does, what nobody writes does not."""

from __future__ import annotations

import pytest

from harness_lib.rules import recovery
from harness_lib.task import Gate, Intent, Task

BEGAN, ONTO, COMMIT = "1" * 40, "2" * 40, "3" * 40
MAIN = "refs/heads/main"
HERE, THERE = Gate(branch=MAIN), Gate(target=MAIN)
AT = "2026-01-01T00:00:00Z"


def _task(gate: Gate | None, intent: Intent | None) -> Task:
    return Task("t", status="in_progress", started_at_commit=BEGAN, gate=gate, intent=intent)


def _moving(gate: Gate, **fields: str | None) -> Task:
    return _task(gate, Intent("commit", AT, **{"commit": COMMIT, **fields}))  # type: ignore[arg-type]


def _rolling_back(gate: Gate | None = None, **fields: str | None) -> Task:
    return _task(gate, Intent("rollback", AT, head=ONTO, **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "task",
    [
        _task(None, None),
        _moving(HERE, base=BEGAN, head=ONTO),
        # Work that is moved with others names what it goes on top of and no head.
        _moving(THERE, base=ONTO, ref=MAIN),
        _moving(THERE, base=ONTO, ref=recovery.waiting(MAIN)),
        # In a list that machines share, a chat puts it on top of what others have proposed.
        _moving(HERE, base=ONTO, head=BEGAN)._replace(machine="one"),
        _rolling_back(base=BEGAN, rescue=f"{recovery.RESCUES}t/1"),
        # To what others have put on top, and in a list where the claim recorded no gate.
        _rolling_back(base="4" * 64),
        _rolling_back(Gate(branch=MAIN, target=MAIN), base=BEGAN),
    ],
)
def test_what_we_write_is_no_problem(task: Task) -> None:
    assert recovery.problem(task) is None


NO_PLACE = "intent does not say which commit goes where"
NO_BRANCH = "intent.ref is not the branch that the work is for"
NO_HEADS = "gate names a branch that is not below refs/heads/"


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        (_moving(THERE, base=ONTO, ref="refs/heads/other"), NO_BRANCH),
        (_moving(Gate(), base=BEGAN, head=ONTO, ref=MAIN), NO_BRANCH),
        (_rolling_back(base=BEGAN, ref=MAIN), NO_BRANCH),
        (_moving(THERE, base=BEGAN), NO_PLACE),
        (_moving(HERE, base=BEGAN), NO_PLACE),
        (_moving(HERE, base=BEGAN, head=ONTO, commit=None), NO_PLACE),
        (_moving(HERE, base=ONTO, head=BEGAN), "intent.base is not where the attempt began"),
        (_moving(HERE, base="main", head=ONTO), "intent.base is no full object id"),
        (_moving(HERE, base=BEGAN, head=f"{ONTO}\n"), "intent.head is no full object id"),
        (_moving(HERE, base=BEGAN, head=ONTO, commit="-x"), "intent.commit is no full object id"),
        (
            _rolling_back(base=BEGAN, rescue="refs/heads/main"),
            "intent.rescue is not below refs/harness/rescue/",
        ),
        (_moving(Gate(branch="main"), base=BEGAN, head=ONTO), NO_HEADS),
        (_rolling_back(Gate(target="-x"), base=BEGAN), NO_HEADS),
    ],
)
def test_what_no_write_of_ours_leaves_is_named(task: Task, problem: str) -> None:
    assert recovery.problem(task) == problem


def test_work_waits_on_a_branch_of_ours_that_is_named_after_its_target() -> None:
    assert recovery.waiting("refs/heads/main") == "refs/heads/harness/main"

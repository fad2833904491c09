"""What may stand in a list as under way: what we write of a batch does, what nobody writes does not."""

from __future__ import annotations

import pytest

from harness_lib.rules import intents
from harness_lib.task import Gate, Intent, Task

BEGAN, ONTO, COMMIT = "1" * 40, "2" * 40, "3" * 40
MAIN = "refs/heads/main"


def _task(gate: Gate, **intent: str | None) -> Task:
    moving = Intent("commit", "2026-01-01T00:00:00Z", **{"commit": COMMIT, **intent})  # type: ignore[arg-type]
    return Task("t", status="in_progress", started_at_commit=BEGAN, gate=gate, intent=moving)


def test_work_that_is_moved_with_others_names_what_it_goes_on_top_of_and_no_head() -> None:
    assert intents.problem(_task(Gate(target=MAIN), base=ONTO, ref=MAIN)) is None


def test_a_task_with_nothing_under_way_has_no_problem() -> None:
    assert intents.problem(Task("t", status="in_progress", started_at_commit=BEGAN)) is None


def _rolling_back(gate: Gate | None = None, **fields: str | None) -> Task:
    return Task(
        "t",
        status="in_progress",
        started_at_commit=BEGAN,
        gate=gate,
        intent=Intent("rollback", "2026-01-01T00:00:00Z", head=ONTO, **fields),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    "task",
    [
        _task(Gate(branch=MAIN), base=BEGAN, head=ONTO),
        _task(Gate(target=MAIN), base=ONTO, ref=intents.waiting(MAIN)),
        _rolling_back(base=BEGAN, rescue=f"{intents.RESCUES}t/1"),
        # To what others have put on top, and in a list where the claim recorded no gate.
        _rolling_back(base="4" * 64),
        _rolling_back(Gate(branch=MAIN, target=MAIN), base=BEGAN),
    ],
)
def test_what_we_write_is_no_problem(task: Task) -> None:
    assert intents.problem(task) is None


NO_PLACE = "intent does not say which commit goes where"
NO_BRANCH = "intent.ref is not the branch that the work is for"


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        (_task(Gate(target=MAIN), base=ONTO, ref="refs/heads/other"), NO_BRANCH),
        (_task(Gate(), base=BEGAN, head=ONTO, ref=MAIN), NO_BRANCH),
        (_rolling_back(base=BEGAN, ref=MAIN), NO_BRANCH),
        (_task(Gate(target=MAIN), base=BEGAN), NO_PLACE),
        (_task(Gate(branch=MAIN), base=BEGAN), NO_PLACE),
        (_task(Gate(branch=MAIN), base=BEGAN, head=ONTO, commit=None), NO_PLACE),
        (_task(Gate(branch=MAIN), base=ONTO, head=BEGAN), "intent.base is not where the attempt began"),
        (_task(Gate(branch=MAIN), base="main", head=ONTO), "intent.base is no full object id"),
        (_task(Gate(branch=MAIN), base=BEGAN, head=f"{ONTO}\n"), "intent.head is no full object id"),
        (_task(Gate(branch=MAIN), base=BEGAN, head=ONTO, commit="-x"), "intent.commit is no full object id"),
        (
            _rolling_back(base=BEGAN, rescue="refs/heads/main"),
            "intent.rescue is not below refs/harness/rescue/",
        ),
        (
            _task(Gate(branch="main"), base=BEGAN, head=ONTO),
            "gate names a branch that is not below refs/heads/",
        ),
        (_rolling_back(Gate(target="-x"), base=BEGAN), "gate names a branch that is not below refs/heads/"),
    ],
)
def test_what_no_write_of_ours_leaves_is_named(task: Task, problem: str) -> None:
    assert intents.problem(task) == problem


def test_work_waits_on_a_branch_of_ours_that_is_named_after_its_target() -> None:
    assert intents.waiting("refs/heads/main") == "refs/heads/harness/main"

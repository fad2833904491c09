"""What to do with an interrupted attempt: the protocol's matrix, and every combination of facts."""

from __future__ import annotations

from itertools import product

import pytest

from harness_lib.rules import recovery
from harness_lib.rules.attempts import Ending
from harness_lib.rules.recovery import Facts
from harness_lib.task import STATUSES, Checkpoint, Interruption, Task
from tests.rules.lists import NOW, ago

ANY = (False, True)
EVERY = [Facts(*combination) for combination in product(ANY, repeat=5)]


def _facts(letters: str, *, base_exists: bool = True) -> Facts:
    """Return the facts whose first letter stands in `letters`."""
    return Facts("u" in letters, "t" in letters, "c" in letters, "r" in letters, base_exists)


@pytest.mark.parametrize(
    ("letters", "action", "reason"),
    [
        pytest.param("", "fail", "No progress detected", id="nothing"),
        pytest.param("r", "fail", "No progress detected", id="nothing, and no checkpoint to reflect"),
        pytest.param("cr", "resume", "files reflect checkpoint progress", id="checkpoints that hold"),
        pytest.param(
            "c", "fail", "files do not reflect the checkpoints: work was lost", id="checkpoints, work lost"
        ),
        pytest.param("t", "validate", "task commits found", id="commits"),
        pytest.param("tc", "validate", "task commits found", id="commits and checkpoints"),
        pytest.param("u", "validate", "uncommitted changes found", id="changes"),
        pytest.param("uc", "validate", "uncommitted changes found", id="changes and checkpoints"),
        pytest.param("ut", "validate", "uncommitted changes and task commits found", id="both"),
    ],
)
def test_the_five_rows_of_the_seed(letters: str, action: str, reason: str) -> None:
    """Without its base a failed attempt is the last; it keeps none from going on."""
    plan = recovery.plan(_facts(letters))
    without = recovery.plan(_facts(letters, base_exists=False))

    assert (plan.action, plan.reason, plan.ending) == (action, reason, Ending.FAILED)
    assert plan.category == ("SESSION_TIMEOUT" if action == "fail" else None)
    lost = plan._replace(reason=f"{reason}; base commit is gone", ending=Ending.FAILED_FOR_GOOD)
    assert without == (lost if action == "fail" else plan)


def test_every_combination_of_facts_has_exactly_one_row_and_work_that_stands_is_validated() -> None:
    for facts in EVERY:
        assert sum(recovery._fits(row, facts) for row in recovery.TABLE) == 1
        plan = recovery.plan(facts)
        assert plan.words
        assert (plan.action == "validate") == (facts.uncommitted or facts.task_commits)


TREE, OTHER = "7" * 40, "8" * 40


def _stood(times: int, *, tree: str = TREE, checkpoints: int = 1) -> Task:
    """Return a task that was interrupted so often in a row with this tree and as many checkpoints."""
    points = (Checkpoint(1, 2),)
    return Task("a", checkpoints=points, interrupted=Interruption(tree, checkpoints, times))


@pytest.mark.parametrize(
    ("before", "times"),
    [
        pytest.param(Task("a", checkpoints=(Checkpoint(1, 2),)), 1, id="the first"),
        pytest.param(_stood(1), 2, id="where it stood before"),
        pytest.param(_stood(2), 3, id="where it stood twice before"),
        pytest.param(_stood(2, tree=OTHER), 1, id="the tree has changed"),
        pytest.param(_stood(2, checkpoints=0), 1, id="a checkpoint more"),
    ],
)
def test_only_interruptions_without_any_progress_are_counted_in_a_row(before: Task, times: int) -> None:
    after = recovery.interrupted(before, TREE)

    assert after == Interruption(TREE, 1, times)
    assert recovery.stands_still(after) == (times == 3)


MINE = "w1"


@pytest.mark.parametrize(
    ("concurrent", "claimed_by", "lease", "live", "recovers"),
    [
        pytest.param(False, "w2", None, False, True, id="exclusive: whosever it was"),
        pytest.param(False, None, None, False, True, id="exclusive: made by the legacy protocol"),
        pytest.param(False, MINE, None, True, False, id="exclusive: its owner lives"),
        pytest.param(False, "w2", ago(9), True, False, id="exclusive: age does not decide"),
        pytest.param(True, MINE, ago(-9), False, True, id="concurrent: my own"),
        pytest.param(True, MINE, ago(-9), True, False, id="concurrent: I am still at it"),
        pytest.param(True, "w2", ago(-9), False, False, id="concurrent: another's"),
        pytest.param(True, "w2", ago(9), False, True, id="concurrent: another's, lease ended"),
        pytest.param(True, "w2", ago(9), True, True, id="concurrent: hangs"),
        pytest.param(True, "w2", None, False, False, id="concurrent: another's without a lease"),
        pytest.param(True, None, None, False, False, id="concurrent: nobody's is not mine"),
    ],
)
def test_recoverable(
    concurrent: bool, claimed_by: str | None, lease: str | None, live: bool, recovers: bool
) -> None:
    """Only what is in progress is recovered."""
    for status in STATUSES:
        task = Task("a", status=status, claimed_by=claimed_by, lease_expires_at=lease)
        recoverable = recovery.recoverable(
            task, concurrent=concurrent, worker=MINE, now=NOW, live_owner_holds=live
        )
        assert recoverable is (recovers and status == "in_progress")

"""Which arrow may be taken from where: the table allows it, or it is a bug that is told."""

from __future__ import annotations

import pytest

from harness_lib.rules import transitions as arrows
from harness_lib.task import STATUSES, Intent, Task
from tests.rules.arrow_calls import CALLS, COMMIT
from tests.rules.lists import STAMP

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
            for before in (task, task._replace(halt="x", halt_kind="REFUSED")):
                after = CALLS[name](before)
                assert (after.halt is None) == (after.halt_kind is None)
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

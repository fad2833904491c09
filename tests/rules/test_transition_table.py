"""Which arrow may be taken from where: the table allows it, or it is a bug that is told."""

from __future__ import annotations

import itertools

import pytest

from harness_lib.rules import transitions as arrows
from harness_lib.rules.halting import Halt
from harness_lib.task import STATUSES, Intent, Status, Task
from tests.rules.arrow_calls import CALLS, COMMIT
from tests.rules.lists import STAMP

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
    ("task", "state"),
    [
        (Task("a", status="failed", intent=Intent("merge", STAMP)), "which is failed."),
        (
            Task("a", status="in_progress", intent=Intent("merge", STAMP)),
            "which is in_progress, merge under way.",
        ),
    ],
)
def test_a_bug_is_told_with_what_is_under_way(task: Task, state: str) -> None:
    with pytest.raises(AssertionError) as caught:
        arrows.doubt(task)

    assert str(caught.value) == f"BUG: no arrow doubt for task a, {state}"


def test_a_completed_task_moves_only_when_a_person_wants_it_again() -> None:
    allowed = [name for name in arrows.ARROWS if arrows.may(name, Task("a", status="completed"))]
    assert [name for name in allowed if arrows.ARROWS[name].end != ("completed",)] == ["reset"]


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

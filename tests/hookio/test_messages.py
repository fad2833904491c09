"""What agents and people are told, word for word: counts, what was cut off, and the next command to type."""

from __future__ import annotations

import pytest

from harness_lib.hookio import messages, policy
from harness_lib.hookio.situation import Situation
from harness_lib.task import Task
from tests.hookio.situations import (
    DATA,
    DONE,
    FAILED,
    MINE,
    PENDING,
    THEIRS,
    UNPROVEN,
    begun,
    by_the_prose,
    make_situation,
)

SWITCH = "A person can switch this off: HARNESS pause (or set HARNESS_DISABLED=1)."
WORKING = [Task(f"t{n}", status="in_progress", claimed_by=f"w{n}") for n in range(7)]


def rings(count: int) -> list[Task]:
    return [Task(f"d{n}", depends_on=(f"d{n}",)) for n in range(count)]


HELD: dict[str, tuple[Situation, str, str]] = {
    "it holds a task": (
        make_situation(MINE, Task("p"), FAILED, DONE),
        "1 of 4 tasks are completed, 1 in progress, 1 pending, 1 failed with attempts left.",
        'You hold a "Title". Do the work, then type: HARNESS finish',
    ),
    "a task waits": (
        make_situation(PENDING, DONE),
        "1 of 2 tasks are completed, 1 pending.",
        'Next is a "Title". Type: HARNESS claim',
    ),
    "the prose works": (
        by_the_prose(MINE, Task("p")),
        "0 of 2 tasks are completed, 1 in progress, 1 pending.",
        'In progress: a "Title".\nNext is p.\nGo on with: HARNESS start',
    ),
    "the prose works on many": (
        by_the_prose(*WORKING),
        "0 of 7 tasks are completed, 7 in progress.",
        "In progress: t0, t1, t2, t3, t4 and 2 more.\nGo on with: HARNESS start",
    ),
    "the prose has done all": (
        by_the_prose(DONE),
        "1 of 1 tasks are completed.",
        "Go on with: HARNESS start",
    ),
    "nothing proves what is said": (
        make_situation(UNPROVEN, Task("v", status="completed", unproven=True), PENDING),
        "0 of 3 tasks are completed, 3 pending.",
        (
            'Somebody has written that these are completed, which nothing proves: u "U", v. '
            "Have their checks run: HARNESS claim"
        ),
    ),
    "some can never run": (
        make_situation(*rings(5)),
        "0 of 5 tasks are completed, 5 pending.",
        (
            "d0, d1, d2, d3, d4 can never run: what they depend on failed for good, or waits for them in "
            "turn. Have that recorded: HARNESS claim"
        ),
    ),
    "many can never run": (
        make_situation(*rings(6)),
        "0 of 6 tasks are completed, 6 pending.",
        (
            "d0, d1, d2, d3, d4 and more can never run: what they depend on failed for good, or waits for "
            "them in turn. Have that recorded: HARNESS claim"
        ),
    ),
    "it shares the list under a name": (
        make_situation(PENDING, mode="concurrent"),
        "0 of 1 tasks are completed, 1 pending.",
        'Next is a "Title". Type: HARNESS claim',
    ),
    "it has no name and needs none": (
        make_situation(PENDING, workers=[]),
        "0 of 1 tasks are completed, 1 pending.",
        'Next is a "Title". Type: HARNESS claim',
    ),
    "nobody knows which worker it is": (
        make_situation(THEIRS, mode="concurrent", mine=False),
        "0 of 1 tasks are completed, 1 in progress.",
        (
            "See what can be done: HARNESS status\n"
            "The worker identity is missing: give each worker one of its own, HARNESS_WORKER_ID=NAME."
        ),
    ),
}


@pytest.mark.parametrize("row", HELD, ids=lambda row: row.replace(" ", "-"))
def test_whoever_is_held_reads_the_counts_the_next_command_and_the_switch(row: str) -> None:
    situation, counts, then = HELD[row]

    assert messages.stop(situation, policy.held(situation)) == f"harness: {counts}\n{then}\n{DATA}\n{SWITCH}"


def test_where_agents_share_a_list_each_is_told_to_bear_its_own_name() -> None:
    assert messages.subagent(make_situation(PENDING), "sub-1") == (
        "harness: many agents share the task list here. If you are asked to work on it, begin each of its "
        "commands with your own name: HARNESS_WORKER_ID=sub-1 HARNESS claim"
    )


def test_a_list_that_cannot_be_read_is_not_made_anew() -> None:
    torn = begun(Situation(None, trouble='tasks[0].status: "x"', program="HARNESS"))

    assert messages.repair(torn) == (
        "harness: error: the task list in /p cannot be read: \"tasks[0].status: 'x'\" "
        "See what is wrong, and what to do about it: HARNESS check. "
        "Tell the person; do not make a new list in its place."
    )
    assert messages.unreadable(torn) == (
        "the task list cannot be read, so the agent is not held: \"tasks[0].status: 'x'\""
    )
    torn.trouble = "x" * 1000
    assert "x" * 599 + '…"' in messages.repair(torn)
    assert "x" * 299 + '…"' in messages.unreadable(torn)


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (
            "max_sessions",
            (
                "all sessions that this list may have are used up. "
                "A person can allow more: HARNESS edit --max-sessions N"
            ),
        ),
        (
            "max_tasks_per_session",
            (
                "this session has done as many tasks as it may (max_tasks_per_session). "
                "The next one: HARNESS start"
            ),
        ),
        ("CONFIG: no check", 'halted until a person has acted: "CONFIG: no check" Afterwards: HARNESS start'),
        ("x" * 301, f'halted until a person has acted: "{"x" * 299}…" Afterwards: HARNESS start'),
    ],
)
def test_why_the_work_is_halted_is_said_with_what_to_type_then(reason: str, sentence: str) -> None:
    assert messages.halted(reason, "HARNESS") == sentence


def test_whoever_gets_nowhere_is_let_go_and_told_how_to_go_on() -> None:
    assert messages.released(8, "HARNESS") == (
        "the agent was held 8 times in a row and no task changed, so it is let go. Go on with: HARNESS start"
    )


def test_whoever_edits_the_list_by_hand_reads_what_to_type_instead() -> None:
    assert messages.deny("harness-tasks.json", "HARNESS") == (
        "harness-tasks.json is kept by harness and not edited by hand: a change would be lost or break the "
        "list. Type instead: HARNESS add, HARNESS edit ID, HARNESS retry ID or HARNESS remove ID "
        "(HARNESS --help)."
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", '"plain"'),
        ('a "b"\n\tc', "\"a 'b' c\""),
        ("12345678", '"12345678"'),
        ("123456789", '"1234567…"'),
        # What only blanks make long is whole.
        ("a" + " " * 30 + "b", '"a b"'),
        ("a" + " " * 31 + "b", '"a"'),
    ],
)
def test_a_text_of_the_list_is_one_short_line_in_quotes(text: str, line: str) -> None:
    assert messages.quoted(text, 8) == line


@pytest.mark.parametrize(
    ("task_id", "name"),
    [("task-001", "task-001"), ("a_b.c", "a_b.c"), ("a b", '"a b"'), ("$(x)", '"$(x)"'), ("-_.", '"-_."')],
)
def test_an_id_is_quoted_unless_it_is_a_plain_one(task_id: str, name: str) -> None:
    assert f"Next is {name}. Type" in messages.stop(make_situation(Task(task_id)), ())


def test_a_title_is_cut() -> None:
    assert f'Next is a "{"x" * 119}…". Type' in messages.stop(make_situation(Task("a", "x" * 121)), ())

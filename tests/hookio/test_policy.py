"""The table of docs/design.md, "The Stop hook", row by row: pure, without a list on disk."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lib.hookio import messages, policy
from harness_lib.hookio.situation import Situation, Tally
from harness_lib.task import Task
from tests.hookio.situations import (
    BUSY,
    DONE,
    HALTED,
    MINE,
    PENDING,
    SESSION,
    THEIRS,
    TORN,
    allowed,
    by_the_prose,
    make_situation,
    payload,
    said,
    stop,
)

STOP: dict[str, tuple[Situation, dict[str, object], str]] = {
    "no session is open": (make_situation(PENDING, sessions=()), {}, "allow"),
    "another agent's session is open": (make_situation(PENDING, mine=False), {}, "allow"),
    "my session is open": (make_situation(PENDING), {}, "block"),
    "the prose made the list": (make_situation(PENDING, sessions=None), {}, "block"),
    "the prose works on a task": (make_situation(THEIRS, sessions=None), {}, "block"),
    "a subagent runs": (
        make_situation(PENDING),
        {"background_tasks": [{"status": "completed"}, {"type": "subagent", "status": "running"}]},
        "allow",
    ),
    "a monitor runs": (
        make_situation(PENDING),
        {"background_tasks": [{"type": "monitor", "status": "running"}]},
        "allow",
    ),
    "a server runs": (
        make_situation(PENDING),
        {"background_tasks": [{"type": "shell", "status": "running"}]},
        "block",
    ),
    "what nobody knows runs": (
        make_situation(PENDING),
        {"background_tasks": [{"type": "dream", "status": "running"}]},
        "allow",
    ),
    "what nobody knows runs still": (
        make_situation(PENDING, tally=Tally(waited=True)),
        {"background_tasks": [{"type": "dream", "status": "running"}]},
        "block",
    ),
    "background work has ended": (
        make_situation(PENDING),
        {"background_tasks": [{"status": "completed"}]},
        "block",
    ),
    "a subagent of Copilot stops": (make_situation(PENDING), {"parent_agent_id": "p"}, "allow"),
    "my session is halted": (make_situation(PENDING, sessions=(HALTED,)), {}, "allow"),
    "my task is halted": (
        make_situation(Task("a", status="in_progress", claimed_by="me", halt="CONFIG"), PENDING),
        {},
        "allow",
    ),
    "what is left is halted": (make_situation(Task("a", halt="CONFIG: x")), {}, "allow"),
    "another task is halted": (make_situation(Task("c", halt="CONFIG: x"), PENDING), {}, "block"),
    "I hold a task": (make_situation(MINE), {}, "block"),
    "others hold the rest": (make_situation(THEIRS, mode="concurrent"), {}, "allow"),
    "others hold one, another waits": (make_situation(THEIRS, PENDING, mode="concurrent"), {}, "block"),
    "a failed task has attempts left": (make_situation(Task("a", status="failed", attempts=1)), {}, "block"),
    "a task can never run": (make_situation(Task("a", depends_on=("a",))), {}, "block"),
    "seven blocks already": (
        make_situation(PENDING, tally=Tally("3:0 ", 7)),
        {"stop_hook_active": True},
        "block",
    ),
    "eight blocks already": (make_situation(PENDING, tally=Tally("3:0 ", 8)), {}, "allow"),
    "eight blocks before an attempt ended": (make_situation(PENDING, tally=Tally("3:1 ", 8)), {}, "block"),
    "eight blocks before I took a task": (make_situation(MINE, tally=Tally("3:0 ", 8)), {}, "block"),
    "the prose works on another's task": (by_the_prose(THEIRS, mode="concurrent"), {}, "allow"),
    "the prose works on my task": (by_the_prose(MINE, mode="concurrent"), {}, "block"),
    "the prose works on nobody's task": (
        by_the_prose(Task("a", status="in_progress"), mode="concurrent"),
        {},
        "block",
    ),
    "the prose works, nobody knows who I am": (
        by_the_prose(THEIRS, mode="concurrent", workers=[]),
        {},
        "block",
    ),
    "the prose has had its sessions": (by_the_prose(PENDING, session_count=2, most_sessions=2), {}, "allow"),
    "the prose has a session left": (by_the_prose(PENDING, session_count=1, most_sessions=2), {}, "block"),
    "the prose has had its tasks": (by_the_prose(PENDING, most_tasks=2, attempted=2), {}, "allow"),
    "the prose has a task left": (by_the_prose(PENDING, most_tasks=2, attempted=1), {}, "block"),
    "the prose has done all": (by_the_prose(DONE, session_count=2, most_sessions=2), {}, "allow"),
    "unreadable": (TORN, {}, "block"),
    "unreadable, and told so": (TORN, {"stop_hook_active": True}, "allow"),
    "unreadable, and counted": (
        Situation(None, trouble="torn", program="HARNESS", tally=Tally(policy.UNREADABLE, 1)),
        {},
        "allow",
    ),
    "unreadable, and another's": (make_situation(PENDING, mine=False, trouble="torn"), {}, "allow"),
    "all are completed": (make_situation(DONE), {}, "allow"),
    "failed for good": (make_situation(Task("a", status="failed", attempts=3)), {}, "allow"),
}


@pytest.mark.parametrize("row", STOP, ids=lambda row: row.replace(" ", "-"))
def test_stop(row: str) -> None:
    situation, fields, kind = STOP[row]

    assert stop(situation, **fields).kind == kind


@pytest.mark.parametrize(
    ("row", "warned", "finished"),
    [
        ("no session is open", False, False),
        ("my session is halted", True, False),
        ("my task is halted", True, False),
        ("eight blocks already", True, False),
        ("unreadable, and told so", True, False),
        ("the prose works on another's task", False, False),
        ("the prose has had its sessions", True, False),
        ("the prose has had its tasks", True, False),
        ("the prose has done all", False, True),
        ("all are completed", False, True),
        ("failed for good", False, True),
    ],
)
def test_what_letting_go_brings_with_it(row: str, *, warned: bool, finished: bool) -> None:
    answer = stop(STOP[row][0], **STOP[row][1])

    assert (bool(answer.warning), answer.finished) == (warned, finished)


def test_progress_is_what_this_agent_does_and_nothing_else() -> None:
    def progress(*tasks: Task) -> str:
        return stop(make_situation(*tasks, mode="concurrent")).progress

    before = progress(MINE, THEIRS, PENDING)

    # Another worker gets on, a lease is renewed, somebody adds a task:
    assert progress(MINE, DONE, PENDING, Task("n")) == before
    # This one takes another task, or notes a step:
    assert progress(THEIRS, PENDING) != before


def test_texts_are_bounded_however_long_the_list_is() -> None:
    tasks = [Task(f"t{n}", "x" * 1000, status="in_progress", claimed_by="w") for n in range(500)]
    doomed = [Task(f"d{n}", depends_on=(f"d{n}",)) for n in range(500)]
    for situation in (
        make_situation(*tasks, *doomed, sessions=None),
        make_situation(*doomed),
        make_situation(*tasks, sessions=()),
    ):
        assert len(stop(situation).text) < 3000
        assert len(policy.session_start(situation, payload()).text) < 3000


def held_back(situation: Situation, progress: str, kind: str = "block") -> Any:
    return kind, messages.stop(situation, policy.held(situation)), "", progress, False, False


BEHIND = by_the_prose(BUSY, PENDING, Task("f", status="failed", attempts=1), DONE)


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ("my session is open", held_back(make_situation(PENDING), "3:0 ")),
        ("I hold a task", held_back(make_situation(MINE), "3:0 a/0/0")),
        ("no session is open", allowed()),
        ("a subagent runs", allowed()),
        ("what nobody knows runs", allowed(waits=True)),
        ("a subagent of Copilot stops", allowed()),
        ("my session is halted", allowed(messages.halted("CONFIG: no check", "HARNESS"))),
        ("my task is halted", allowed(messages.halted("CONFIG", "HARNESS"))),
        ("what is left is halted", allowed()),
        ("others hold the rest", allowed()),
        ("eight blocks already", allowed(messages.released(8, "HARNESS"), "3:0 ")),
        ("the prose has had its sessions", allowed(messages.halted("max_sessions", "HARNESS"))),
        ("the prose has had its tasks", allowed(messages.halted("max_tasks_per_session", "HARNESS"))),
        ("the prose has done all", allowed(finished=True)),
        ("unreadable, and told so", allowed(messages.unreadable(TORN))),
        ("unreadable, and counted", allowed(messages.unreadable(TORN))),
        ("all are completed", allowed(finished=True)),
    ],
)
def test_the_whole_answer(row: str, answer: object) -> None:
    assert said(stop(STOP[row][0], **STOP[row][1])) == answer


def test_an_unreadable_list_is_measured_by_itself() -> None:
    assert said(stop(TORN)) == ("block", messages.repair(TORN), "", policy.UNREADABLE, False, False)


def test_a_list_that_cannot_be_read_is_not_judged_by_the_last_one_that_was() -> None:
    situation = make_situation(PENDING, trouble="torn")

    assert stop(situation).text == messages.repair(situation)


def test_progress_in_a_list_of_the_prose_is_any_change_of_its_numbers() -> None:
    assert said(stop(BEHIND)) == held_back(BEHIND, "1 1 1 1 3 1")


def test_progress_tells_of_each_session_and_each_task() -> None:
    sessions = (SESSION._replace(finished_attempts=4), SESSION._replace(number=5))

    situation = make_situation(BUSY, BUSY._replace(id="b", attempts=0, checkpoints=()), sessions=sessions)

    assert stop(situation).progress == "3:4 5:0 a/2/1 b/0/0"


def test_of_two_halts_the_sessions_own_is_told() -> None:
    situation = make_situation(BUSY._replace(halt="TASK"), sessions=(SESSION, HALTED))

    assert stop(situation).warning == messages.halted("CONFIG: no check", "HARNESS")


@pytest.mark.parametrize(
    ("situation", "count"),
    [
        (by_the_prose(PENDING, most_tasks=2), 2),
        (by_the_prose(PENDING, most_tasks=2, session_count=0), 0),
        (by_the_prose(PENDING, most_tasks=2, mode="concurrent"), 0),
        (make_situation(PENDING), 0),
    ],
)
def test_only_the_tasks_of_one_session_of_the_prose_can_be_counted(situation: Situation, count: int) -> None:
    assert situation.digest is not None
    assert policy.counted_tasks(situation.digest) == count


def test_a_limit_of_the_prose_that_cannot_be_counted_ends_nothing() -> None:
    assert stop(by_the_prose(PENDING, most_tasks=2, attempted=5, mode="concurrent")).kind == "block"
    assert stop(by_the_prose(PENDING, attempted=5)).kind == "block"


@pytest.mark.parametrize(
    ("situation", "names"),
    [
        (make_situation(MINE, THEIRS), ["a", "b"]),
        (make_situation(MINE, THEIRS, mode="concurrent"), ["a"]),
        (make_situation(MINE, THEIRS, mode="concurrent", workers=[]), []),
        (make_situation(Task("n", status="in_progress"), mode="concurrent", workers=["", "me"]), []),
        (by_the_prose(MINE, THEIRS, Task("n", status="in_progress"), mode="concurrent"), ["a", "n"]),
        (by_the_prose(MINE, THEIRS, mode="concurrent", workers=[]), ["a", "b"]),
        (by_the_prose(THEIRS, THEIRS._replace(id="c", claimed_by=""), mode="concurrent"), ["c"]),
        (TORN, []),
    ],
)
def test_which_tasks_a_session_works_on(situation: Situation, names: list[str]) -> None:
    assert [task["id"] for task in policy.held(situation)] == names

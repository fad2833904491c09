"""What whoever begins is told, word for word: how the list stands, who works on it, and what to type."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lib.hookio import messages, policy
from harness_lib.hookio.situation import Situation
from harness_lib.state import summary
from harness_lib.task import Session, SessionConfig, State, Task
from tests.hookio.situations import (
    DATA,
    DONE,
    FAILED,
    MINE,
    NOW,
    PENDING,
    SESSION,
    THEIRS,
    UNPROVEN,
    begun,
    make_situation,
)

OTHERS: Any = ({"worker": 'an"other'}, {"worker": "w2"})
SPENT = SessionConfig(max_sessions=1)


def spent(*tasks: Task, sessions: tuple[Session, ...] = (), mine: bool = False) -> Situation:
    """Return a list of one session, which it has had."""
    state = State(tasks=tasks, session_config=SPENT, session_count=1, sessions=sessions)
    digest = summary.build(state, NOW, [])
    return Situation(digest, mine=digest["sessions"] or () if mine else (), program="HARNESS")


BEGINS: dict[str, tuple[Situation, str, str]] = {
    "it works on the list": (
        begun(make_situation(MINE, PENDING, FAILED)),
        (
            "0 of 3 tasks are completed, 1 in progress, 1 pending, 1 failed with attempts left.\n"
            "total=3 completed=0 failed=1 pending=1 in_progress=1 blocked=0 next=a"
        ),
        (
            "This agent works on it in session 3.\n"
            'Last failure: f "[TEST_FAIL] 1 != 2"\n'
            'You hold a "Title". Do the work, then type: HARNESS finish\n'
            f"{DATA}"
        ),
    ),
    "nobody works": (
        begun(
            make_situation(
                PENDING, Task("b", depends_on=("f",)), Task("f", status="failed", attempts=3), sessions=()
            )
        ),
        (
            "0 of 3 tasks are completed, 2 pending.\n"
            "total=3 completed=0 failed=1 pending=2 in_progress=0 blocked=1 next=a"
        ),
        f'No session is open.\nNext: a "Title".\nIf you are asked to work on it, type: HARNESS start\n{DATA}',
    ),
    "its agent is gone": (
        begun(make_situation(MINE, DONE, mine=False)),
        (
            "1 of 2 tasks are completed, 1 in progress.\n"
            "total=2 completed=1 failed=0 pending=0 in_progress=1 blocked=0 next=none"
        ),
        (
            "Session 3 was cut off: its agent is gone.\n"
            'Interrupted: a "Title". The work stands where it was left. Go on with it: HARNESS start\n'
            "If you are asked to work on it, type: HARNESS start\n"
            f"{DATA}"
        ),
    ),
    "the last of several agents is gone": (
        begun(make_situation(PENDING, sessions=(SESSION, Session(4, "w", "host")), mine=False)),
        (
            "0 of 1 tasks are completed, 1 pending.\n"
            "total=1 completed=0 failed=0 pending=1 in_progress=0 blocked=0 next=a"
        ),
        (
            "Session 4 was cut off: its agent is gone.\n"
            'Next: a "Title".\n'
            "If you are asked to work on it, type: HARNESS start\n"
            f"{DATA}"
        ),
    ),
    "another agent works": (
        begun(make_situation(THEIRS, PENDING, mine=False), *OTHERS),
        (
            "0 of 2 tasks are completed, 1 in progress, 1 pending.\n"
            "total=2 completed=0 failed=0 pending=1 in_progress=1 blocked=0 next=a"
        ),
        (
            'Another agent works on it ("an\'other", "w2"); leave its tasks alone.\n'
            'Next: a "Title".\n'
            "If you are asked to work on it, type: HARNESS start\n"
            f"{DATA}"
        ),
    ),
    "others share it, and one was cut off": (
        begun(
            make_situation(
                Task("b", status="in_progress", claimed_by="w2#3"),
                Task("c", status="in_progress", claimed_by="gone#2"),
                Task("d", status="in_progress", claimed_by="w2"),
                Task("e", status="in_progress"),
                mode="concurrent",
                mine=False,
            ),
            *OTHERS,
        ),
        (
            "0 of 4 tasks are completed, 4 in progress.\n"
            "total=4 completed=0 failed=0 pending=0 in_progress=4 blocked=0 next=none"
        ),
        (
            'Another agent works on it ("an\'other", "w2"); leave its tasks alone.\n'
            "Interrupted: c, e. The work stands where it was left. Go on with it: HARNESS start\n"
            "If you are asked to work on it, type: HARNESS start\n"
            f"{DATA}"
        ),
    ),
    "the prose made the list": (
        begun(make_situation(PENDING, sessions=None)),
        (
            "0 of 1 tasks are completed, 1 pending.\n"
            "total=1 completed=0 failed=0 pending=1 in_progress=0 blocked=0 next=a"
        ),
        f'No session is open.\nNext is a "Title".\nGo on with: HARNESS start\n{DATA}',
    ),
    "it is empty": (
        begun(make_situation(sessions=())),
        (
            "0 of 0 tasks are completed.\n"
            "total=0 completed=0 failed=0 pending=0 in_progress=0 blocked=0 next=none"
        ),
        "No session is open.\nIt is empty. New tasks: HARNESS add --help",
    ),
    "all is done": (
        begun(make_situation(DONE, sessions=())),
        (
            "1 of 1 tasks are completed.\n"
            "total=1 completed=1 failed=0 pending=0 in_progress=0 blocked=0 next=none"
        ),
        "No session is open.\nNothing is left to do. New tasks: HARNESS add --help",
    ),
    "nothing proves what is said": (
        begun(make_situation(UNPROVEN, sessions=())),
        (
            "0 of 1 tasks are completed, 1 pending.\n"
            "total=1 completed=0 failed=0 pending=1 in_progress=0 blocked=0 next=none"
        ),
        (
            "No session is open.\n"
            'Somebody has written that these are completed, which nothing proves: u "U".\n'
            "If you are asked to work on it, type: HARNESS start\n"
            f"{DATA}"
        ),
    ),
    "it has had its sessions": (
        begun(spent(MINE, sessions=(SESSION,))),
        (
            "0 of 1 tasks are completed, 1 in progress.\n"
            "total=1 completed=0 failed=0 pending=0 in_progress=1 blocked=0 next=none"
        ),
        (
            "Session 3 was cut off: its agent is gone.\n"
            'Interrupted: a "Title". The work stands where it was left.\n'
            "All sessions that this list may have are used up. "
            "A person can allow more: HARNESS edit --max-sessions N\n"
            f"{DATA}"
        ),
    ),
    "it is in the last of its sessions": (
        begun(spent(PENDING, sessions=(SESSION,), mine=True)),
        (
            "0 of 1 tasks are completed, 1 pending.\n"
            "total=1 completed=0 failed=0 pending=1 in_progress=0 blocked=0 next=a"
        ),
        f'This agent works on it in session 3.\nNext is a "Title". Type: HARNESS claim\n{DATA}',
    ),
}


@pytest.mark.parametrize("row", BEGINS, ids=lambda row: row.replace(" ", "-"))
def test_whoever_begins_reads_how_the_list_stands_who_works_on_it_and_what_to_type(row: str) -> None:
    situation, counts, then = BEGINS[row]

    message = messages.start(situation, policy.held(situation) if situation.mine else ())

    assert message == f"harness: there is a task list in /p. {counts}\n{then}"


def test_a_failure_of_which_nothing_is_known_has_its_name() -> None:
    situation = begun(make_situation(PENDING))
    assert situation.digest is not None
    situation.digest["last_failure"] = {"id": "f", "text": None}

    assert 'Last failure: f ""\n' in messages.start(situation, ())


def test_of_many_workers_five_are_named() -> None:
    situation = begun(make_situation(PENDING, mine=False), *({"worker": f"w{n}"} for n in range(7)))

    assert '("w0", "w1", "w2", "w3", "w4")' in messages.start(situation, ())
    situation = begun(make_situation(PENDING, mine=False), {"worker": "w" * 61})
    assert f'("{"w" * 59}…")' in messages.start(situation, ())

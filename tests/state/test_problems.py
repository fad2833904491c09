"""What is wrong with a field is said with its place and what it must be; what just fits is taken."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lib.state import codec
from harness_lib.state.codec import ContractError
from tests.state.documents import one, said

LARGEST = 9007199254740991
YEAR = 31622400
ID = "1 to 100 characters without spaces, brackets and slashes, not beginning with a dot or a dash"
SHELL = "text that a shell can be given (no NUL character)"
STATUSES = "pending, in_progress, completed, failed"
GIT = "the name of a git object"
MOMENT = "a moment such as 2025-07-01T10:00:00Z"


def attempt(**fields: object) -> dict[str, Any]:
    return one(attempt_log=[{"number": 1, **fields}])


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("x", "(top level): is 'x', must be an object"),
        ([], "(top level): is a list, must be an object"),
        ({}, "tasks: is missing"),
        ({"tasks": {}}, "tasks: is an object, must be a list"),
        ({"tasks": [7]}, "tasks[0]: is 7, must be an object"),
        ({"tasks": [{"status": "pending"}]}, "tasks[0].id: is missing"),
        ({"tasks": [], "sessions": [{"number": 1, "host": "h"}]}, "sessions[0].worker: is missing"),
        ({"tasks": [], "version": 3}, "version: is 3: made by a newer harness, upgrade this one"),
        ({"tasks": [], "version": 2.5}, "version: is 2.5: made by a newer harness, upgrade this one"),
        ({"tasks": [], "version": 1}, "version: is 1, must be 2"),
        ({"tasks": [], "version": True}, "version: is True, must be 2"),
        ({"tasks": [], "version": "3"}, "version: is '3', must be 2"),
        ({"tasks": [], "created": 7}, "created: is 7, must be a string"),
        ({"tasks": [], "created": "soon"}, f"created: is 'soon', must be {MOMENT}"),
        ({"tasks": [], "created": "2025-02-30"}, f"created: is '2025-02-30', must be {MOMENT}"),
        (
            {"tasks": [], "session_config": {"concurrency_mode": "alone"}},
            "session_config.concurrency_mode: is 'alone', must be one of exclusive, concurrent",
        ),
        (one(id="a b"), f"tasks[0].id: is 'a b', must be {ID}"),
        (one(id="x" * 101), f"tasks[0].id: is '{'x' * 59}…, must be {ID}"),
        (one(title=7), "tasks[0].title: is 7, must be a string"),
        (one(title="x" * 1001), "tasks[0].title: has 1001 characters, at most 1000 are allowed"),
        (
            one(description="x" * 20001),
            "tasks[0].description: has 20001 characters, at most 20000 are allowed",
        ),
        (one(notes=["x" * 2001]), "tasks[0].notes[0]: has 2001 characters, at most 2000 are allowed"),
        (one(worktree="x" * 4097), "tasks[0].worktree: has 4097 characters, at most 4096 are allowed"),
        (one(worktree="\0"), "tasks[0].worktree: is '\\x00', must be a path (no NUL character)"),
        (one(status="done"), f"tasks[0].status: is 'done', must be one of {STATUSES}"),
        (one(depends_on="t1"), "tasks[0].depends_on: is 't1', must be a list"),
        (one(depends_on=["t1", 7]), "tasks[0].depends_on[1]: is 7, must be a string"),
        (one(depends_on=["x"]), "tasks[0].depends_on[0]: is 'x', but no task has this id"),
        (one(unproven=1), "tasks[0].unproven: is 1, must be true or false"),
        (one(attempts="1"), "tasks[0].attempts: is '1', must be a whole number"),
        (one(attempts=1.5), "tasks[0].attempts: is 1.5, must be a whole number"),
        (one(attempts=True), "tasks[0].attempts: is True, must be a whole number"),
        (one(attempts=-1), "tasks[0].attempts: is -1, must be at least 0"),
        (one(attempts=LARGEST + 1), f"tasks[0].attempts: is {LARGEST + 1}, must be at most {LARGEST}"),
        (one(attempts=10**60), f"tasks[0].attempts: is {10**60}, must be at most {LARGEST}"),
        (
            one(attempts=10**60 + 1),
            f"tasks[0].attempts: is a number of more than 60 digits, must be at most {LARGEST}",
        ),
        (
            one(attempts=-(10**60) - 1),
            "tasks[0].attempts: is a number of more than 60 digits, must be at least 0",
        ),
        (one(max_attempts=0), "tasks[0].max_attempts: is 0, must be at least 1"),
        (one(started_at_commit="-x"), f"tasks[0].started_at_commit: is '-x', must be {GIT}"),
        (one(validation=[]), "tasks[0].validation: is a list, must be an object"),
        (
            one(validation={"command": "a\0b"}),
            f"tasks[0].validation.command: is 'a\\x00b', must be {SHELL}",
        ),
        (
            one(validation={"timeout_seconds": 0}),
            "tasks[0].validation.timeout_seconds: is 0, must be at least 1",
        ),
        (
            one(validation={"timeout_seconds": YEAR + 1}),
            f"tasks[0].validation.timeout_seconds: is {YEAR + 1}, must be at most {YEAR}",
        ),
        (one(validation={"protect": [""]}), "tasks[0].validation.protect[0]: must not be empty"),
        (
            one(validation={"protect": ["\0"]}),
            "tasks[0].validation.protect[0]: is '\\x00', must be a pattern of paths",
        ),
        (
            one(validation={"protect": ["x" * 4097]}),
            "tasks[0].validation.protect[0]: has 4097 characters, at most 4096 are allowed",
        ),
        (attempt(cost_usd="1"), "tasks[0].attempt_log[0].cost_usd: is '1', must be a number"),
        (attempt(cost_usd=-1), f"tasks[0].attempt_log[0].cost_usd: must be from 0 to {LARGEST}"),
        (attempt(cost_usd=LARGEST + 1), f"tasks[0].attempt_log[0].cost_usd: must be from 0 to {LARGEST}"),
        (
            attempt(outcome="lost"),
            "tasks[0].attempt_log[0].outcome: is 'lost', must be one of completed, failed, pending",
        ),
    ],
)
def test_what_is_wrong_is_said_in_these_words(document: object, problem: str) -> None:
    assert said(document) == [problem]


@pytest.mark.parametrize(
    "document",
    [
        one(id="x" * 100),
        one(title="x" * 1000),
        one(description="x" * 20000),
        one(notes=["x" * 2000]),
        one(worktree="x" * 4096),
        one(attempts=LARGEST),
        one(max_attempts=1),
        one(validation={"timeout_seconds": 1}),
        one(validation={"timeout_seconds": YEAR}),
        one(validation={"protect": ["x" * 4096]}),
        attempt(cost_usd=0),
        attempt(cost_usd=LARGEST),
        attempt(tokens=0, fence=0),
        {"tasks": [], "version": 2.0, "session_count": 0, "attempts_reset": 0},
    ],
)
def test_what_just_fits_is_taken(document: object) -> None:
    assert codec.decode(codec.encode(codec.decode(document))) == codec.decode(document)


def test_a_whole_number_with_a_point_is_one() -> None:
    (task,) = codec.decode(one(attempts=3.0)).tasks

    assert (task.attempts, type(task.attempts)) == (3, int)


def test_a_value_of_sixty_characters_is_shown_whole() -> None:
    # With its quotes.
    assert f"is '{'x' * 58}', must" in said(one(status="x" * 58))[0]
    assert f"is '{'x' * 59}…, must" in said(one(status="x" * 59))[0]
    assert f"is '{'x' * 59}…, must" in said(one(status="x" * 6000))[0]


def message(count: int) -> list[str]:
    with pytest.raises(ContractError) as caught:
        codec.decode({"tasks": [{"id": f"t{n}", "status": "done"} for n in range(count)]}, "the list")
    hint = "correct the named fields in the file, then look again: harness check"
    assert caught.value.hint == f"{hint} (the user can restore the last good list: harness check --restore)"
    return caught.value.message.split("\n")


def test_a_message_names_the_file_and_twenty_problems() -> None:
    assert message(1) == [f"the list: tasks[0].status: is 'done', must be one of {STATUSES}"]
    assert len(message(20)) == 20
    assert message(21)[19:] == [
        f"the list: tasks[19].status: is 'done', must be one of {STATUSES}",
        "… and 1 more problems",
    ]
    with pytest.raises(ContractError, match=r"^harness-tasks\.json: tasks: is missing$"):
        codec.decode({})
    with pytest.raises(ContractError, match=r"^the list: \(top level\): is None, must be an object$"):
        codec.decode(None, "the list")

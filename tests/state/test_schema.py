"""The published schemas, and the parts of the list that are checked on their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness_lib.errors import EnvSetupError
from harness_lib.state import reading, schema
from harness_lib.state.reading import Problem

GOOD_REPLY: dict[str, Any] = {
    "ok": True,
    "verb": "claim",
    "exit": 0,
    "session": 1,
    "task": {"id": "task-001", "status": "in_progress", "title": "x"},
    "stop": None,
    "next": "harness finish task-001",
    "message": "claimed",
    "error": None,
    "brief": "a key of this verb's own",
}


@pytest.mark.parametrize("name", [schema.TASKS, schema.REPLY])
def test_what_we_publish_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(schema.load(name))


@pytest.mark.parametrize(
    ("problems", "sentence"),
    [
        (lambda: schema.problems([]), ": [] is not of type 'object'"),
        (lambda: schema.problems({"tasks": [7]}), "tasks[0]: 7 is not of type 'object'"),
        (lambda: schema.problems({}), "tasks: 'tasks' is a required property"),
        (lambda: schema.task_problems(7, 3), "tasks[3]: 7 is not of type 'object'"),
        (
            lambda: schema.task_problems({"id": "t", "status": "pending", "notes": [7]}, 3),
            "tasks[3].notes[0]: 7 is not of type 'string'",
        ),
        (
            lambda: schema.session_problems({"number": -1, "worker": "w", "host": "h"}, 2),
            "sessions[2].number: -1 is less than the minimum of 0",
        ),
        (
            lambda: schema.session_problems({"number": 1, "worker": "w"}, 2),
            "sessions[2].host: 'host' is a required property",
        ),
        (lambda: schema.shell_problems({"proofs": 1}), "proofs: 1 is not of type 'boolean'"),
        (
            lambda: schema.problems({"tasks": [], "created": "2025-02-30"}),
            "created: '2025-02-30' is not a 'harness-moment'",
        ),
        (lambda: schema.reply_problems([]), ": [] is not of type 'object'"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(problems: Callable[[], list[Problem]], sentence: str) -> None:
    (problem,) = problems()

    assert f"{problem.path}: {problem.message}" == sentence


def test_the_most_telling_problem_comes_first_and_a_missing_field_under_its_own_name() -> None:
    document = {"version": 9, "tasks": [{"id": "t", "validation": {"cwd": 1}}]}

    paths = ["version", "tasks[0].status", "tasks[0].validation.cwd"]
    assert [problem.path for problem in schema.problems(document)] == paths


@pytest.mark.parametrize("sessions", [None, 7, [], [{"number": -1}]])
def test_the_tasks_and_sessions_of_a_list_beside_them_are_not_looked_at(sessions: object) -> None:
    assert schema.shell_problems({"tasks": 7, "sessions": sessions}) == []


def test_a_message_of_three_hundred_characters_is_whole() -> None:
    def message(length: int) -> str:
        (problem,) = schema.problems({"tasks": [{"id": "t", "status": "pending", "attempts": "x" * length}]})
        return problem.message

    whole = "'x' is not of type 'integer'"
    just = 300 - len(whole) + 1
    assert len(message(just)) == 300
    assert message(just).endswith("'integer'")
    assert message(just + 1) == f"'{'x' * (just + 1)}' is not of type 'integer'"[:300] + "…"


def test_what_is_not_shown_of_a_value_does_not_change_what_is() -> None:
    assert reading.show("x" * 61 + "'") == "'" + "x" * 59 + "…"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ok", "yes"),
        ("ok", False),
        ("exit", 1),
        ("exit", 42),
        ("session", "1"),
        ("task", {"id": "t"}),
        ("task", []),
        ("stop", {"reason": "tired"}),
        ("next", 1),
        ("message", None),
        ("error", {"kind": "CONFIG"}),
    ],
)
def test_a_reply_that_its_reader_could_not_rely_on_is_refused(key: str, value: object) -> None:
    # It may carry keys of its verb.
    assert schema.reply_problems(GOOD_REPLY) == []
    assert schema.reply_problems({**GOOD_REPLY, key: value}) != []


@pytest.mark.parametrize("key", [key for key in GOOD_REPLY if key != "brief"])
def test_a_reply_lacks_nothing(key: str) -> None:
    reply = {name: value for name, value in GOOD_REPLY.items() if name != key}

    assert key in [problem.path for problem in schema.reply_problems(reply)]


def test_an_installation_without_its_schemas_says_so() -> None:
    with pytest.raises(EnvSetupError) as caught:
        schema.load("none.json")

    assert caught.value.message == "This installation lacks schemas/none.json."
    assert caught.value.hint == "Install harness again."


def test_schemas_name_no_host() -> None:
    for name in (schema.TASKS, schema.REPLY):
        published = schema.load(name)
        assert published["$id"].startswith("urn:harness:")
        assert "http" not in json.dumps({key: value for key, value in published.items() if key != "$schema"})

"""Codec and published schema say the same of every document, and no field is lost on its way through us."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harness_lib.errors import EnvSetupError
from harness_lib.state import codec, reading, schema
from harness_lib.state.codec import ContractError
from harness_lib.task import (
    Attempt,
    Checkpoint,
    Gate,
    Handback,
    Intent,
    Interruption,
    OnFailure,
    State,
    Task,
    Validation,
)
from tests.state.documents import Place, changed, every_field, places, said

EXAMPLES = Path(__file__).parents[1] / "schemas/valid"
DOCUMENTS = {file.stem: json.loads(file.read_bytes()) for file in sorted(EXAMPLES.glob("*.json"))}
EVERY_FIELD = every_field(State)
LINKS = ("which another task has already", "but no task has this id")

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1.5, 2.0, 2**53, 1e300, "", "x", "-x", "a b", "\n", "\0", "P1", "pending",
    "2025-03-04T08:00:00Z", "2025-02-30", "x" * 4097, "x" * 20001, [], [None], ["x"], [{}], {}, {"x": 1},
)  # fmt: skip


def codec_refuses(document: object) -> list[str]:
    try:
        codec.decode(document)
    except ContractError as error:
        return [str(problem) for problem in error.problems if not problem.message.endswith(LINKS)]
    return []


def assert_same(document: object) -> None:
    by_codec, by_schema = codec_refuses(document), schema.problems(document)

    assert bool(by_codec) == bool(by_schema), (by_codec, by_schema, document)


def within(value: Any, above: Place = ()) -> Iterator[Place]:
    """Yield every place in a document."""
    yield above
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from within(inner, (*above, key))


def test_both_refuse_a_broken_example_at_its_path(invalid: tuple[str, Any]) -> None:
    path, document = invalid

    assert path in [problem.path for problem in schema.problems(document)]
    assert path in [problem.partition(": ")[0].removeprefix("(top level)") for problem in said(document)]


# One table says what may stand in a field, so one field of each kind tells of the others.
KINDS = list({kind: place for place, kind in reversed([*places(State)])}.values())


def test_both_judge_every_kind_of_field_alike_whatever_it_holds() -> None:
    """Each value in every fourth kind, and the next ones in the others; all in all is for a release."""
    for number, odd in enumerate(ODD):
        for place in ((), *KINDS[number % 4 :: 4]):
            assert_same(changed(EVERY_FIELD, place, odd))


@pytest.mark.release
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:24])
def test_both_judge_every_field_alike_when_it_holds(odd: object) -> None:
    for place, _ in places(State):
        assert_same(changed(EVERY_FIELD, place, odd))


def test_both_judge_alike_when_a_field_is_missing() -> None:
    for place, _ in places(State):
        assert_same(changed(EVERY_FIELD, place))


@given(st.data())
def test_both_judge_alike_whatever_stands_anywhere(data: st.DataObject) -> None:
    document = data.draw(st.sampled_from(list(DOCUMENTS.values())))
    place = data.draw(st.sampled_from(list(within(document))))
    value = data.draw(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
            ),
            max_leaves=4,
        )
    )

    assert_same(changed(document, place, value))


@given(st.text(st.characters(), max_size=110))
def test_both_judge_an_id_alike(name: str) -> None:
    assert_same({"tasks": [{"id": name, "status": "pending"}]})


@given(st.from_regex(r"\A[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-9:.]{5,12}([Zz+-][0-9:]{0,5})?)?\n?\Z"))
def test_both_judge_a_moment_alike(text: str) -> None:
    assert_same({"created": text, "tasks": []})


# -- the published schemas, and the parts of the list that are checked on their own


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
    ("part", "document", "sentence"),
    [
        ("list", [], ": [] is not of type 'object'"),
        ("list", {"tasks": [7]}, "tasks[0]: 7 is not of type 'object'"),
        ("list", {}, "tasks: 'tasks' is a required property"),
        ("list", {"tasks": [], "created": "2025-02-30"}, "created: '2025-02-30' is not a 'harness-moment'"),
        ("task", 7, ": 7 is not of type 'object'"),
        ("task", {"id": "t", "status": "pending", "notes": [7]}, "notes[0]: 7 is not of type 'string'"),
        ("session", {"number": -1, "worker": "w", "host": "h"}, "number: -1 is less than the minimum of 0"),
        ("session", {"number": 1, "worker": "w"}, "host: 'host' is a required property"),
        ("shell", {"proofs": 1}, "proofs: 1 is not of type 'boolean'"),
        ("reply", [], ": [] is not of type 'object'"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(part: schema.Part, document: object, sentence: str) -> None:
    (problem,) = schema.problems(document, part)

    assert f"{problem.path}: {problem.message}" == sentence


def test_the_most_telling_problem_comes_first_and_a_missing_field_under_its_own_name() -> None:
    document = {"version": 9, "tasks": [{"id": "t", "validation": {"cwd": 1}}]}

    paths = ["version", "tasks[0].status", "tasks[0].validation.cwd"]
    assert [problem.path for problem in schema.problems(document)] == paths


@pytest.mark.parametrize("sessions", [None, 7, [], [{"number": -1}]])
def test_the_tasks_and_sessions_of_a_list_beside_them_are_not_looked_at(sessions: object) -> None:
    assert schema.problems({"tasks": 7, "sessions": sessions}, "shell") == []


def test_a_message_of_three_hundred_characters_is_whole() -> None:
    def message(length: int) -> str:
        (problem,) = schema.problems({"tasks": [{"id": "t", "status": "pending", "attempts": "x" * length}]})
        return problem.message

    whole = "'x' is not of type 'integer'"
    just = 300 - len(whole) + 1
    assert len(message(just)) == 300
    assert message(just).endswith("'integer'")
    assert message(just + 1) == f"'{'x' * (just + 1)}' is not of type 'integer'"[:299] + "…"


def test_what_is_not_shown_of_a_value_does_not_change_what_is() -> None:
    assert reading.show("x" * 61 + "'") == "'" + "x" * 59 + "…"


WRONG: list[tuple[str, object]] = [
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
]


def test_a_reply_that_its_reader_could_not_rely_on_is_refused() -> None:
    # It may carry keys of its verb.
    assert schema.problems(GOOD_REPLY, "reply") == []
    for key, value in WRONG:
        assert schema.problems({**GOOD_REPLY, key: value}, "reply") != [], (key, value)
    for key in GOOD_REPLY.keys() - {"brief"}:
        lacking = {name: value for name, value in GOOD_REPLY.items() if name != key}
        assert key in [problem.path for problem in schema.problems(lacking, "reply")]


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


# -- what a list says by itself, and how it is written


def test_a_record_that_is_not_read_is_the_one_that_its_kind_begins_with() -> None:
    """What a file leaves out is what the record has by itself, in every kind of record."""
    bare: dict[str, Any] = {
        "validation": {},
        "on_failure": {},
        "checkpoints": [{"step": 1, "total": 2}],
        "gate": {},
        "intent": {"action": "commit", "at": "2025-01-01"},
        "handback": {"reason": "x"},
        "interrupted": {},
        "attempt_log": [{"number": 1}],
    }

    (task,) = codec.decode({"tasks": [{"id": "a", "status": "pending", **bare}]}).tasks

    assert (task.validation, task.on_failure, task.gate) == (Validation(), OnFailure(), Gate())
    assert (task.checkpoints, task.attempt_log) == ((Checkpoint(1, 2),), (Attempt(1),))
    assert (task.intent, task.handback) == (Intent("commit", "2025-01-01"), Handback("x"))
    assert task.interrupted == Interruption()
    needs: list[tuple[Any, set[str]]] = [
        (Checkpoint, {"step", "total"}),
        (Handback, {"reason"}),
        (Attempt, {"number"}),
    ]
    for kind, needed in needs:
        assert set(kind._fields) - kind._field_defaults.keys() == needed


RENDERED = """\
{
  "version": 2,
  "created": null,
  "session_config": {"concurrency_mode": "exclusive", "max_tasks_per_session": 20, "max_sessions": 50},
  "tasks": [
    {
      "id": "a",
      "title": "ü \\"quoted\\"",
      "status": "pending",
      "priority": "P1",
      "depends_on": [],
      "attempts": 0,
      "max_attempts": 3,
      "started_at_commit": null,
      "validation": {"command": "true", "timeout_seconds": 300},
      "on_failure": {"cleanup": null},
      "error_log": ["ä", "\\ud800"],
      "checkpoints": [],
      "completed_at": null,
      "x-1": 1.5,
      "x-2": {},
      "x-3": false,
      "x-4": true,
      "x-5": 0.0
    },
    {
      "id": "b",
      "title": "",
      "status": "pending",
      "priority": "P1",
      "depends_on": ["a"],
      "attempts": 0,
      "max_attempts": 3,
      "started_at_commit": null,
      "validation": {"command": null, "timeout_seconds": 300},
      "on_failure": {"cleanup": null},
      "error_log": [],
      "checkpoints": [{"step": 1, "total": 2, "description": "", "timestamp": null}],
      "completed_at": null
    }
  ],
  "session_count": 0,
  "last_session": null,
  "sessions": [],
  "x-key": "last"
}
"""
EXTRA = {"x-1": 1.5, "x-2": {}, "x-3": False, "x-4": True, "x-5": 0.0}


def test_a_list_is_written_for_people_each_field_of_a_task_on_a_line() -> None:
    """What says nothing is left out, so that legacy agents see their own list."""
    first = Task("a", 'ü "quoted"', validation=Validation("true"), error_log=("ä", "\ud800"), extra=EXTRA)
    b = Task("b", depends_on=("a",), checkpoints=(Checkpoint(1, 2),))
    state = State(tasks=(first, b), sessions=(), extra={"x-key": "last"})

    assert reading.render(state) == RENDERED
    assert codec.decode_rendered(RENDERED, {})[0] == state


def test_a_list_without_tasks_is_written_on_six_lines() -> None:
    text = reading.render(State())

    head, _, rest = RENDERED.partition('  "tasks": [')
    counts = rest[rest.index('  "session_count"') : rest.index(',\n  "sessions"')]
    assert text == f'{head}  "tasks": [],\n{counts}\n}}\n'
    assert codec.decode_rendered(text, {}) == (State(), [])


def test_what_cannot_be_json_is_never_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        reading.render(State(extra={"x": [float("nan")]}))

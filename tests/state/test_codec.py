"""Reading is strict and says where and in which words; what is written reads back as the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from harness_lib.state import codec, reading, schema
from harness_lib.state.codec import ContractError, UnparseableError
from harness_lib.task import State, Task
from tests.state.any_state import json_values, states
from tests.state.documents import Place, changed, every_field, one, places, said


@settings(max_examples=25)
@given(states)
def test_what_is_written_reads_back_as_the_same(state: State) -> None:
    document = json.loads(reading.render(state))

    assert document == reading.encode(state)
    assert codec.decode(document) == state
    assert reading.trusted(State)(document) == state


def test_a_valid_example_is_read_and_survives_writing(valid: Any) -> None:
    """We read what we wrote alike whether it is trusted or not, and whatever is known of its tasks."""
    assert schema.problems(valid) == []
    state = codec.decode(valid)
    text = reading.render(state)

    assert codec.decode(json.loads(text)) == state
    assert reading.trusted(State)(json.loads(text)) == state
    fresh, texts = codec.decode_rendered(text, {})
    assert fresh == state
    assert codec.decode_rendered(text, dict(zip(texts, fresh.tasks, strict=True))) == (state, texts)


def test_only_id_and_status_are_needed() -> None:
    state = codec.decode({"tasks": [{"id": "t1", "status": "completed"}]})

    assert state.tasks == (Task("t1", status="completed"),)
    # A limit that is not named is no limit.
    config = state.session_config
    assert (config.max_tasks_per_session, config.max_sessions) == (0, 0)


def test_one_task_is_read_as_in_a_list_but_for_what_it_depends_on() -> None:
    document = {"id": "a", "status": "pending", "depends_on": ["elsewhere"]}
    assert codec.decode_task(document) == Task("a", depends_on=("elsewhere",))

    with pytest.raises(ContractError, match=r"^task: attempts: is -1, must be at least 0$") as caught:
        codec.decode_task({**document, "attempts": -1})
    assert [each.path for each in caught.value.problems] == ["attempts"]
    with pytest.raises(ContractError) as caught:
        codec.decode_task([])
    assert [each.path for each in caught.value.problems] == [""]


def test_tasks_that_are_added_together_are_read_as_a_list_of_their_own() -> None:
    documents = [{"id": "a", "status": "pending"}, {"id": "b", "status": "pending", "depends_on": ["a"]}]

    assert codec.decode_tasks(documents) == (Task("a"), Task("b", depends_on=("a",)))

    with pytest.raises(ContractError, match="no task has this id"):
        codec.decode_tasks(documents[1:])


def test_the_list_beside_its_tasks_and_sessions_is_looked_at_alone() -> None:
    assert codec.shell_problems({"tasks": 7, "sessions": 7}) == []
    assert codec.shell_problems({"sessions": 7}) == []
    assert [each.path for each in codec.shell_problems({"session_count": -1})] == ["session_count"]


def test_every_problem_is_told_with_its_place() -> None:
    """A broken task does not make those look broken that depend on it."""
    tasks: list[Any] = [
        {"id": "a", "status": "done", "attempts": "1"},
        {"id": "b b", "status": "pending", "depends_on": ["a", "c"]},
        {"id": "a", "status": "pending"},
        {"id": 7, "status": "pending", "depends_on": {"x": 1}},
        7,
    ]

    assert [problem.partition(":")[0] for problem in said({"version": 7, "tasks": tasks})] == [
        "version",
        "tasks[0].status",
        "tasks[0].attempts",
        "tasks[1].id",
        "tasks[3].id",
        "tasks[3].depends_on",
        "tasks[4]",
        "tasks[2].id",
        "tasks[1].depends_on[1]",
    ]


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe\x00", b"{'tasks': []}", b"[1,]"])
def test_what_is_not_json_is_unparseable(data: bytes) -> None:
    with pytest.raises(UnparseableError):
        codec.parse(data)


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_only_python_reads_are_no_json_and_are_named(name: str) -> None:
    with pytest.raises(UnparseableError, match=rf"^{name} is not JSON: line 1 column 1 \(char 0\)$"):
        codec.parse(f'{{"tasks": [], "x": {name}}}'.encode())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[" * 200_000, "lists and objects are nested too deep"),
        (b"[" * 100_000 + b"]" * 100_000, "lists and objects are nested too deep"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "a number cannot be read: "),
    ],
    ids=["deep", "deep and closed", "long"],
)
def test_json_that_python_cannot_hold_is_a_problem_and_no_reason_to_restore(data: bytes, said: str) -> None:
    with pytest.raises(ContractError) as caught:
        codec.parse(data)

    assert [problem.path for problem in caught.value.problems] == [""]
    assert caught.value.message.startswith(f"harness-tasks.json: (top level): {said}")


def test_a_byte_order_mark_does_no_harm() -> None:
    assert codec.parse(b'\xef\xbb\xbf{"tasks": []}') == {"tasks": []}


def test_a_number_that_is_too_large_is_the_largest_and_can_be_written() -> None:
    largest = 1.7976931348623157e308
    assert codec.parse(b"[1e999, -1e999, 1.5]") == [largest, -largest, 1.5]

    state = codec.decode(codec.parse(b'{"tasks": [], "x-big": -1e999}'))
    assert codec.decode(codec.parse(reading.render(state).encode())) == state


def repeated(text: str) -> list[str]:
    """Return what is said of keys that stand twice: only one of the two can be meant."""
    with pytest.raises(ContractError) as caught:
        codec.parse(text.encode())
    told = [
        problem.message.removesuffix(" times; only one can be meant") for problem in caught.value.problems
    ]
    return [f"{problem.path} {said}" for problem, said in zip(caught.value.problems, told, strict=True)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"tasks": [{"id": "a"}, {"id": "b", "status": "completed", "status": "pending"}]}',
            ["tasks[1].status stands 2"],
        ),
        # In their order, at any depth.
        (
            '{"x": {"deep": [[{"a": 1, "a": {"b": 2, "b": 3}}]]}, "version": 2, "version": 2, "version": 2}',
            ["version stands 3", "x.deep[0][0].a stands 2", "x.deep[0][0].a.b stands 2"],
        ),
        # What was hidden by a repeated key is told by its name.
        ('{"tasks": [{"id": "a", "id": "b"}], "tasks": []}', ["tasks stands 2"]),
        ('{"tasks": [], "tasks": ' + '{"a": ' * 900 + "1" + "}" * 901, ["tasks stands 2"]),
    ],
)
def test_a_key_that_stands_twice_is_refused_at_its_path(text: str, said: list[str]) -> None:
    assert repeated(text) == said


def test_a_repeated_key_of_sixty_characters_is_shown_whole() -> None:
    for key, shown in {"x" * 60: "x" * 60, "x" * 61: "x" * 60 + "…", "x" * 999_999: "x" * 60 + "…"}.items():
        inner = f'{{"{key}": 1, "{key}": 2}}'
        assert repeated(inner) == [f"{shown} stands 2"]
        assert repeated(f'{{"{key}": [{inner}]}}') == [f"{shown}[0].{shown} stands 2"]


def test_of_a_path_that_never_ends_a_thousand_characters_are_told() -> None:
    def nested(names: list[str]) -> list[str]:
        inside = '{"a": 1, "a": 2}'
        for name in reversed(names):
            inside = f'{{"{name}": {inside}}}'
        return repeated(inside)

    just = ["bb", *["c"] * 499]
    more = ["b", *just]
    assert len(".".join(just)) == 1000
    assert nested(just) == [f"{'.'.join(just)}.a stands 2"]
    assert nested(more) == [f"…{'.'.join(more)[-1000:]}.a stands 2"]


@given(json_values)
def test_what_json_writes_repeats_nothing(value: Any) -> None:
    assert codec.parse(json.dumps(value).encode()) == value


# -- what is wrong with a field is said with its place and what it must be; what just fits is taken


PUBLISHED = schema.load(schema.TASKS)
EVERY_FIELD = every_field(State)
LARGEST = 9007199254740991
ID = "1 to 100 characters without spaces, brackets and slashes, not beginning with a dot or a dash"
SHELL = "text that a shell can be given (no NUL character)"
STATUSES = "pending, in_progress, completed, failed"
GIT = "the name of a git object"
MOMENT = "a moment such as 2025-07-01T10:00:00Z"


def published(place: Place) -> dict[str, Any]:
    """Return what the published schema says of a place."""
    part: dict[str, Any] = PUBLISHED
    for key in place:
        part = part["items"] if isinstance(key, int) else part["properties"][key]
        part = PUBLISHED["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
    return part


def fitting(part: dict[str, Any]) -> Iterator[object]:
    """Yield what just fits there."""
    yield from (part[bound] for bound in ("minimum", "maximum") if bound in part)
    yield from part.get("enum", ())
    if "maxLength" in part:
        yield "x" * part["maxLength"]


def refused(part: dict[str, Any]) -> Iterator[tuple[object, str]]:
    """Yield what just does not fit there, or is of another kind, and what is said of it."""
    kinds = {part["type"]} if isinstance(part["type"], str) else {*part["type"]}
    least, most = (part.get(bound, 0) for bound in ("minimum", "maximum"))
    if "enum" in part:
        yield "done", f"is 'done', must be one of {', '.join(filter(None, part['enum']))}"
    elif "string" in kinds:
        yield 7, "is 7, must be a string"
    if "maxLength" in part:
        longest = part["maxLength"]
        yield "x" * (longest + 1), f"has {longest + 1} characters, at most {longest} are allowed"
    if "integer" in kinds:
        yield from ((value, f"is {value!r}, must be a whole number") for value in ("1", 1.5, True))
        yield least - 1, f"is {least - 1}, must be at least {least}"
        yield most + 1, f"is {most + 1}, must be at most {most}"
    if "number" in kinds and "const" not in part:
        yield "1", "is '1', must be a number"
        yield from ((value, f"must be from {least} to {most}") for value in (least - 1, most + 1))
    if "boolean" in kinds:
        yield 1, "is 1, must be true or false"
    if "array" in kinds:
        yield {}, "is an object, must be a list"
    if "object" in kinds:
        yield [], "is a list, must be an object"


def test_each_field_takes_what_just_fits_and_says_what_does_not() -> None:
    for place, _ in places(State):
        part = published(place)
        path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place)[1:]
        for value in fitting(part):
            state = codec.decode(changed(EVERY_FIELD, place, value))
            assert codec.decode(reading.encode(state)) == state
        for value, words in refused(part):
            # Behind it may stand that the task waits for itself, whose id it no longer is.
            assert said(changed(EVERY_FIELD, place, value))[0] == f"{path}: {words}"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("x", "(top level): is 'x', must be an object"),
        ([], "(top level): is a list, must be an object"),
        ({}, "tasks: is missing"),
        ({"tasks": [{"status": "pending"}]}, "tasks[0].id: is missing"),
        ({"tasks": [], "sessions": [{"number": 1, "host": "h"}]}, "sessions[0].worker: is missing"),
        ({"tasks": [], "version": 3}, "version: is 3: made by a newer harness, upgrade this one"),
        ({"tasks": [], "version": 2.5}, "version: is 2.5: made by a newer harness, upgrade this one"),
        ({"tasks": [], "version": 1}, "version: is 1, must be 2"),
        ({"tasks": [], "version": True}, "version: is True, must be 2"),
        ({"tasks": [], "version": "3"}, "version: is '3', must be 2"),
        ({"tasks": [], "created": "soon"}, f"created: is 'soon', must be {MOMENT}"),
        ({"tasks": [], "created": "2025-02-30"}, f"created: is '2025-02-30', must be {MOMENT}"),
        (one(id="a b"), f"tasks[0].id: is 'a b', must be {ID}"),
        (one(id="x" * 101), f"tasks[0].id: is '{'x' * 59}…, must be {ID}"),
        (one(worktree="\0"), "tasks[0].worktree: is '\\x00', must be a path (no NUL character)"),
        (one(depends_on=["x"]), "tasks[0].depends_on[0]: is 'x', but no task has this id"),
        (one(attempts=10**60), f"tasks[0].attempts: is {10**60}, must be at most {LARGEST}"),
        (
            one(attempts=10**60 + 1),
            f"tasks[0].attempts: is a number of more than 60 digits, must be at most {LARGEST}",
        ),
        (
            one(attempts=-(10**60) - 1),
            "tasks[0].attempts: is a number of more than 60 digits, must be at least 0",
        ),
        (one(started_at_commit="-x"), f"tasks[0].started_at_commit: is '-x', must be {GIT}"),
        (
            one(validation={"command": "a\0b"}),
            f"tasks[0].validation.command: is 'a\\x00b', must be {SHELL}",
        ),
        (one(validation={"protect": [""]}), "tasks[0].validation.protect[0]: must not be empty"),
        (
            one(validation={"protect": ["\0"]}),
            "tasks[0].validation.protect[0]: is '\\x00', must be a pattern of paths",
        ),
    ],
)
def test_what_is_wrong_is_said_in_these_words(document: object, problem: str) -> None:
    assert said(document) == [problem]


def test_a_list_of_a_newer_harness_is_not_to_be_corrected() -> None:
    with pytest.raises(ContractError) as raised:
        codec.decode({"version": 3, "tasks": [{"id": "t1", "status": "asleep"}]})

    assert str(raised.value) == (
        "harness-tasks.json: version: is 3: made by a newer harness, upgrade this one"
    )
    assert "correct" not in (raised.value.hint or "")
    assert "Update harness" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("field", "may_be_of_newer"),
    [("halt_kind", True), ("outcome", True), ("status", False), ("priority", False)],
)
def test_a_word_that_harness_itself_writes_may_be_of_a_newer_one(
    field: str, *, may_be_of_newer: bool
) -> None:
    """Such a list keeps its version: a halt of a new kind is one word more."""
    with pytest.raises(ContractError) as raised:
        codec.decode(one(**{field: "NOVEL"}))

    hint = raised.value.hint or ""
    assert hint.startswith("correct the named fields")
    assert ("update harness on this machine" in hint) == may_be_of_newer


def test_an_id_of_a_hundred_characters_and_a_whole_number_with_a_point_are_taken() -> None:
    (task,) = codec.decode(one(id="x" * 100, attempts=3.0)).tasks

    assert (task.id, task.attempts, type(task.attempts)) == ("x" * 100, 3, int)
    assert codec.decode({"tasks": [], "version": 2.0}) == codec.decode({"tasks": []})


def test_a_value_of_sixty_characters_is_shown_whole() -> None:
    # With its quotes.
    assert f"is '{'x' * 58}', must" in said(one(status="x" * 58))[0]
    assert f"is '{'x' * 59}…, must" in said(one(status="x" * 59))[0]
    assert f"is '{'x' * 59}…, must" in said(one(status="x" * 6000))[0]


def message(count: int) -> list[str]:
    with pytest.raises(ContractError) as caught:
        codec.decode({"tasks": [{"id": f"t{n}", "status": "done"} for n in range(count)]}, "the list")
    hint = "correct the named fields in the file, then look again: harness check (the user can restore the"
    assert caught.value.hint == f"{hint} last good list, if one is left: harness check --restore)"
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

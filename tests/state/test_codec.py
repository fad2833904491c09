"""Reading is strict and says where; what is written reads back as the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from harness_lib.state import codec, reading
from harness_lib.state.codec import ContractError, UnparseableError
from harness_lib.task import State, Task
from tests.state.any_state import json_values, states
from tests.state.documents import said


@settings(max_examples=25)
@given(states)
def test_what_is_written_reads_back_as_the_same(state: State) -> None:
    document = json.loads(codec.render(state))

    assert document == codec.encode(state)
    assert codec.decode(document) == state
    assert reading.trusted(State)(document) == state


def test_a_valid_example_is_read_and_survives_writing(valid: Any) -> None:
    """We read what we wrote alike whether it is trusted or not."""
    state = codec.decode(valid)
    text = codec.render(state)

    assert codec.decode(json.loads(text)) == state
    assert reading.trusted(State)(json.loads(text)) == state
    assert codec.decode_rendered(text, {})[0] == state


def test_a_broken_example_is_refused_at_its_path(invalid: tuple[str, Any]) -> None:
    path, document = invalid

    assert path in [(problem.partition(": ")[0]).removeprefix("(top level)") for problem in said(document)]


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
    assert codec.decode(codec.parse(codec.render(state).encode())) == state


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

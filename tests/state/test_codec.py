"""Reading is strict and says where; what is written reads back as the same."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lib.state import codec
from harness_lib.state.codec import ContractError, UnparseableError
from harness_lib.task import (
    CATEGORIES,
    MODES,
    PRIORITIES,
    STATUSES,
    Checkpoint,
    Gate,
    Intent,
    OnFailure,
    Session,
    SessionConfig,
    State,
    Task,
    Validation,
)

texts = st.text(max_size=12)
shell_texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
moments = st.datetimes().map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20))
names = st.from_regex(r"[a-zA-Z0-9_:ä]{1,8}", fullmatch=True)
numbers = st.integers(0, 2**53 - 1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
extras = st.dictionaries(texts.map(lambda name: f"x-{name}") | st.just("extra"), json_values, max_size=2)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def tuples(strategy: st.SearchStrategy[Any], size: int = 3) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=size).map(tuple)


def records(kind: type, *known: Any, **fields: Any) -> st.SearchStrategy[Any]:
    """Draw records whose other fields are as they are by default; `st.builds` alone would make them up."""
    return st.builds(partial(kind), *known, **fields)


validations = records(
    Validation,
    command=maybe(shell_texts),
    timeout_seconds=st.integers(1, 10000),
    cwd=maybe(shell_texts),
    protect=tuples(shell_texts.filter(bool)),
    red_first=st.booleans(),
    extra=extras,
)
checkpoints = records(Checkpoint, numbers, numbers, texts, maybe(moments), tree=maybe(names), extra=extras)
gates = records(
    Gate, maybe(texts), maybe(shell_texts), maybe(names), maybe(names), maybe(names), extra=extras
)
intents = records(
    Intent,
    st.sampled_from(["commit", "rollback"]),
    moments,
    base=maybe(names),
    rescue=maybe(names),
    category=maybe(st.sampled_from(CATEGORIES)),
    message=maybe(texts),
    outcome=st.sampled_from(["failed", "pending"]),
    extra=extras,
)
sessions = records(
    Session, numbers, texts, texts, pid=maybe(st.integers(1, 2**22)), started_at=maybe(moments), extra=extras
)


@st.composite
def tasks(draw: st.DrawFn) -> tuple[Task, ...]:
    ids = draw(st.lists(names, max_size=4, unique=True))
    build = records(
        Task,
        title=texts,
        status=st.sampled_from(STATUSES),
        priority=st.sampled_from(PRIORITIES),
        depends_on=tuples(st.sampled_from(ids)) if ids else st.just(()),
        attempts=numbers,
        max_attempts=st.integers(1, 99),
        started_at_commit=maybe(names),
        validation=validations,
        on_failure=records(OnFailure, cleanup=maybe(shell_texts), extra=extras),
        error_log=tuples(texts),
        checkpoints=tuples(checkpoints),
        completed_at=maybe(moments),
        description=maybe(texts),
        claimed_by=maybe(texts),
        lease_expires_at=maybe(moments),
        worktree=maybe(shell_texts),
        fence=numbers,
        gate=maybe(gates),
        intent=maybe(intents),
        failed_at=maybe(moments),
        halt=maybe(texts),
        extra=extras,
        id=st.just("replaced below"),
    )
    return tuple(Task(name, **_fields(draw(build))) for name in ids)


def _fields(task: Task) -> dict[str, Any]:
    return {name: getattr(task, name) for name in Task._fields if name != "id"}


states = records(
    State,
    created=maybe(moments),
    session_config=records(
        SessionConfig,
        concurrency_mode=st.sampled_from(MODES),
        max_tasks_per_session=numbers,
        max_sessions=numbers,
        extra=extras,
    ),
    tasks=tasks(),
    session_count=numbers,
    last_session=maybe(moments),
    sessions=maybe(tuples(sessions)),
    extra=extras,
)


def paths(document: object) -> list[str]:
    with pytest.raises(ContractError) as caught:
        codec.decode(document)
    return [problem.path for problem in caught.value.problems]


def one(**fields: object) -> dict[str, Any]:
    return {"tasks": [{"id": "t1", "status": "pending", **fields}]}


@settings(max_examples=60)
@given(states)
def test_what_is_written_reads_back_as_the_same(state: State) -> None:
    document = json.loads(codec.render(state))

    assert document == codec.encode(state)
    assert codec.decode(document) == state
    assert codec.decode_trusted(document) == state


def test_what_we_wrote_is_read_alike_whether_it_is_trusted_or_not(valid: Any) -> None:
    state = codec.decode(valid)
    text = codec.render(state)

    assert codec.decode_trusted(json.loads(text)) == state
    assert codec.decode_rendered(text, {})[0] == state


def test_a_valid_example_is_read_and_survives_writing(valid: Any) -> None:
    state = codec.decode(valid)

    assert codec.decode(json.loads(codec.render(state))) == state


def test_a_broken_example_is_refused_at_its_path(invalid: tuple[str, Any]) -> None:
    path, document = invalid

    assert path in paths(document)


def test_only_id_and_status_are_needed() -> None:
    assert codec.decode({"tasks": [{"id": "t1", "status": "completed"}]}).tasks == (
        Task("t1", status="completed"),
    )


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


def test_a_limit_that_is_not_named_is_no_limit() -> None:
    config = codec.decode({"tasks": []}).session_config

    assert (config.max_tasks_per_session, config.max_sessions) == (0, 0)


def test_every_problem_is_told_with_its_place() -> None:
    document = {
        "version": 7,
        "tasks": [{"id": "a", "status": "done", "attempts": "1"}, {"id": "b b", "status": "pending"}],
    }

    assert paths(document) == ["version", "tasks[0].status", "tasks[0].attempts", "tasks[1].id"]


def test_a_thousand_problems_make_a_short_message() -> None:
    with pytest.raises(ContractError) as caught:
        codec.decode({"tasks": [{"id": f"t{n}", "status": "done"} for n in range(1000)]})

    assert len(caught.value.problems) == 1000
    assert len(caught.value.message.splitlines()) == 21
    assert "980 more" in caught.value.message


def test_ten_megabytes_of_title_make_a_short_message() -> None:
    with pytest.raises(ContractError, match="at most 1000") as caught:
        codec.decode(one(title="x" * 10_000_000))

    assert len(caught.value.message) < 200


def test_a_long_unknown_status_is_cut_in_the_message() -> None:
    with pytest.raises(ContractError) as caught:
        codec.decode({"tasks": [{"id": "t", "status": "x" * 10_000_000}]})

    assert len(caught.value.message) < 300


def test_ids_are_unique() -> None:
    twice = {"tasks": [{"id": "a", "status": "pending"}, {"id": "a", "status": "pending"}]}

    assert paths(twice) == ["tasks[1].id"]


def test_a_dependency_on_nothing_is_an_error() -> None:
    assert paths(one(depends_on=["t1", "t2"])) == ["tasks[0].depends_on[1]"]


def test_a_broken_task_does_not_make_its_dependents_look_broken() -> None:
    document = {
        "tasks": [{"id": "a", "status": "done"}, {"id": "b", "status": "pending", "depends_on": ["a"]}]
    }

    assert paths(document) == ["tasks[0].status"]


def test_a_newer_version_asks_for_an_upgrade() -> None:
    with pytest.raises(ContractError, match="newer harness, upgrade"):
        codec.decode({"version": 3, "tasks": []})


def test_half_a_surrogate_pair_leaves_a_file_that_is_utf_8() -> None:
    title = "\ud800 and \u2028"
    text = codec.render(codec.decode(one(title=title)))

    assert json.loads(text.encode("utf-8"))["tasks"][0]["title"] == title


@pytest.mark.parametrize("data", [b"", b"{", b'{"tasks": [NaN]}', b"\xff\xfe\x00", b"{'tasks': []}", b"[1,]"])
def test_what_is_not_json_is_unparseable(data: bytes) -> None:
    with pytest.raises(UnparseableError):
        codec.parse(data)


def test_a_word_that_only_python_reads_is_named() -> None:
    with pytest.raises(UnparseableError, match=r"^NaN is not JSON: line 1 column 1 \(char 0\)$"):
        codec.parse(b'{"tasks": [NaN]}')


@pytest.mark.parametrize(
    "data", [b"[" * 100_000 + b"]" * 100_000, b"9" * 5000], ids=["nested deep", "5000 digits"]
)
def test_json_that_python_cannot_hold_is_no_reason_to_restore(data: bytes) -> None:
    with pytest.raises(ContractError):
        codec.parse(data)


def repeated(text: str) -> list[str]:
    with pytest.raises(ContractError) as caught:
        codec.parse(text.encode())
    return [str(problem) for problem in caught.value.problems]


def test_a_key_that_stands_twice_is_an_error_at_its_path() -> None:
    text = """{"tasks": [{"id": "a", "status": "pending"},
                         {"id": "b", "status": "completed", "status": "pending"}]}"""

    assert repeated(text) == ["tasks[1].status: stands 2 times; only one can be meant"]


def test_every_repeated_key_is_told_in_its_order_at_any_depth() -> None:
    text = """{"x-mine": {"deep": [[{"a": 1, "a": {"b": 2, "b": 3}}]]},
               "version": 2, "version": 2, "version": 2, "tasks": []}"""

    assert [problem.split(":")[0] for problem in repeated(text)] == [
        "version",
        "x-mine.deep[0][0].a",
        "x-mine.deep[0][0].a.b",
    ]


def test_what_a_repeated_key_hid_is_told_by_its_name() -> None:
    assert repeated('{"tasks": [{"id": "a", "id": "b"}], "tasks": []}') == [
        "tasks: stands 2 times; only one can be meant"
    ]


def test_a_long_repeated_key_makes_a_short_message() -> None:
    key = "x" * 1_000_000

    assert len(repeated(f'{{"{key}": {{"{key}": 1, "{key}": 2}}}}')[0]) < 200


def test_a_repeated_key_of_sixty_characters_is_shown_whole() -> None:
    for key, shown in {"x" * 60: "x" * 60, "x" * 61: "x" * 60 + "…"}.items():
        inner = f'{{"{key}": 1, "{key}": 2}}'
        told = "stands 2 times; only one can be meant"
        assert repeated(inner) == [f"{shown}: {told}"]
        assert repeated(f'{{"{key}": [{inner}]}}') == [f"{shown}[0].{shown}: {told}"]


def nested(names: list[str]) -> list[str]:
    """Return what is said of a key that stands twice below `names`."""
    inside = '{"a": 1, "a": 2}'
    for name in reversed(names):
        inside = f'{{"{name}": {inside}}}'
    return [problem.partition(":")[0] for problem in repeated(inside)]


def test_of_a_path_that_never_ends_a_thousand_characters_are_told() -> None:
    just = ["bb", *["c"] * 499]
    more = ["b", *just]

    assert nested(just) == [f"{'.'.join(just)}.a"]
    assert len(".".join(just)) == 1000
    assert nested(more) == [f"…{'.'.join(more)[-1000:]}.a"]


def test_deep_nesting_under_a_repeated_key_breaks_nothing() -> None:
    inner = '{"a": ' * 900 + "1" + "}" * 900

    assert len(repeated(f'{{"tasks": [], "tasks": {inner}}}')) == 1


@given(json_values)
def test_what_json_writes_repeats_nothing(value: Any) -> None:
    assert codec.parse(json.dumps(value).encode()) == value


def test_a_byte_order_mark_does_no_harm() -> None:
    assert codec.parse(b'\xef\xbb\xbf{"tasks": []}') == {"tasks": []}


def test_an_unknown_number_beyond_floating_point_does_not_break_the_file() -> None:
    state = codec.decode(codec.parse(b'{"tasks": [], "x-big": -1e999}'))

    assert codec.decode(codec.parse(codec.render(state).encode())) == state


@pytest.mark.parametrize("data", [b"[" * 200_000, b'{"a": ' + b"9" * 10_000 + b"}"], ids=["deep", "long"])
def test_what_cannot_be_held_is_a_problem_of_the_whole_document(data: bytes) -> None:
    with pytest.raises(ContractError) as raised:
        codec.parse(data)

    assert [problem.path for problem in raised.value.problems] == [""]

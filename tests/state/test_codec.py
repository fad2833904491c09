"""Reading is strict and says where; what is written reads back as the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from harness_lib.state import codec
from harness_lib.state.codec import ContractError
from harness_lib.task import State, Task
from tests.state.any_state import states


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

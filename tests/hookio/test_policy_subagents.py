"""What a hook decides for subagents: whom it names, and whom it holds for a task of their own."""

from __future__ import annotations

import pytest

from harness_lib.hookio import messages, policy
from harness_lib.hookio.situation import Situation, Tally
from harness_lib.task import Task
from tests.hookio.situations import (
    BUSY,
    DONE,
    MINE,
    PENDING,
    TORN,
    allowed,
    by_the_prose,
    make_situation,
    payload,
    said,
)


@pytest.mark.parametrize(
    ("who", "workers", "held"),
    [
        ({"agent_id": "sub-1"}, [], True),
        ({"teammate_name": "sub-1"}, [], True),
        ({"agent_id": "x"}, ["sub-1"], True),
        ({"agent_id": "sub-2"}, [], False),
        ({}, ["sub-2"], False),
        ({}, [], True),
    ],
)
def test_a_subagent_is_held_while_it_owns_a_task(
    who: dict[str, object], workers: list[str], *, held: bool
) -> None:
    task = Task("a", status="in_progress", claimed_by="sub-1")
    situation = make_situation(task, PENDING, mine=False, workers=workers)

    assert policy.subagent_stop(situation, payload("SubagentStop", **who)).kind == (
        "block" if held else "allow"
    )


BEGIN: dict[str, tuple[Situation, str, bool]] = {
    "many share the list": (make_situation(PENDING, mode="concurrent", mine=False), "sub-1", True),
    "its parent works on it": (make_situation(MINE, mode="concurrent"), "sub-1", True),
    "the list is for one": (make_situation(PENDING), "sub-1", False),
    "nothing is left": (make_situation(DONE, mode="concurrent"), "sub-1", False),
    "it has no name": (make_situation(PENDING, mode="concurrent"), "", False),
    "its name is no word in a shell": (make_situation(PENDING, mode="concurrent"), "$(id) x", False),
    "unreadable": (TORN, "sub-1", False),
}


@pytest.mark.parametrize("row", BEGIN, ids=lambda row: row.replace(" ", "-"))
def test_a_subagent_begins(row: str) -> None:
    situation, name, named = BEGIN[row]

    answer = policy.subagent_start(situation, payload("SubagentStart", agent_id=name))

    assert (answer.kind == "context") is named
    assert ("HARNESS_WORKER_ID=sub-1 HARNESS claim" in answer.text) is named


def test_a_task_that_nobody_is_named_for_is_no_subagents() -> None:
    situation = make_situation(Task("a", status="in_progress"), mine=False)

    assert policy.subagent_stop(situation, payload("SubagentStop", agent_id="sub-1")).kind == "allow"


def test_a_held_subagent_is_told_of_its_task_and_measured_by_it() -> None:
    mine, other = Task("a", "T", status="in_progress", claimed_by="sub-1", attempts=1), BUSY._replace(id="b")
    situation = make_situation(mine, other, PENDING, mine=False)
    assert situation.digest is not None
    own = situation.digest["in_progress"][:1]

    answer = policy.subagent_stop(situation, payload("SubagentStop", agent_id="sub-1"))

    assert said(answer) == ("block", messages.stop(situation, own), "", "sub-1 a/1/0", False, False)
    nameless = policy.subagent_stop(make_situation(mine, workers=["sub-1"]), payload("SubagentStop"))
    assert nameless.progress == "subagent a/1/0"
    situation.tally = Tally("sub-1 a/1/0", 8)
    released = policy.subagent_stop(situation, payload("SubagentStop", agent_id="sub-1"))
    assert said(released) == allowed(messages.released(8, "HARNESS"), "sub-1 a/1/0")


@pytest.mark.parametrize(
    ("situation", "fields", "kind"),
    [
        (make_situation(BUSY._replace(halt="CONFIG"), workers=["me"]), {}, "allow"),
        (by_the_prose(BUSY), {}, "block"),
        (by_the_prose(BUSY), {"stop_hook_active": True}, "allow"),
        (make_situation(BUSY, workers=["me"]), {"stop_hook_active": True}, "block"),
        (make_situation(BUSY, workers=["me"], trouble="torn"), {}, "allow"),
        (TORN, {}, "allow"),
    ],
)
def test_when_a_subagent_may_stop(situation: Situation, fields: dict[str, object], kind: str) -> None:
    assert policy.subagent_stop(situation, payload("SubagentStop", **fields)).kind == kind


@pytest.mark.parametrize("name", ["a-b_c.d@e:f", "sub1", "X"])
def test_a_plain_name_is_told_as_it_is(name: str) -> None:
    situation = make_situation(PENDING, mode="concurrent")

    answer = policy.subagent_start(situation, payload("SubagentStart", agent_id=name))

    assert said(answer) == ("context", messages.subagent(situation, name), "", "", False, False)


@pytest.mark.parametrize("name", ["\u00e9", "a b", "-_", "a/b", "a$b"])
def test_a_name_that_is_none_in_a_shell_is_not_told(name: str) -> None:
    situation = make_situation(PENDING, mode="concurrent")

    assert policy.subagent_start(situation, payload("SubagentStart", agent_id=name)).kind == "allow"


def test_a_subagent_of_a_list_that_cannot_be_read_is_told_nothing() -> None:
    situation = make_situation(PENDING, mode="concurrent", trouble="torn")

    assert policy.subagent_start(situation, payload("SubagentStart", agent_id="sub-1")).kind == "allow"

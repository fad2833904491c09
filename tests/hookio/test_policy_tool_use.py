"""What a hook decides around the use of a tool: which edits it refuses, and whose lease a command renews."""

from __future__ import annotations

import pytest

from harness_lib.hookio import messages, policy
from harness_lib.hookio.situation import Situation
from harness_lib.task import Task
from tests.hookio.situations import MINE, PENDING, THEIRS, TORN, make_situation, payload, said


@pytest.mark.parametrize(
    ("situation", "path", "kind"),
    [
        (make_situation(PENDING), "harness-tasks.json", "deny"),
        (make_situation(PENDING), "harness-tasks.json.bak", "deny"),
        (make_situation(PENDING), "src/harness-tasks.json", "allow"),
        (make_situation(PENDING, sessions=None), "harness-tasks.json", "allow"),
        (TORN, "harness-tasks.json", "allow"),
    ],
)
def test_only_a_whole_list_of_ours_is_closed_to_editors(situation: Situation, path: str, kind: str) -> None:
    assert policy.pre_tool_use(situation, ["README.md", path]).kind == kind


@pytest.mark.parametrize(
    ("situation", "worker"),
    [
        (make_situation(MINE, mode="concurrent"), "me"),
        (make_situation(MINE), None),
        (make_situation(THEIRS, mode="concurrent"), None),
        (make_situation(Task("a", status="in_progress", claimed_by="me"), mode="concurrent"), None),
        (TORN, None),
    ],
)
def test_a_beat_is_for_the_holder_of_a_lease(situation: Situation, worker: str | None) -> None:
    assert policy.beating(situation, payload("PostToolUse")) == worker


def test_of_several_edited_files_the_kept_one_is_refused_by_its_name() -> None:
    answer = policy.pre_tool_use(make_situation(PENDING), ["a", ".harness-active", "harness-tasks.json"])

    assert said(answer) == ("deny", messages.deny(".harness-active", "HARNESS"), "", "", False, False)
    assert (
        policy.pre_tool_use(make_situation(PENDING, trouble="torn"), ["harness-tasks.json"]).kind == "allow"
    )


def test_a_beat_is_no_subagents_unless_it_is_named() -> None:
    task = MINE._replace(claimed_by="sub-1")
    shared = make_situation(THEIRS, task, mode="concurrent")

    assert policy.beating(shared, payload("PostToolUse", agent_id="sub-1")) == "sub-1"
    assert policy.beating(shared, payload("PostToolUse")) is None
    assert (
        policy.beating(make_situation(MINE, mode="concurrent", trouble="torn"), payload("PostToolUse"))
        is None
    )

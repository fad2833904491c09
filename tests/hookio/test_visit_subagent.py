"""A whole visit of subagents and teammates: each is held for its own task and counted by its own name."""

from __future__ import annotations

import json

from harness_lib.hookio import policy
from harness_lib.system.place import checkout
from harness_lib.system.place.roots import Root
from harness_lib.task import Task
from tests.hookio.visits import BELL, ME, Heard, Visit, keep, kept, make


def test_a_subagent_is_told_its_name_where_many_share_the_list(root: Root, visit: Visit) -> None:
    make(root, Task("a"), mode="concurrent")

    said = json.loads(visit("SubagentStart", agent_id="sub-1").out)["hookSpecificOutput"]

    assert said["hookEventName"] == "SubagentStart"
    assert f"HARNESS_WORKER_ID=sub-1 {checkout.LAUNCHER} claim" in said["additionalContext"]


def test_a_subagent_is_held_for_its_task_and_forgotten_when_it_goes(root: Root, visit: Visit) -> None:
    make(root, Task("a", status="in_progress", claimed_by="sub-1"), mode="concurrent")
    keep(root, f"{ME} {BELL} sub-2")

    assert "You hold a." in visit("SubagentStop", agent_id="sub-1").reason
    assert kept(root, f"{ME} {BELL} sub-1").progress == "sub-1 a/0/0"
    assert visit("SubagentStop", agent_id="sub-2") == Heard(0, "", "")
    assert kept(root, f"{ME} {BELL} sub-2").blocks == 0
    # By the name that its parent has given it, and not by its parent's own.
    assert visit("SubagentStop", env={"HARNESS_WORKER_ID": "sub-1"}).reason
    assert visit("SubagentStop", env={"HARNESS_WORKER_ID": "me"}, agent_id="x").out == ""


def test_a_subagent_that_gets_nowhere_is_let_go_in_the_end(root: Root, visit: Visit) -> None:
    make(root, Task("a", status="in_progress", claimed_by="sub-1"), mode="concurrent")

    heard = [visit("SubagentStop", agent_id="sub-1") for _ in range(policy.PATIENCE + 1)]

    assert [bool(each.out) for each in heard] == [True] * policy.PATIENCE + [False]


def test_an_idle_teammate_is_kept_and_counted_by_its_name(root: Root, visit: Visit) -> None:
    make(root, Task("a"), mode="concurrent")

    heard = visit("TeammateIdle", teammate_name="mate")

    assert (heard.code, heard.out) == (2, "")
    assert "Next is a." in heard.err
    assert kept(root, f"{ME} {BELL} mate").progress == "waiting a"


def test_a_teammate_that_gets_nowhere_is_let_go_in_the_end(root: Root, visit: Visit) -> None:
    make(root, Task("a"), mode="concurrent")

    heard = [visit("TeammateIdle", teammate_name="mate") for _ in range(policy.PATIENCE + 1)]

    assert [each.code for each in heard] == [2] * policy.PATIENCE + [0]

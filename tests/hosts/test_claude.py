"""Claude Code: who is held, what an agent may not do, and a goal of its own."""

from __future__ import annotations

import json

import pytest

from tests.hosts.agents import TIRED, launcher, obey, stops_after_each_task
from tests.hosts.chores import WORK, assert_all_done, one_task, three_tasks
from tests.hosts.claude import Claude, ClaudeRan
from tests.hosts.machine import Machine
from tests.hosts.model import VERDICT, Model
from tests.hosts.talk import Call, Request, Say, Script, says


@pytest.fixture(autouse=True)
def _skill(with_skill: None) -> None:
    """Have the skill in the user's own skill folder."""


def test_it_holds_until_the_list_is_done_and_lets_go(claude: Claude, model: Model, machine: Machine) -> None:
    """An agent that wants to stop after each task is sent back with the next command, once each time."""
    three_tasks(machine)
    model.play(stops_after_each_task(WORK))

    ran = claude("/harness run")

    assert (ran.code, ran.result) == (0, TIRED)
    assert_all_done(machine)
    # After the start, the first task, the failed attempt and the second task.
    assert len(ran.blocks()) == 4
    # The page brings the same hooks along: each event still fires once.
    assert len(ran.hooks("Stop")) == 5


@pytest.mark.release
def test_a_fork_is_another_session(claude: Claude, model: Model, machine: Machine) -> None:
    """A fork of the session that works on the list is not held, although it remembers the same."""
    one_task(machine)
    forks: list[ClaudeRan] = []

    def forked(request: Request) -> Script:
        harness = launcher(request.everything)
        request = yield request.shell(f"{harness} start && echo id=$CLAUDE_CODE_SESSION_ID")
        session = request.last.rpartition("id=")[2].split()[0]
        forks.append(claude("FORKED: and now?", "--resume", session, "--fork-session"))
        yield from obey(request, harness, "claim", WORK)

    model.play(forked)
    model.play(says("I only look."), when="FORKED")

    claude("/harness run")

    assert [(fork.result, fork.blocks()) for fork in forks] == [("I only look.", [])]
    assert machine.statuses == ["completed"]


@pytest.mark.release
def test_it_may_wait_for_a_finish_in_the_background(claude: Claude, model: Model, machine: Machine) -> None:
    """Claude Code puts a command there after two minutes, forbids to type it again, and tells of its end."""
    machine.add("Check it slowly", "--validate", "sleep 3")

    def waits(request: Request) -> Script:
        harness = launcher(request.everything)
        yield request.shell(f"{harness} start && {harness} claim")
        finish = {"command": f"{harness} finish", "description": "finish", "run_in_background": True}
        yield Say(calls=(Call("Bash", finish),))
        request = yield Say(TIRED)
        assert "<task-notification>" in request.last
        yield from obey(request, harness, "validate --all --committed", WORK)

    model.play(waits)

    assert claude("/harness run").blocks() == []
    assert machine.statuses == ["completed"]


# -- an idle teammate, the lease, and what an agent may not do


TEAM = ["--agent-id", "worker1@builders", "--agent-name", "worker1", "--team-name", "builders"]


@pytest.mark.release
def test_a_teammate_does_not_idle_while_it_has_a_task(claude: Claude, model: Model, machine: Machine) -> None:
    """A teammate that wants to idle with a task of its own in progress is sent back to it by TeammateIdle."""
    one_task(machine)
    machine.harness("edit", "--mode", "concurrent").check()
    machine.harness("claim", env={"HARNESS_WORKER_ID": "worker1"}).check()

    def works(request: Request) -> Script:
        harness = f"HARNESS_WORKER_ID=worker1 {launcher(request.everything)}"
        request = yield Say(TIRED)
        assert "TeammateIdle hook feedback" in request.last
        assert "task-001" in request.last
        yield request.shell(WORK["task-001"][0])
        yield from obey(request, harness, "finish", WORK)

    model.play(works)

    ran = claude("Work.", *TEAM, env={"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"})

    assert [hook["exit_code"] for hook in ran.hooks("TeammateIdle")] == [2, 0]
    assert machine.statuses == ["completed"]


@pytest.mark.release
def test_work_renews_the_lease(claude: Claude, model: Model, machine: Machine) -> None:
    """A tool call of an agent that holds a task with a lease renews it, without the agent's doing."""
    one_task(machine)
    machine.harness("edit", "--mode", "concurrent").check()
    worker = {"HARNESS_WORKER_ID": "worker1"}
    machine.harness("claim", env={**worker, "HARNESS_LEASE_SECONDS": "900"}).check()
    lease = machine.state["tasks"][0]["lease_expires_at"]

    def works(request: Request) -> Script:
        request = yield request.shell("ls")
        loop = f"for i in $(seq 300); do grep -q {lease} harness-tasks.json || break; sleep 0.1; done"
        yield request.shell(loop)
        # So that the agent may stop.
        yield request.shell(f"{launcher(request.everything)} pause")

    model.play(works)

    claude("Work.", env=worker)

    assert machine.state["tasks"][0]["lease_expires_at"] > lease


@pytest.mark.release
def test_the_list_is_not_edited_by_hand(claude: Claude, model: Model, machine: Machine) -> None:
    """A tool that would write the list is refused, and the model is told what to type instead."""
    one_task(machine)
    before = machine.state

    def cheats(request: Request) -> Script:
        file = {"file_path": str(machine.tasks_file)}
        yield Say(calls=(Call("Read", file),))
        request = yield Say(calls=(Call("Write", {**file, "content": json.dumps({"tasks": []})}),))
        assert "harness edit" in request.last
        yield Say("Then not.")

    model.play(cheats)

    assert claude("/harness run").result == "Then not."
    assert machine.state == before


# -- Claude Code's own `/goal` beside our Stop hook: each holds the agent for its own reason


@pytest.mark.release
@pytest.mark.parametrize(
    "reached",
    ["with the list", "at once", "after the list"],
)
def test_goal_and_list_hold_together(claude: Claude, model: Model, machine: Machine, reached: str) -> None:
    """Neither ends the other: the list is done, and the goal is reached, before the agent may stop."""
    one_task(machine)
    stops: list[str] = []
    heard: list[str] = []

    def is_reached() -> bool:
        stops.append(machine.statuses[0])
        return {
            "with the list": stops[-1] == "completed",
            "at once": True,
            "after the list": stops.count("completed") > 1,
        }[reached]

    def works(request: Request) -> Script:
        harness = launcher(request.everything)
        request = yield request.shell(f"{harness} start")
        request = yield Say(TIRED)
        heard.append(request.last)
        request = yield from obey(request, harness, "claim", WORK)
        request = yield Say(TIRED)
        heard.append(request.last)
        yield Say(TIRED)

    model.judge = is_reached
    model.play(works)

    ran = claude("/goal every task of the list is completed")

    assert (ran.code, ran.result) == (0, TIRED)
    assert machine.statuses == ["completed"]
    assert not machine.enable_flag.exists()
    # Ours, once, in words of its own; the goal's as long as it is not reached.
    assert len(ran.blocks()) == 1
    assert ran.blocks()[0].startswith("harness: ")
    assert ran.blocks()[0] in heard[0]
    assert [VERDICT in said for said in heard] == {
        "with the list": [True],
        "at once": [False],
        "after the list": [True, True],
    }[reached]

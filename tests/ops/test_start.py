"""`harness start` opens a session in the seed's order, for one owner at a time, and only if there is work."""

from __future__ import annotations

import pytest

from harness_lib.system import seedlock
from tests.ops.conftest import Make
from tests.ops.project import Agent, Project

SCRIPT = "#!/bin/sh\necho run >> runs.txt\n"


def script(project: Project, text: str = SCRIPT) -> None:
    path = project.put("harness-init.sh", text)
    path.chmod(0o755)


# -- who may have the session


def test_a_session_is_numbered_counted_and_logged(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")

    reply = agent.ok("start")

    assert reply["session"] == 1
    assert reply["next"] == "harness claim"
    assert reply["task"]["id"] == "task-001"
    assert project.task()["status"] == "pending"
    assert project.state["session_count"] == 1
    assert [s["number"] for s in project.state["sessions"]] == [1]
    assert len(project.grep("[SESSION-1] LOCK acquired (pid=")) == 1


def test_its_live_owner_calling_again_gets_the_brief_and_nothing_is_recovered(
    project: Project, agent: Agent
) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")
    agent.ok("claim")
    before = project.file.read_bytes()

    reply = agent.ok("start")

    assert reply["task"]["id"] == "task-001"
    assert reply["next"] == "harness finish task-001"
    assert "check: true" in reply["message"]
    assert project.file.read_bytes() == before


def test_a_second_owner_gets_exit_5_and_hears_who_has_it(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")
    before = project.file.read_bytes()

    other = project.agent("other")
    error = other.fails(5, "start")["error"]

    assert error["kind"] == "HELD"
    assert f"Session 1 of agent (pid {agent.process.pid}" in error["message"]
    assert "harness stop --session 1" in error["hint"]
    for verb in (("claim",), ("finish",), ("recover",), ("checkpoint", "task-001", "1/2", "x"), ("release",)):
        other.fails(5, *verb)
    assert project.file.read_bytes() == before


def test_a_person_can_end_it_by_its_number(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")
    person = project.agent("person")

    person.ok("stop", "--session", "1")

    assert project.state["sessions"] == []
    assert person.ok("start")["session"] == 2


def test_a_dead_owner_is_folded_and_what_it_left_is_recovered(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "test -f done")
    agent.ok("claim")
    agent.die()

    reply = project.agent("next").ok("start")

    assert reply["session"] == 2
    assert "No progress detected" in reply["recovered"][0]
    assert project.task()["status"] == "failed"
    assert project.task()["attempts"] == 1
    assert len(project.grep("[SESSION-1] WARN", "gone without")) == 1
    assert [s["worker"] for s in project.state["sessions"]] == ["next"]


def test_a_restarted_agent_with_the_same_id_goes_on_with_its_checkpoint(
    project: Project, agent: Agent
) -> None:
    """CLAUDE_CODE_SESSION_ID names the worker where HARNESS_WORKER_ID does not; `--resume` keeps it."""
    agent.env = {"HARNESS_WORKER_ID": None, "CLAUDE_CODE_SESSION_ID": "abc-1"}
    agent.ok("add", "One", "--validate", "test -f done")
    agent.ok("claim")
    assert project.task()["claimed_by"] == "abc-1"
    agent.die()
    agent.wake()

    project.put("done")
    agent.ok("finish")

    assert project.task()["status"] == "completed"


def test_the_worker_id_wins_over_the_agents_own(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")

    agent.ok("claim", CLAUDE_CODE_SESSION_ID="abc-1")

    assert project.task()["claimed_by"] == "agent"
    assert project.state["sessions"][0]["agent_session_id"] == "abc-1"


def test_without_any_name_the_owner_process_is_the_worker(project: Project, agent: Agent) -> None:
    agent.env = {"HARNESS_WORKER_ID": None}
    other = project.agent(HARNESS_WORKER_ID=None)
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")

    other.fails(5, "start")
    agent.die()

    assert other.ok("start")["session"] == 2


def test_for_an_exclusive_session_the_lock_of_the_prose_stands_too(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")
    path = seedlock.path_for(project.top)

    held = seedlock.look(path)

    assert held is not None
    assert held.pid == agent.process.pid
    agent.ok("stop")
    assert seedlock.look(path) is None


# -- when there is nothing to do


def test_an_empty_list_is_done_whoever_asks(project: Project, agent: Agent) -> None:
    for verb in ("start", "claim"):
        reply = agent.fails(9, verb)

        assert reply["stop"] == {"reason": "done"}
    assert project.state["sessions"] == []
    assert not project.marker
    assert len(project.grep(" STATS ")) == 2


def test_a_finished_list_is_exit_9_and_not_5_for_a_second_owner(project: Project, agent: Agent) -> None:
    """State first, then eligibility, then the session."""
    agent.ok("add", "One", "--validate", "true")
    agent.ok("claim")
    agent.ok("finish")
    agent.ok("add", "Two")
    agent.ok("start")
    project.edit_task("task-002", status="completed")

    project.agent("other").fails(9, "start")


def test_what_is_blocked_is_recorded_with_its_reason(project: Project, agent: Agent) -> None:
    project.edit(
        tasks=[
            {"id": "a", "status": "failed", "attempts": 3, "max_attempts": 3},
            {"id": "b", "status": "pending", "depends_on": ["a"]},
            {"id": "c", "status": "pending", "depends_on": ["b"]},
        ]
    )

    assert agent.fails(9, "start")["stop"] == {"reason": "blocked"}
    assert project.task("b")["error_log"] == ["[DEPENDENCY] Blocked by failed a"]
    assert project.task("c")["error_log"] == ["[DEPENDENCY] Blocked by failed b"]
    assert len(project.grep("ERROR", "[DEPENDENCY]")) == 2


def test_a_ring_is_named(project: Project, agent: Agent) -> None:
    project.edit(
        tasks=[
            {"id": "a", "status": "pending", "depends_on": ["b"]},
            {"id": "b", "status": "pending", "depends_on": ["a"]},
            {"id": "self", "status": "pending", "depends_on": ["self"]},
        ]
    )

    agent.fails(9, "start")

    assert project.task("a")["error_log"] == ["[DEPENDENCY] Circular dependency detected: a -> b -> a"]
    assert project.task("self")["error_log"] == ["[DEPENDENCY] Circular dependency detected: self -> self"]


# -- limits


def test_as_many_sessions_run_as_the_limit_says_the_last_one_too(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    project.configure(max_sessions=2)

    for number in (1, 2):
        assert agent.ok("start")["session"] == number
        agent.ok("stop")

    assert agent.fails(9, "start")["stop"] == {"reason": "max_sessions"}
    assert agent.fails(9, "claim")["stop"] == {"reason": "max_sessions"}
    assert project.state["session_count"] == 2
    assert project.state["sessions"] == []


def test_zero_or_absent_is_no_limit(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    for limits in ({"max_sessions": 0, "max_tasks_per_session": 0}, {}):
        project.edit(session_count=99999, session_config={"concurrency_mode": "exclusive", **limits})

        agent.ok("start")
        agent.ok("stop")


def test_a_session_ends_after_as_many_attempts_as_it_may_failed_ones_count(
    project: Project, agent: Agent
) -> None:
    project.configure(max_tasks_per_session=2)
    agent.ok("add", "One", "--validate", "true")
    agent.ok("add", "Two", "--validate", "false")
    agent.ok("add", "Three", "--validate", "true")
    agent.ok("claim", "task-001")
    assert agent.ok("finish")["stop"] is None
    agent.ok("claim", "task-002")

    assert agent.fails(1, "finish")["stop"] == {"reason": "max_tasks_per_session"}

    assert agent.fails(9, "claim")["stop"] == {"reason": "max_tasks_per_session"}
    assert project.state["sessions"][0]["halt"] == "max_tasks_per_session"
    agent.ok("stop")
    assert agent.ok("claim")["task"]["id"] == "task-003"


# -- the environment


def test_the_init_script_runs_once_at_every_session_start(project: Project, agent: Agent) -> None:
    script(project)
    agent.ok("add", "One", "--validate", "true")

    agent.ok("start")
    agent.ok("start")

    assert project.read("runs.txt") == "run\n"
    assert len(project.grep("[SESSION-1] INIT Environment health check: PASS")) == 1


def test_a_script_that_is_not_executable_runs_too(project: Project, agent: Agent) -> None:
    project.put("harness-init.sh", SCRIPT)
    agent.ok("add", "One", "--validate", "true")

    agent.ok("start")

    assert project.read("runs.txt") == "run\n"


def test_a_script_that_fails_once_is_run_again(project: Project, agent: Agent) -> None:
    script(project, SCRIPT + 'test "$(wc -l < runs.txt)" -gt 1\n')
    agent.ok("add", "One", "--validate", "true")

    agent.ok("start")

    assert project.read("runs.txt") == "run\nrun\n"


def test_a_script_that_fails_twice_is_env_setup_and_no_session_is_left(
    project: Project, agent: Agent
) -> None:
    script(project, SCRIPT + "echo no database; exit 1\n")
    agent.ok("add", "One", "--validate", "true")

    for verb in ("start", "claim"):
        error = agent.fails(7, verb)["error"]

        assert "no database" in error["message"]
        assert "harness-init.log" in error["hint"]
    assert project.read("runs.txt") == "run\n" * 4
    assert project.state["sessions"] == []
    assert project.state["session_count"] == 0
    assert project.task()["attempts"] == 0
    assert len(project.grep("ERROR [ENV_SETUP] harness-init.sh failed twice")) == 2


# -- what the seed reads


def test_it_tells_of_git_and_of_the_log(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    project.put("tracked.txt", "stashed\n")
    project.git("stash")
    project.put("tracked.txt", "changed\n")

    reply = agent.ok("start")

    assert len(reply["git"]["log"]) == 1
    assert "tracked.txt" in reply["git"]["diff_stat"]
    assert len(reply["git"]["stashes"]) == 1
    assert "INIT" in reply["log"][0]


def test_a_list_made_by_the_prose_is_taken_up(make_project: Make) -> None:
    """No `sessions`, no gate, no fence, and a task in progress that names nobody."""
    project = make_project(bare=True)
    project.put(
        "harness-tasks.json",
        f"""{{"version": 2, "session_count": 3, "session_config": {{"max_sessions": 50}},
        "tasks": [{{"id": "task-001", "title": "x", "status": "in_progress", "priority": "P1",
        "started_at_commit": "{project.head[:7]}", "depends_on": [], "attempts": 0, "max_attempts": 3,
        "validation": {{"command": "test -f done", "timeout_seconds": 300}},
        "on_failure": {{"cleanup": null}}, "error_log": [], "checkpoints": [], "completed_at": null}}]}}""",
    )
    project.put("done")
    agent = project.agent()
    agent.ok("init")
    said = agent("start")

    assert said.code == 8, said.text
    assert "trust" in said.err
    assert (project.top / "done").exists()


@pytest.mark.parametrize("status", ["pending", "failed"])
def test_stop_without_a_session_is_fine_at_any_moment(project: Project, agent: Agent, status: str) -> None:
    agent.ok("add", "One", "--validate", "true")
    project.edit_task(status=status)

    assert "No session" in agent.ok("stop")["message"]
    agent.fails(2, "stop", "--session", "7")


def test_stop_leaves_the_work_in_place_and_the_next_session_recovers_it(
    project: Project, agent: Agent
) -> None:
    agent.ok("add", "One", "--validate", "test -f done")
    agent.ok("claim")
    project.put("half", "half\n")

    reply = agent.ok("stop")

    assert "task-001 stays in progress" in reply["message"]
    assert project.state["last_session"]
    assert project.marker
    assert project.read("half") == "half\n"
    assert len(project.grep("[SESSION-1] STATS tasks_total=1 completed=0 failed=0 pending=0")) == 1
    project.put("done")
    assert "mark completed" in agent.fails(9, "start")["recovered"][0]
    assert project.task()["status"] == "completed"
    assert "half" in project.in_commit()

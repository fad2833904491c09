"""`harness retry` gives a task its attempts back; `harness remove` takes one away that nobody needs."""

from __future__ import annotations

import shlex

from tests.verbs.project import Agent, Project, lose


def _fail(agent: Agent, task_id: str) -> None:
    agent.ok("claim", task_id)
    agent.fails(1, "finish")


def add(agent: Agent, title: str, *after: str, check: str = "true") -> None:
    """Add a task with one attempt that waits for `after`."""
    waits = [word for task in after for word in ("--depends-on", task)]
    agent.ok("add", title, "--validate", check, "--max-attempts", "1", *waits)


def statuses(project: Project) -> list[str]:
    return [task["status"] for task in project.state["tasks"]]


def test_a_task_that_failed_for_good_gets_its_attempts_back(project: Project, agent: Agent) -> None:
    add(agent, "First", check="false")
    _fail(agent, "task-001")
    assert not project.enable_flag
    said = agent.ok("retry", "task-001")
    task = project.task()
    assert (task["status"], task["attempts"]) == ("pending", 0)
    assert len(task["error_log"]) == 1
    assert said["message"] == "task-001 is pending again with 1 attempt (it was failed)."
    assert said["next"] == "harness start"
    assert project.enable_flag
    assert project.grep("WARN [task-001] reset by hand:")
    agent.ok("claim", "task-001")


def test_the_number_of_all_attempts_never_falls(project: Project, agent: Agent) -> None:
    for task_id in ("task-001", "task-002"):
        add(agent, task_id, check="false")
        _fail(agent, task_id)

    agent.ok("retry", "task-001")
    agent.ok("remove", "task-002")
    _fail(agent, "task-001")

    agent("stop")
    assert "attempts_total=3" in project.grep("STATS")[-1]


def test_what_it_had_blocked_is_revived_with_it_and_each_task_once(project: Project, agent: Agent) -> None:
    """A diamond, and a chain below it."""
    add(agent, "Top", check="false")
    add(agent, "Left", "task-001")
    add(agent, "Right", "task-001")
    add(agent, "Bottom", "task-002", "task-003")
    add(agent, "Alone", check="false")
    _fail(agent, "task-001")
    _fail(agent, "task-005")
    agent.fails(9, "claim")
    assert statuses(project) == ["failed"] * 5

    said = agent.ok("retry", "task-001")

    assert (said["revived"], said["revived_count"]) == (["task-002", "task-003", "task-004"], 3)
    assert said["message"].endswith(": task-002, task-003, task-004")
    assert statuses(project) == ["pending"] * 4 + ["failed"]
    assert project.task("task-003")["error_log"] == []
    assert len(project.grep("WARN", "reset by", "with task-001")) == 3


def test_a_ring_is_not_revived_and_stays_as_it_was(project: Project, agent: Agent) -> None:
    """Retrying a member names the ring: it would fail again at once."""
    add(agent, "One")
    add(agent, "Two", "task-001")
    project.edit_task("task-001", depends_on=["task-002"])
    assert agent.fails(9, "claim")["stop"] == {"reason": "blocked"}
    assert "task-001 -> task-002 -> task-001" in project.task()["error_log"][0]
    before = project.file.read_bytes()

    assert "task-001 -> task-002 -> task-001" in agent.fails(2, "retry", "task-001")["message"]
    assert project.file.read_bytes() == before


def test_what_another_failure_blocks_too_stays_failed(project: Project, agent: Agent) -> None:
    """The cause is named, for the task would fail again at once."""
    add(agent, "First", check="false")
    add(agent, "Second", check="false")
    add(agent, "Both", "task-001", "task-002")
    _fail(agent, "task-001")
    _fail(agent, "task-002")
    agent.fails(9, "claim")
    assert agent.ok("retry", "task-001")["revived"] == []
    assert project.task("task-003")["status"] == "failed"
    before = project.file.read_bytes()

    assert "task-002" in agent.fails(2, "retry", "task-003")["message"]
    # All that are named, or none.
    agent.fails(2, "retry", "task-002", "task-004")
    assert project.file.read_bytes() == before
    assert agent.ok("retry", "task-002", "task-001")["revived"] == ["task-003"]


def test_a_completed_task_can_be_done_again_and_a_new_one_not(project: Project, agent: Agent) -> None:
    add(agent, "First")
    before = project.file.read_bytes()
    said = agent.ok("retry", "task-001", "task-001")["message"]
    assert said == "task-001 has nothing to reset."
    assert project.file.read_bytes() == before
    agent.works()
    assert "Its commit stays in the history" in agent.ok("retry", "task-001")["message"]
    assert (project.task()["status"], project.task()["completed_at"]) == ("pending", None)
    agent.works()


def test_a_task_in_progress_is_neither_reset_nor_removed(project: Project, agent: Agent) -> None:
    add(agent, "First")
    agent.ok("claim")
    before = project.file.read_bytes()
    for verb in ("retry", "remove"):
        said = project.agent("person").fails(8, verb, "task-001")
        assert "harness release task-001" in said["error"]["hint"]
        assert "(by agent)" in said["error"]["message"]
    assert project.file.read_bytes() == before
    project.edit_task(claimed_by=None)
    assert "(by nobody)" in agent.fails(8, "retry", "task-001")["message"]


def test_a_task_is_removed_and_the_list_before_is_kept(project: Project, agent: Agent) -> None:
    """The last one takes the enable flag with it."""
    add(agent, "First")
    add(agent, "Second")
    before = project.file.read_bytes()
    said = agent.ok("remove", "task-001")
    assert [task["id"] for task in project.state["tasks"]] == ["task-002"]
    assert said["task"]["title"] == "First"
    assert (project.top / "harness-tasks.json.bak").read_bytes() == before
    assert project.grep('WARN [task-001] removed by hand: "First" (pending)')
    assert project.enable_flag
    agent.ok("remove", "task-002")
    assert not project.enable_flag


def test_what_others_wait_for_is_not_removed_and_they_are_named(project: Project, agent: Agent) -> None:
    add(agent, "First")
    for number in range(7):
        add(agent, f"Then {number}", "task-001")
    message = agent.fails(8, "remove", "task-001")["message"]
    assert "task-002" in message
    assert "and 2 more" in message
    assert project.task("task-001")


def test_the_hint_of_a_removal_can_be_typed_until_it_works(project: Project, agent: Agent) -> None:
    add(agent, "First")
    agent.works({"a.txt": "hello\n"})
    add(agent, "Done", "task-001")
    agent.works({"b.txt": "hello\n"})
    add(agent, "Other")
    add(agent, "Waits", "task-001", "task-003")
    add(agent, "Waits for it alone", "task-001")

    hint = agent.fails(8, "remove", "task-001")["error"]["hint"]
    for command in hint.partition(": ")[2].split(" && "):
        agent.ok(*shlex.split(command)[1:])
    agent.ok("remove", "task-001")

    assert [task["depends_on"] for task in project.state["tasks"]] == [[], ["task-003"], []]


def test_the_rescued_work_of_a_removed_task_stays(project: Project, agent: Agent) -> None:
    ref = lose(agent, "made.txt")
    agent.ok("remove", "task-001")
    assert project.refs() == [ref]


def test_a_new_task_gets_no_logs_of_a_removed_one(agent: Agent) -> None:
    add(agent, "First")
    agent.works({"a.txt": "hello\n"})
    agent.ok("remove", "task-001")

    add(agent, "Second")

    assert agent.ok("show", "task-002")["check_log"] is None

"""`harness claim` of a task that is red first: its check has to fail before any work begins."""

from __future__ import annotations

from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, python

# -- red first


# A check that fails as soon as its lease is renewed.
WATCH = """
import json, sys, time
def lease():
    with open("harness-tasks.json") as file:
        return json.load(file)["tasks"][0]["lease_expires_at"]
first = lease()
while lease() == first:
    time.sleep(0.05)
with open("renewed", "w") as file:
    file.write("yes")
sys.exit(1)
"""


def red(agent: Agent, check: str, *options: str) -> None:
    agent.ok("add", "One", "--validate", check, "--red-first", *options)


def test_red_first_a_check_that_passes_before_any_work_is_config(project: Project, agent: Agent) -> None:
    red(agent, "true")

    error = agent.fails(3, "claim")["error"]

    assert "red_first" in error["message"]
    task = project.task()
    assert task["status"] == "pending"
    assert task["attempts"] == 0
    assert task["halt"].startswith("CONFIG: validation.red_first")
    assert len(project.grep("ERROR [task-001] [CONFIG]")) == 1
    assert agent.fails(9, "claim")["stop"] == {"reason": "waiting"}


def test_red_first_a_check_that_fails_lets_work_begin(project: Project, agent: Agent) -> None:
    red(agent, "test -f done")
    agent.ok("claim")
    project.put("done")

    agent.ok("finish")


def test_red_first_what_the_check_made_is_not_the_attempts_work(project: Project, agent: Agent) -> None:
    red(agent, "echo cache > cache.txt; echo changed > tracked.txt; test -f done")
    assert "tracked file(s) changed while the check of task-001 ran" in agent.ok("claim")["warnings"][0]
    assert project.read("tracked.txt") == "one\n"
    project.put("done")

    agent.ok("finish")

    assert project.in_commit() == ["done", "tracked.txt"]
    assert project.git("show", "HEAD:tracked.txt") == "one"


def test_red_first_what_a_check_that_passes_has_changed_is_told_and_put_back(
    project: Project, agent: Agent
) -> None:
    red(agent, "echo changed > tracked.txt")

    warnings = agent.fails(3, "claim")["warnings"]

    assert project.refs()[0] in warnings[0]
    assert project.read("tracked.txt") == "one\n"


def test_red_first_a_long_check_keeps_its_claim_alive(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    agent = project.agent()
    red(agent, python(WATCH), "--timeout", "30")

    agent.ok("claim", HARNESS_LEASE_SECONDS="3")

    assert project.read("renewed") == "yes"


def test_red_first_runs_nothing_that_nobody_trusted(project: Project, agent: Agent) -> None:
    red(agent, "touch ran; false")
    project.git("add", "-f", "harness-tasks.json")
    project.git("commit", "-qm", "list")
    project.edit_task(validation={"command": "touch evil; false", "red_first": True})

    agent.fails(8, "claim")

    assert not (project.top / "evil").exists()
    assert not (project.top / "ran").exists()
    assert project.task()["status"] == "pending"
    assert project.task()["attempts"] == 0

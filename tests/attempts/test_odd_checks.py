"""Checks and tasks that are not as usual: what judges is found all the same, and honest work is completed."""

from __future__ import annotations

import json

from tests.verbs.project import Agent, Project, begin


def test_a_check_that_writes_into_the_tree_judges_as_any_other(project: Project, agent: Agent) -> None:
    project.commit(files={"tests/run.sh": "echo ran >> trace; echo ran >> tracked.txt; grep -q done f\n"})
    begin(agent, "sh tests/run.sh", "--protect", "auto")
    project.put("f", "done\n")
    project.put("tests/run.sh", "echo ran >> trace; echo ran >> tracked.txt; grep done f\n")

    task = agent.ok("finish")["task"]

    assert task["status"] == "completed"
    assert project.git("show", "HEAD:tracked.txt") == "one"


def test_in_a_monorepo_what_judges_is_where_the_check_runs(project: Project, agent: Agent) -> None:
    project.commit(files={"web/tests/a.sh": "grep -q done f\n", "api/tests/a.sh": "true\n"})
    begin(agent, "sh tests/a.sh", "--cwd", "web", "--protect", "auto")
    project.put("web/tests/a.sh", "true\n")

    assert "'web/tests/a.sh'" in agent.fails(1, "finish")["message"]

    project.git("checkout", "-q", "--", "web/tests/a.sh")
    project.put("web/f", "done\n")
    assert agent.ok("finish")["task"]["status"] == "completed"


def test_a_claim_of_an_earlier_version_is_finished_as_before(project: Project, agent: Agent) -> None:
    """Its gate names no programs, and its task has none of the fields about judgements."""
    begin(agent, "grep -q done f")
    file = project.top / "harness-tasks.json"
    state = json.loads(file.read_text())
    del state["tasks"][0]["gate"]["programs"]
    file.write_text(json.dumps(state))
    for kept in (project.top / ".harness/gates").iterdir():
        kept.unlink()
    task = agent.finishes({"f": "done\n"})["task"]

    assert (task["status"], task.get("look_at"), task.get("outcome")) == ("completed", None, None)
    agent.final_check()
    assert agent.ok("check")["exit"] == 0

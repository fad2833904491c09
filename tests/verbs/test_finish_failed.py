"""`harness finish` where the check fails: all work is kept in a rescue, then the tree is as it was before."""

from __future__ import annotations

from tests.verbs.project import Agent, Project, begin


def test_a_failed_check_is_rescued_and_rolled_back(project: Project, agent: Agent) -> None:
    project.put("mine.txt", "mine\n")
    project.put(".gitignore", "*.log\n")
    project.git("add", ".gitignore")
    project.commit_only("Ignore")
    project.put("build.log", "ignored\n")
    base, before = project.head, project.files
    begin(agent, "echo it broke; exit 3")
    project.put("tracked.txt", "broken\n")
    project.put("new/file.txt", "new\n")
    project.put("mine.txt", "spoilt\n")
    project.git("rm", "-q", "--cached", "tracked.txt")
    project.commit_only("agent's own commit")
    project.put("late.txt", "late\n")

    reply = agent.fails(1, "finish")

    task = project.task()
    assert (task["status"], task["attempts"]) == ("failed", 1)
    assert task["error_log"] == ["[TEST_FAIL] The check failed with exit code 3. it broke"]
    assert project.head == base
    assert project.files == before
    assert project.git("status", "--porcelain") == "?? mine.txt"
    rescue = reply["rescue"]
    assert rescue == "refs/harness/rescue/task-001/1"
    kept = {name: project.git("show", f"{rescue}:{name}") for name in project.in_commit(rescue)}
    assert kept["tracked.txt"] == "broken"
    assert kept["new/file.txt"] == "new"
    assert kept["mine.txt"] == "spoilt"
    assert kept["late.txt"] == "late"
    assert project.grep("ERROR", "[task-001]", "[TEST_FAIL]", "it broke")
    assert project.grep("ROLLBACK", "[task-001]", rescue)
    assert reply["next"] == "harness claim"
    assert "it broke" in reply["tail"]


def test_each_attempt_has_a_rescue_of_its_own_and_the_last_one_blocks(project: Project, agent: Agent) -> None:
    begin(agent, "false", "--max-attempts", "2")
    agent.ok("add", "After", "--depends-on", "task-001", "--validate", "true")
    project.put("try", "1\n")
    assert agent.fails(1, "finish")["stop"] is None
    agent.ok("claim")
    project.put("try", "2\n")

    reply = agent.fails(1, "finish")

    assert reply["stop"] == {"reason": "blocked"}
    refs = project.refs()
    assert [project.git("show", f"{ref}:try") for ref in refs] == ["1", "2"]
    assert project.task("task-002")["error_log"] == ["[DEPENDENCY] Blocked by failed task-001"]
    assert not project.marker


def test_a_check_that_takes_too_long_is_timeout(project: Project, agent: Agent) -> None:
    begin(agent, "echo begun; exec sleep 60", "--timeout", "1", "--cleanup", "echo cleaned > cleaned.txt")

    reply = agent.fails(1, "finish")

    assert reply["verdict"] == "TIMEOUT"
    assert project.task()["error_log"] == ["[TIMEOUT] The check did not end within 1 s. begun"]
    assert project.grep("ERROR", "TIMEOUT")
    assert project.read("cleaned.txt") == "cleaned\n"


def test_the_cleanup_runs_in_the_rolled_back_tree_and_its_failure_is_a_warning(
    project: Project, agent: Agent
) -> None:
    begin(agent, "false", "--cleanup", "cat tracked.txt; exit 9")
    project.put("tracked.txt", "broken\n")

    reply = agent.fails(1, "finish")

    assert "ended with 9" in reply["warnings"][0]
    assert project.grep("WARN", "[task-001]", "cleanup")
    output = project.top / ".harness" / "logs" / "task-001" / "1-cleanup.log"
    assert output.read_text(encoding="utf-8") == "one\n"
    assert project.task()["status"] == "failed"

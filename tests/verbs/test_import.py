"""`harness import` of JSON or any list: many tasks at once, all or none, every problem with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness_lib import typed
from tests.conftest import Harness
from tests.verbs.plans import json_plan, waits
from tests.verbs.project import Agent, Project


def test_a_json_list_in_the_shape_of_the_seed_is_taken_over(project: Project, agent: Agent) -> None:
    task: dict[str, Any] = {
        "id": "auth",
        "title": "Implement user authentication",
        "status": "pending",
        "priority": "P0",
        "depends_on": [],
        "attempts": 0,
        "max_attempts": 2,
        "started_at_commit": None,
        "validation": {"command": "npm test", "timeout_seconds": 30},
        "on_failure": {"cleanup": "docker compose down"},
        "error_log": [],
        "checkpoints": [],
        "completed_at": None,
        "owner": {"team": "web"},
    }
    said = agent.ok("import", json_plan(project, {"version": 2, "tasks": [task]}))
    assert project.state["tasks"] == [task]
    assert (said["count"], said["first"]) == (1, "auth")
    assert project.marker


def test_an_id_that_a_shell_would_not_take_as_it_is_is_refused(project: Project, agent: Agent) -> None:
    """Lists have had them, and they are read; new ones are not made."""
    for name in ("$(id)", "a;b", "über", "_a", "a,b", "a'b"):
        message = agent.fails(2, "import", json_plan(project, [{"title": "A", "id": name}]))["message"]
        assert "[0].id" in message
        assert "letters, digits" in message
    markdown = project.put("tasks.md", "- [ ] A\n  - id: a;b\n")
    assert "line 2: is 'a;b'" in agent.fails(2, "import", str(markdown))["message"]
    agent.ok("import", json_plan(project, [{"title": "A", "id": "v1.2_a-B"}]))


def test_names_of_other_tasks_are_ids_titles_or_positions(project: Project, agent: Agent) -> None:
    agent.ok("add", "Old one", "--validate", "true")
    tasks = [
        {"title": "A", "id": "a"},
        {"title": "B, with a comma", "depends_on": ["a"]},
        {"title": "C", "depends_on": ["b, with a  COMMA", 1, "#2"]},
        {"title": "D", "depends_on": ["task-001"]},
        {"title": "E", "depends_on": ["old ONE", "A, C"]},
        "F",
    ]
    agent.ok("import", json_plan(project, tasks))
    assert waits(project) == {
        "task-001": [],
        "a": [],
        "task-002": ["a"],
        "task-003": ["task-002", "a"],
        "task-004": ["task-001"],
        "task-005": ["task-001", "a", "task-003"],
        "task-006": [],
    }


def test_an_id_that_is_taken_becomes_the_next_one_and_references_in_the_file_follow(
    project: Project, agent: Agent
) -> None:
    agent.ok("add", "Mine", "--validate", "true")
    tasks = [
        {"id": "task-001", "title": "Theirs"},
        {"id": "task-002", "title": "After theirs", "depends_on": ["task-001"]},
    ]
    said = agent.ok("import", json_plan(project, tasks))
    assert waits(project) == {"task-001": [], "task-003": [], "task-002": ["task-003"]}
    assert any("task-001 became task-003" in warning for warning in said["warnings"])


def test_importing_twice_warns_about_equal_titles(project: Project, agent: Agent) -> None:
    file = json_plan(project, [{"title": "A", "validation": {"command": "true"}}])
    assert not agent.ok("import", file)["warnings"]
    assert "imported before" in " ".join(agent.ok("import", file)["warnings"])


def test_every_problem_of_a_json_file_is_told_with_its_path_and_nothing_is_added(
    project: Project, agent: Agent
) -> None:
    tasks = [
        {"title": "A", "status": "completed"},
        {"title": "B", "validation": {"timeout_seconds": "soon"}, "depends_on": ["nowhere", True]},
        3,
        {"priority": "P9"},
        {"title": "E", "id": "e"},
        {"title": "E", "id": "e", "depends_on": "E"},
        {"title": "G", "depends_on": ["E"]},
    ]
    before = project.file.read_bytes()
    message = agent.fails(2, "import", json_plan(project, {"tasks": tasks}))["message"]
    for place in (
        "tasks[0].status",
        "tasks[1].validation.timeout_seconds",
        "tasks[1].depends_on[0]: 'nowhere'",
        "tasks[1].depends_on[1]",
        "tasks[2]: is 3",
        "tasks[3].title",
        "tasks[3].priority",
        "tasks[5].id",
        "tasks[5].depends_on",
        "tasks[6].depends_on[0]: 'E' is the title of 2 tasks",
    ):
        assert place in message
    assert project.file.read_bytes() == before


def test_the_other_names_of_fields_mean_the_same_in_json(project: Project, agent: Agent) -> None:
    tasks: list[dict[str, object]] = [
        {
            "title": "A",
            "check": "make a",
            "timeout": 9,
            "cleanup": "rm a",
            "maxAttempts": 1,
            "max-attempts": 5,
        },
        {"title": "B", "depends": ["A"], "validate": "make b"},
        {"title": "C", "needs": [1], "requires": ["B"], "owner": "me"},
    ]
    said = agent.ok("import", json_plan(project, tasks))

    first, second, third = (project.task(f"task-00{number}") for number in (1, 2, 3))
    assert first["validation"]["command"] == "make a"
    assert first["validation"]["timeout_seconds"] == 9
    assert first["on_failure"]["cleanup"] == "rm a"
    assert first["max_attempts"] == 5
    assert (second["depends_on"], second["validation"]["command"]) == (["task-001"], "make b")
    assert third["depends_on"] == ["task-001", "task-002"]
    warnings = " ".join(said["warnings"])
    assert "'maxAttempts' ([0])" in warnings
    assert "'owner' ([2])" in warnings
    assert third["owner"] == "me"


def test_a_field_that_is_said_twice_in_json_is_a_problem(project: Project, agent: Agent) -> None:
    tasks = [{"title": "A", "check": "make", "validation": {"command": "true"}}, {"title": "B", "needs": "A"}]
    message = agent.fails(2, "import", json_plan(project, tasks))["message"]
    assert "[0].check: " in message
    assert "[1].needs: is 'A', must be a list" in message


def test_tasks_that_would_wait_for_themselves_are_refused(project: Project, agent: Agent) -> None:
    tasks = [{"title": "A", "depends_on": ["B"]}, {"title": "B", "depends_on": [1]}]
    message = agent.fails(2, "import", json_plan(project, tasks))["message"]
    assert "task-001 -> task-002 -> task-001" in message
    assert "[1]" in message


def test_a_dry_run_tells_the_same_and_adds_nothing(project: Project, agent: Agent) -> None:
    file = json_plan(project, [{"title": "A"}, {"title": "B", "depends_on": ["A"]}])
    before = project.file.read_bytes(), project.log
    said = agent.ok("import", file, "--dry-run", "--format", "json")
    assert said["next"] == typed.harness("import", file, "--format", "json")
    assert (said["count"], said["added"]) == (2, 0)
    assert (project.file.read_bytes(), project.log) == before
    assert agent.ok("import", file)["message"] == said["message"].replace("would add", "added")


def test_a_dry_run_gives_no_id_that_rescued_work_is_kept_under(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "false")
    agent.ok("claim")
    project.put("made.txt")
    agent.fails(1, "finish")
    agent.ok("remove", "task-001")
    file = json_plan(project, [{"title": "A"}])
    assert agent.ok("import", file, "--dry-run")["first"] == "task-002"
    assert agent.ok("import", file)["first"] == "task-002"


def test_what_is_no_list_of_tasks_is_refused_with_an_example(project: Project, agent: Agent) -> None:
    for text in ('[{"title": "a",}]', '{"a": 1}', "7", "[" * 100_000):
        assert agent.fails(2, "import", str(project.put("x.json", text)))["error"]["hint"]
    for raw in (b"just prose\n", b"", b"- [ ] \xff\n"):
        assert agent.fails(2, "import", str(project.put("x.md", raw)))["error"]["hint"]
    agent.fails(2, "import", "no-such-file.md")


def test_ten_thousand_tasks_are_told_in_a_few_lines(project: Project, agent: Agent) -> None:
    tasks = [{"title": f"Task {n}", "depends_on": [n] if n else []} for n in range(10_000)]
    said = agent("import", json_plan(project, tasks))
    assert said.code == 0
    assert len(said.text.splitlines()) < 40
    assert len(project.state["tasks"]) == 10_000


def test_what_a_task_went_through_elsewhere_is_left_behind_and_said(project: Project, agent: Agent) -> None:
    task = {"title": "A", "attempts": 2, "error_log": ["[TEST_FAIL] no"], "claimed_by": "x", "fence": 4}
    said = agent.ok("import", json_plan(project, [task]))
    assert project.task()["attempts"] == 0
    assert project.task()["error_log"] == []
    assert "claimed_by" not in project.task()
    assert "begin anew" in " ".join(said["warnings"])


def test_standard_input_is_read_and_its_format_guessed(harness: Harness, repo: Path) -> None:
    assert harness("init").code == 0
    assert harness("import", "-", stdin='[{"title": "From JSON"}]').code == 0
    assert harness("import", "-", stdin="- [ ] From Markdown\n").code == 0
    tasks = json.loads((repo / "harness-tasks.json").read_text(encoding="utf-8"))["tasks"]
    assert [task["title"] for task in tasks] == ["From JSON", "From Markdown"]

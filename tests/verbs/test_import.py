"""`harness import`: many tasks at once, all or none, from JSON or Markdown, every problem with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness_lib import typed
from harness_lib.rules import checklist
from harness_lib.verbs import import_
from tests.conftest import Harness
from tests.verbs.project import Agent, Project, lose


def json_plan(project: Project, document: object) -> str:
    return str(project.put("tasks.json", json.dumps(document)))


def markdown_plan(project: Project, text: str) -> str:
    return str(project.put("tasks.md", text))


def waits(project: Project) -> dict[str, list[str]]:
    """Return what each task of the list waits for."""
    return {task["id"]: task["depends_on"] for task in project.state["tasks"]}


def test_both_ways_to_go_on_are_named(project: Project, agent: Agent) -> None:
    said = agent.ok("import", markdown_plan(project, "- [ ] One\n  - check: test -f x\n"))

    assert said["next"] == "harness start"
    assert "harness run starts agents itself" in said["message"]
    assert "from a plan: task One of tasks.md" in agent.ok("show", "1")["message"]


def test_a_task_that_changed_in_the_plan_is_named_and_left_as_it_is(project: Project, agent: Agent) -> None:
    plain = "  - priority: P1\n  - timeout: 300\n  - max attempts: 3\n  - cwd: .\n  - red first: false\n"
    agent.ok("import", markdown_plan(project, f"- [ ] A\n  - check: a\n- [ ] B\n  - check: b\n{plain}"))
    agent.ok("edit", "task-001", "--priority", "P0", "--depends-on", "task-002")
    before = project.state["tasks"]
    said = agent.ok("import", str(project.top / "tasks.md"))
    assert said["warnings"] == []

    other = "- [ ] A\n  - check: aa\n- [ ] B\n  - check: b\n  - after: C\n  - priority: P0\n  - timeout: 5\n"
    more = "  - cwd: sub\n  - protect: x\n  - cleanup: c\n  - max attempts: 9\n  - red first: true\n"
    said = agent.ok("import", markdown_plan(project, f"{other}{more}- [ ] C\n  - check: c\n"))

    (warning,) = said["warnings"]
    changed = "priority, timeout, max attempts, red first, cwd, protect, cleanup, after"
    assert f"task-001 (check), task-002 ({changed})." in warning
    assert project.state["tasks"][:2] == before


# -- JSON


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
    file = json_plan(project, {"version": 2, "tasks": [task]})
    said = agent.ok("import", file)
    assert project.state["tasks"] == [task]
    assert (said["count"], said["first"]) == (1, "auth")
    assert project.enable_flag
    assert "imported before" in " ".join(agent.ok("import", file)["warnings"])


def test_an_id_that_a_shell_would_not_take_as_it_is_is_refused(project: Project, agent: Agent) -> None:
    """Lists have had them, and they are read; new ones are not made."""
    for name in ("$(id)", "a;b", "über", "_a", "a,b", "a'b"):
        message = agent.fails(2, "import", json_plan(project, [{"title": "A", "id": name}]))["message"]
        assert "[0].id" in message
        assert "letters, digits" in message
    markdown = markdown_plan(project, "- [ ] A\n  - id: a;b\n")
    assert "line 2: is 'a;b'" in agent.fails(2, "import", markdown)["message"]
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


def test_an_id_that_is_taken_becomes_the_next_one_for_all_names(project: Project, one: Agent) -> None:
    tasks = [
        {"id": "task-001", "title": "Theirs"},
        {"id": "task-002", "title": "After theirs", "depends_on": ["task-001"]},
    ]
    said = one.ok("import", json_plan(project, tasks))
    assert waits(project) == {"task-001": [], "task-003": [], "task-002": ["task-003"]}
    assert any("task-001 became task-003" in warning for warning in said["warnings"])


def test_every_problem_of_a_json_file_is_told_with_its_path(project: Project, agent: Agent) -> None:
    tasks = [
        {"title": "A", "status": "completed"},
        {"title": "B", "validation": {"timeout_seconds": "soon"}, "depends_on": ["nowhere", True]},
        3,
        {"priority": "P9"},
        {"title": "E", "id": "e"},
        {"title": "E", "id": "e", "depends_on": "E"},
        {"title": "G", "depends_on": ["E"]},
        {"title": "H", "check": "make", "validation": {"command": "true"}},
        {"title": "I", "needs": "A"},
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
        "tasks[7].check: ",
        "tasks[8].needs: is 'A', must be a list",
    ):
        assert place in message
    assert project.file.read_bytes() == before


def test_the_other_names_of_fields_mean_the_same_in_json(project: Project, agent: Agent) -> None:
    first = {"check": "make a", "timeout": 9, "cleanup": "rm a", "maxAttempts": 1, "max-attempts": 5}
    tasks: list[dict[str, object]] = [
        {"title": "A", **first},
        {"title": "B", "depends": ["A"], "validate": "make b"},
        {"title": "C", "needs": [1], "requires": ["B"], "owner": "me"},
    ]
    said = agent.ok("import", json_plan(project, tasks))

    a, b, c = project.state["tasks"]
    assert a["validation"] == {"command": "make a", "timeout_seconds": 9}
    assert (a["on_failure"]["cleanup"], a["max_attempts"]) == ("rm a", 5)
    assert (b["depends_on"], b["validation"]["command"]) == (["task-001"], "make b")
    assert (c["depends_on"], c["owner"]) == (["task-001", "task-002"], "me")
    warnings = " ".join(said["warnings"])
    assert "'maxAttempts' ([0])" in warnings
    assert "'owner' ([2])" in warnings


def test_tasks_that_would_wait_for_themselves_are_refused(project: Project, agent: Agent) -> None:
    tasks = [{"title": "A", "depends_on": ["B"]}, {"title": "B", "depends_on": [1]}]
    file = json_plan(project, tasks)
    error = agent.fails(2, "import", file)["error"]
    assert "task-001 -> task-002 -> task-001" in error["message"]
    assert "[1]" in error["message"]
    assert error["hint"].endswith(typed.harness("import", file, "--dry-run"))


def test_a_dry_run_tells_the_same_and_adds_nothing(project: Project, agent: Agent) -> None:
    """Nor does it name an id that rescued work is kept under."""
    lose(agent, "made.txt")
    agent.ok("remove", "task-001")
    file = json_plan(project, [{"title": "A"}, {"title": "B", "depends_on": ["A"]}])
    before = project.file.read_bytes(), project.log
    said = agent.ok("import", file, "--dry-run", "--format", "json")
    assert said["next"] == typed.harness("import", file, "--format", "json")
    assert (said["count"], said["added"], said["first"]) == (2, 0, "task-002")
    # No verb knows these yet.
    assert any("--check 'COMMAND' gives them one" in each for each in said["warnings"])
    assert "harness edit" not in " ".join(said["warnings"])
    assert (project.file.read_bytes(), project.log) == before
    added = agent.ok("import", file)
    assert added["first"] == "task-002"
    assert added["message"].startswith(said["message"].replace("would add", "added"))


def test_what_is_no_list_of_tasks_is_refused_with_an_example(project: Project, agent: Agent) -> None:
    for text in ('[{"title": "a",}]', '{"a": 1}', "7", "[" * 100_000):
        assert agent.fails(2, "import", str(project.put("x.json", text)))["error"]["hint"]
    for raw in (b"just legacy\n", b"", b"- [ ] \xff\n"):
        assert agent.fails(2, "import", str(project.put("x.md", raw)))["error"]["hint"]
    agent.fails(2, "import", "no-such-file.md")


def test_a_hundred_tasks_are_told_in_a_few_lines(project: Project, agent: Agent) -> None:
    tasks = [{"title": f"Task {n}", "depends_on": [n] if n else []} for n in range(100)]
    said = agent("import", json_plan(project, tasks))
    assert said.code == 0
    assert len(said.text.splitlines()) < 40
    assert len(project.state["tasks"]) == 100


def test_what_a_task_went_through_elsewhere_is_left_behind_and_said(project: Project, agent: Agent) -> None:
    task = {"title": "A", "attempts": 2, "error_log": ["[TEST_FAIL] no"], "claimed_by": "x", "fence": 4}
    said = agent.ok("import", json_plan(project, [task]))
    assert (project.task()["attempts"], project.task()["error_log"]) == (0, [])
    assert "claimed_by" not in project.task()
    assert "start with none" in " ".join(said["warnings"])


def test_standard_input_is_read_and_its_format_guessed(harness: Harness, repo: Path) -> None:
    assert harness("init").code == 0
    assert harness("import", "-", stdin='[{"title": "From JSON"}]').code == 0
    assert harness("import", "-", stdin="- [ ] From Markdown\n").code == 0
    tasks = json.loads((repo / "harness-tasks.json").read_text())["tasks"]
    assert [task["title"] for task in tasks] == ["From JSON", "From Markdown"]


# -- a Markdown check list; tests/rules has its grammar


def test_a_markdown_check_list_is_taken_over(project: Project, agent: Agent) -> None:
    text = (
        "# Plan\r\n\r\n- [ ] Build it\r\n  - check: `make test`\r\n  - priority: p0\r\n  Some words\r\n"
        "- [x] Design it\r\n* [ ] Ship it\r\n  - after: Build it, Design it\r\n  - timeout: 60s\r\n"
        "  - protect: tests/**, *.cfg\r\n  - red-first: yes\r\n  - cleanup: make clean\r\n"
    )
    said = agent.ok("import", markdown_plan(project, text))
    build, ship = project.state["tasks"]
    assert (build["title"], build["priority"], build["description"]) == ("Build it", "P0", "Some words")
    assert build["validation"] == {"command": "make test", "timeout_seconds": 300}
    assert ship["depends_on"] == [build["id"]]
    assert ship["on_failure"] == {"cleanup": "make clean"}
    assert ship["validation"] == {
        "command": None,
        "timeout_seconds": 60,
        "protect": ["tests/**", "*.cfg"],
        "red_first": True,
    }
    warnings = " ".join(said["warnings"])
    assert "Left out because they are ticked: line 7" in warnings
    assert "on ticked items were dropped: line 9" in warnings
    assert "Without a check" in warnings


def test_items_below_one_with_a_check_come_after_it(project: Project, agent: Agent) -> None:
    text = (
        "- [ ] Build\n  - check: make\n  - [ ] Test\n    - check: make test\n  - [x] Lint\n"
        "    - [ ] Lint more\n      - check: make lint\n- [ ] Ship\n  - needs: Build\n  - check: make ship\n"
    )
    agent.ok("import", markdown_plan(project, text))
    assert waits(project) == {
        "task-001": [],
        "task-002": ["task-001"],
        "task-003": ["task-001"],
        "task-004": ["task-001", "task-002", "task-003"],
    }


def test_a_group_needs_no_check_and_its_name_means_all_in_it(project: Project, agent: Agent) -> None:
    text = (
        "- [ ] Base\n  - check: a\n- [ ] Parts\n  - depends: Base\n  - [ ] One\n    - check: b\n"
        "  - [ ] Two\n    - check: c\n    - after: One\n  - [x] Three\n- [ ] Whole\n  - requires: parts\n"
        "  - check: d\n"
    )
    said = agent.ok("import", markdown_plan(project, text))
    assert [task["title"] for task in project.state["tasks"]] == ["Base", "One", "Two", "Whole"]
    assert waits(project) == {
        "task-001": [],
        "task-002": ["task-001"],
        "task-003": ["task-001", "task-002"],
        "task-004": ["task-002", "task-003"],
    }
    warnings = " ".join(said["warnings"])
    assert "Not imported, because they have no check and only group others: line 3." in warnings
    assert "Without a check" not in warnings


def test_what_looks_like_a_field_and_is_none_is_told(project: Project, agent: Agent) -> None:
    file = markdown_plan(project, "- [ ] A\n  - chekc: make\n  - blocked by: B\n  check: make\n")
    for options in (["--dry-run"], []):
        warnings = " ".join(agent.ok("import", file, *options)["warnings"])
        assert "not as a field: 'chekc' (line 2), 'blocked by' (line 3), 'check' (line 4)" in warnings


def test_every_problem_of_a_check_list_is_told_once_with_its_line(project: Project, agent: Agent) -> None:
    """Also that of a group, whose fields hold for all below it."""
    text = (
        "- [ ] A\n  - after: nothing like it\n  - timeout: soon\n- [ ]\n"
        "- [ ] C\n  - check: x\n  - check: y\n  - priority: high\n  - cwd:\n"
        "- [ ] D\n  - after: nobody\n  - priority: high\n  - [ ] E\n  - [ ] F\n"
    )
    message = agent.fails(2, "import", markdown_plan(project, text))["message"]
    for line in (2, 3, 4, 7, 8, 9, 11, 12):
        assert message.count(f"line {line}: ") == 1, line
    assert project.state["tasks"] == []


def test_the_markdown_that_the_help_shows_is_read_as_it_stands(harness: Harness) -> None:
    shown = "\n".join(import_.MARKDOWN.splitlines()[2:])
    items, problems = checklist.parse(shown)
    assert [item.title for item in items] == ["Limit requests per client", "Say so in the documents"]
    assert not problems
    assert harness("import", "--help").out.rstrip().endswith(shown.rstrip())

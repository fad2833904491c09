"""`harness import` of a Markdown check list: items, groups and fields, and every problem with its line."""

from __future__ import annotations

from harness_lib.cli.commands import import_
from harness_lib.rules import checklist
from tests.conftest import Harness
from tests.verbs.plans import markdown_plan, waits
from tests.verbs.project import Agent, Project


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
    assert "Checked off, so left out: line 7" in warnings
    assert "not waited for: line 9" in warnings
    assert "Without a check" in warnings


def test_the_items_below_one_with_a_check_come_after_it_and_its_name_means_them_all(
    project: Project, agent: Agent
) -> None:
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


def test_a_group_needs_no_check_and_who_waits_for_it_waits_for_all_that_is_open_in_it(
    project: Project, agent: Agent
) -> None:
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
    assert "No tasks themselves, for they have no check and others below them: line 3." in warnings
    assert "Without a check" not in warnings


def test_what_looks_like_a_field_and_is_none_is_told_before_and_when_it_is_imported(
    project: Project, agent: Agent
) -> None:
    file = markdown_plan(project, "- [ ] A\n  - chekc: make\n  - blocked by: B\n  check: make\n")
    for options in (["--dry-run"], []):
        warnings = " ".join(agent.ok("import", file, *options)["warnings"])
        assert "not as a field: 'chekc' (line 2), 'blocked by' (line 3), 'check' (line 4)" in warnings


def test_a_problem_of_a_group_is_told_once(project: Project, agent: Agent) -> None:
    text = "- [ ] A\n  - after: nobody\n  - priority: high\n  - [ ] B\n  - [ ] C\n"
    message = agent.fails(2, "import", markdown_plan(project, text))["message"]
    assert (message.count("line 2: "), message.count("line 3: ")) == (1, 1)


def test_every_problem_of_a_check_list_is_told_with_its_line(project: Project, agent: Agent) -> None:
    text = (
        "- [ ] A\n  - after: nothing like it\n  - timeout: soon\n- [ ]\n"
        "- [ ] C\n  - check: x\n  - check: y\n  - priority: high\n  - cwd:\n"
    )
    message = agent.fails(2, "import", markdown_plan(project, text))["message"]
    for line in (2, 3, 4, 7, 8, 9):
        assert f"line {line}: " in message
    assert project.state["tasks"] == []


def test_the_markdown_that_the_help_shows_is_read_as_it_stands(harness: Harness) -> None:
    shown = "\n".join(import_.MARKDOWN.splitlines()[2:])
    items, problems = checklist.parse(shown)
    assert [item.title for item in items] == ["Limit requests per client", "Say so in the documents"]
    assert not problems
    assert harness("import", "--help").out.rstrip().endswith(shown.rstrip())

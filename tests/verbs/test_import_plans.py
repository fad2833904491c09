"""`harness import` of plans of other tools: their order, their source, and whose commands these are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Harness
from tests.system.git.gitrepo import put as put_at
from tests.terminal.pseudo_terminal import answered
from tests.verbs.plans import PLAN, SCRIPT, put, tasks
from tests.verbs.project import Agent, Project


def waits(project: Project) -> dict[str, str]:
    return {task["title"]: " ".join(task["depends_on"]) for task in tasks(project)}


def gsd(number: str, title: str, front: str) -> str:
    return (
        f"---\nphase: {number[:2]}-x\nplan: {number[-2:]}\n{front}\n---\n"
        f'<task type="auto"><name>Task 1: {title}</name><verify>test -f {title}</verify></task>\n'
    )


# -- order and form


def test_the_order_of_a_plan_can_be_overruled(project: Project, agent: Agent) -> None:
    text = "- [ ] T001 A\n- [ ] T002 [P] B\n- [ ] T003 [P] C (depends on T009)\n"
    file = put(project, "tasks.md", text)

    message = agent.fails(2, "import", file)["message"]
    assert "line 3: 'T009' is not a task of this plan" in message
    agent.ok("import", file, "--sequential")
    assert waits(project) == {"A": "", "B": "task-001", "C": "task-002"}

    agent.ok("import", put(project, "more.md", PLAN), "--parallel")
    assert waits(project)["Say why"] == ""
    refused = agent.fails(2, "import", put(project, "own.md", "- [ ] A\n"), "--parallel")
    assert "--parallel is for plans" in refused["message"]
    assert "JSON has depends_on" in refused["error"]["hint"]


def test_a_ring_in_a_plan_is_refused_with_its_line_and_what_to_type(project: Project, agent: Agent) -> None:
    file = put(project, "t.md", "- [ ] T001 A (depends on T002)\n- [ ] T002 B (depends on T001)\n")
    said = agent.fails(2, "import", file)
    assert "line 1: task-001 would depend on itself" in said["message"]
    assert "--sequential" in said["error"]["hint"]
    assert tasks(project) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- [ ] T001 A, verify that `test -f a` passes\n", "spec-kit tasks"),
        ("- [ ] 1.1 A; verify `test -f a` succeeds\n", "OpenSpec tasks"),
        (gsd("01-01", "base", ""), "GSD plan"),
        (
            '{"tasks": [{"id": 1, "title": "A", "dependencies": [], "testStrategy": "npm test"}]}',
            "Task Master list",
        ),
        (
            '[{"number": 2, "title": "A", "state": "OPEN", "labels": [], "body": "Verify: `test -f a`"}]',
            "GitHub issues",
        ),
    ],
)
def test_a_plan_of_each_tool_is_recognised(project: Project, agent: Agent, text: str, said: str) -> None:
    found = agent.ok("import", put(project, "plan", text))["message"].splitlines()[0]
    assert found == f"{said}: 1 task, 1 with a check"


def test_a_format_that_is_typed_must_fit(project: Project, agent: Agent) -> None:
    file = put(project, "plan.md", PLAN)
    refused = agent.fails(2, "import", file, "--format", "gsd")
    assert "does not have the format gsd. Looked for: elements such as" in refused["message"]
    assert agent.ok("import", file, "--dry-run", "--format", "superpowers")["count"] == 2
    assert agent.ok("import", file, "--dry-run", "--format", "checklist")["count"] == 3
    # A check list of ours below such a heading stays one.
    ours = put(project, "own.md", "## Task 1: A group\n\n- [ ] One\n  - check: test -f x\n")
    assert "task-001 [P1] One" in agent.ok("import", ours, "--dry-run")["message"]


def test_a_design_without_tasks_is_told_what_was_looked_for(project: Project, agent: Agent) -> None:
    message = agent.fails(2, "import", put(project, "design.md", "# Design\n\nWords.\n"))["message"]
    for sign in ("### Task 1: …", "- [ ] T001 …", "- [ ] 1.1 …", '<task type="auto">', "- [ ] …"):
        assert sign in message


def test_a_table_shows_what_would_be_added_and_what_has_no_check(project: Project, agent: Agent) -> None:
    looked = agent.ok("import", put(project, "plan.md", PLAN), "--dry-run")["message"]
    assert looked.splitlines()[:5] == [
        "superpowers plan: 2 tasks, 1 with a check",
        "would add 2 tasks:",
        "  id        plan  title      after     lines  check",
        "  task-001  1     Say hello  -         5-12   grep -q hello a.txt",
        "  task-002  2     Say why    task-001  14-16  -",
    ]
    assert "1 task without a check (task-002): --check 'COMMAND'" in looked
    said = agent.ok("import", "plan.md")["message"]
    assert "task-002 has no check: harness edit task-002 --validate " in said
    assert tasks(project)[0]["source"] == {"plan": "plan.md", "key": "1"}
    header = "# Greeting Implementation Plan\n\n**Goal:** Greet."
    assert project.state["plans"] == [{"plan": "plan.md", "header": header}]
    agent.ok("import", put(project, "more.md", PLAN), "--check", "test -f why.md")
    commands = [task["validation"]["command"] for task in tasks(project)[2:]]
    assert commands == ["grep -q hello a.txt", "test -f why.md"]


def test_a_directory_is_a_list_of_plans_in_order(project: Project, agent: Agent) -> None:
    """Plans of GSD come after those that they name, phases after each other; other files are passed over."""
    place = ".planning/phases"
    put(project, f"{place}/01-a/01-01-PLAN.md", gsd("01-01", "base", "wave: 1\ndepends_on: []"))
    put(project, f"{place}/01-a/01-02-PLAN.md", gsd("01-02", "left", 'wave: 2\ndepends_on: ["01-01"]'))
    put(project, f"{place}/01-a/01-03-PLAN.md", gsd("01-03", "right", "wave: 2\ndepends_on: [01]"))
    put(project, f"{place}/02-b/02-01-PLAN.md", gsd("02-01", "top", "wave: 1\ndepends_on: []"))
    put(project, f"{place}/02-b/02-RESEARCH.md", "# Research\n\n- [ ] Read\n")
    put(project, f"{place}/02-b/latin.md", b"# \xe4\n")
    put(project, f"{place}/00-z/00-01-PLAN.md", gsd("00-01", "gone", "wave: 1"))
    put(project, f"{place}/00-z/00-01-SUMMARY.md", "It is done.\n")

    said = agent.ok("import", place)

    assert said["message"].startswith("5 plans (GSD plan): 5 tasks, 5 with a check, 1 done already\n")
    assert waits(project) == {"base": "", "left": "task-001", "right": "task-001", "top": "task-002 task-003"}
    assert any("Passed over" in each and "02-RESEARCH.md" in each for each in said["warnings"])
    alone = agent.ok("import", f"{place}/01-a/01-02-PLAN.md", "--dry-run")
    assert alone["count"] == 0


def test_plans_that_say_nothing_of_each_other_follow_each_other(project: Project, agent: Agent) -> None:
    """A task that is done already stands in nobody's way."""
    put(project, "plans/2-b.md", PLAN.replace("Say", "Then"))
    put(project, "plans/10-c.md", PLAN.replace("Say", "Last"))
    put(project, "plans/1-a.md", PLAN.replace("- [ ] **Step 1: Write", "- [x] **Step 1: Write"))
    agent.ok("import", "plans")
    assert waits(project) == {
        "Say hello": "",
        "Then hello": "task-001",
        "Then why": "task-002",
        "Last hello": "task-003",
        "Last why": "task-004",
    }
    empty = str(project.put("e/x.txt").parent)
    assert "No plan is in this directory" in agent.fails(2, "import", empty)["message"]


# -- what the brief says


def test_the_brief_begins_with_the_plan_and_what_is_not_for_agents(project: Project, agent: Agent) -> None:
    put(project, "specs/001-x/spec.md", "# Spec\n")
    agent.ok(
        "import", put(project, "specs/001-x/tasks.md", "# Tasks: X\n\n## Phase 1: A\n\n- [ ] T001 Do it\n")
    )

    assert "# Tasks: X" not in str(tasks(project))
    brief = agent.ok("claim")["message"]
    head, _, rest = brief.partition("description:")
    assert "from a plan, task T001 of specs/001-x/tasks.md:\n  | # Tasks: X\n" in head
    assert "  | Read beside it, as far as it concerns the task: specs/001-x/spec.md." in head
    assert "harness commits and goes on to the next task" in head
    assert "T001 Do it" in rest


def test_long_texts_of_a_plan_are_cut_and_say_where_the_rest_is(project: Project, agent: Agent) -> None:
    long = "word " * 10_000
    text = f"# Plan\n\n{long}\n\n### Task 1: {'A ' * 600}\n\n{long}\n\n### Task 2: B\x00\x1b[2J\n"
    agent.ok("import", put(project, "plan.md", text))
    first, second = tasks(project)
    assert len(first["title"]) == 200
    assert first["description"].endswith("… the rest is in plan.md, from line 5.")
    assert project.state["plans"][0]["header"].endswith("… the rest is in plan.md.")
    assert "\x1b" not in second["title"]


def test_a_check_stays_in_the_work_tree_or_is_named(project: Project, agent: Agent) -> None:
    """An author's own path to this project is left out; any other one is the user's to correct."""
    text = "".join(
        f"### Task {number}: A\n\nRun: `cd {place} && test -f a`\nExpected: PASS\n\n"
        for number, place in enumerate((f"/home/ada/{project.top.name}", "/home/ada/other", "sub"), 1)
    )
    said = agent.ok("import", put(project, "plan.md", text))
    checks = [task["validation"]["command"] for task in tasks(project)]
    assert checks == ["test -f a", "cd /home/ada/other && test -f a", "cd sub && test -f a"]
    assert "Checks that leave the work tree: line 6." in " ".join(said["warnings"])


# -- whose commands these are


def test_an_agent_adds_the_tasks_and_a_user_trusts_their_commands(project: Project, agent: Agent) -> None:
    """What the list had before may run until then no more than the plan's."""
    agent.ok("add", "Mine", "--validate", "test -f mine")
    assert agent("validate", "task-001").code == 1
    said = agent.ok("import", put(project, "plan.md", PLAN), "--yes")

    assert said["added"] == 2
    assert said["next"] == "harness trust"
    assert "--yes was refused, and the commands of the plan are not trusted yet" in " ".join(said["warnings"])
    assert "has changed since" in agent.fails(8, "validate", "task-002")["error"]["message"]
    agent.ok("add", "More", "--validate", "test -f more")
    agent.fails(8, "validate", "task-001")

    agent.ok("trust", "--yes", **SCRIPT)
    assert agent("validate", "task-002").code == 1
    agent.ok("add", "Even more", "--validate", "test -f more")
    assert agent("validate", "task-002").code == 1


def test_users_at_a_terminal_and_scripts_with_yes_trust_by_importing(project: Project, agent: Agent) -> None:
    code, printed = answered(project.top, "", "import", put(project, "plan.md", PLAN))
    assert (code, "grep -q hello a.txt" in printed, "trust" in printed) == (0, True, False)
    assert agent("validate", "task-001").code == 1

    other = put(project, "other.md", PLAN.replace("a.txt", "b.txt"))
    assert agent.ok("import", other, "--yes", **SCRIPT)["next"] != "harness trust"
    assert agent("validate", "task-003").code == 1


def test_a_plan_that_brings_no_commands_changes_nothing_about_trust(project: Project, agent: Agent) -> None:
    said = agent.ok("import", put(project, "plan.md", "### Task 1: A\n\nText.\n"), "--check", "test -f a")
    assert said["next"] == "harness start"
    assert agent("validate", "task-001").code == 1


# -- a person is asked


def test_a_checkpoint_waits_for_a_person_who_accepts_it_in_its_turn(project: Project, agent: Agent) -> None:
    text = gsd("01-01", "page", "") + (
        '<task type="checkpoint:human-verify"><what-built>The page</what-built>'
        "<how-to-verify>Open it.</how-to-verify></task>\n" + '<task type="auto"><name>Then</name></task>\n'
    )
    said = agent.ok("import", put(project, "PLAN.md", text), "--check", "true", "--yes", **SCRIPT)
    assert "1 for a person" in said["message"]
    _, look, then = tasks(project)
    assert (look["halt_kind"], look["validation"]["command"]) == ("HUMAN", None)
    assert "Open it." in look["halt"]
    early = agent.fails(2, "accept", look["id"])["message"]
    assert "is not to be looked at yet: it comes after task-001" in early

    agent.works({"page": "x\n"})
    blocked = agent.fails(9, "claim")
    assert "Open it." in blocked["message"]
    assert agent.ok("show", look["id"])["next"] == f"harness accept {look['id']}"
    agent.ok("edit", look["id"], "--title", "Look at it")
    agent.ok("retry", look["id"])
    assert project.task(look["id"])["halt_kind"] == "HUMAN"
    assert not any(look["id"] in each for each in agent.ok("check")["warnings"])
    assert look["id"] not in agent("validate", "--all").text
    assert "from a plan: task 2 of PLAN.md" in agent.ok("show", look["id"])["message"]
    agent.fails(8, "accept", look["id"], CLAUDECODE="1")
    accepted = agent.ok("accept", look["id"])
    assert accepted["task"]["status"] == "completed"
    assert "halt" not in accepted["task"]
    assert agent.ok("claim")["task"]["id"] == then["id"]
    assert look["id"] not in agent("validate", "--all").text


# -- large and odd


@pytest.mark.release
def test_two_thousand_tasks_of_two_megabytes_are_told_in_a_bounded_table(project: Project) -> None:
    """So many commands are not trusted by being imported, because not all of them were shown."""
    body = "\n".join(f"line {number} of the section" for number in range(35))
    text = "# Plan\n" + "".join(
        f"\n### Task {number}: Do {number}\n\n{body}\n\nRun: `test -f f{number}`\nExpected: PASS\n"
        for number in range(1, 2001)
    )
    file = put(project, "plan.md", text)
    code, printed = answered(project.top, "", "import", file)
    assert code == 0
    assert len(printed.splitlines()) < 260
    assert "and 1800 more, up to task-2000" in printed
    assert "harness trust" in printed
    assert len(tasks(project)) == 2000


def test_open_boxes_that_belong_to_no_task_are_named(project: Project, agent: Agent) -> None:
    lines = {
        PLAN + "\n## Later\n\n- [ ] Tell the others\n- [x] Rest\n": 20,
        "## Phase 1: One\n\n- [ ] T001 A\n\n## Phase 2: Two\n\n- [ ] No number\n": 7,
        "## 1. One\n\n- [ ] 1. All\n  - [ ] 1.1 A\n\n- [ ] No number\n": 6,
    }
    for text, line in lines.items():
        said = agent.ok("import", put(project, "plan.md", text), "--dry-run")
        assert f"Open boxes outside of the tasks of a plan are not tasks: line {line}." in said["warnings"]
    assert "Open boxes" not in str(agent.ok("import", put(project, "plan.md", PLAN), "--dry-run"))


def test_two_tasks_of_one_number_are_two_tasks(project: Project, agent: Agent) -> None:
    said = agent.ok("import", put(project, "plan.md", PLAN.replace("Task 2", "Task 1")))
    assert [task["source"]["key"] for task in tasks(project)] == ["1", "1(2)"]
    assert "have the same number; each was imported: 1 (line 14)" in " ".join(said["warnings"])


def test_a_plan_needs_no_list_before_it(harness: Harness, repo: Path) -> None:
    """The list is made with its tasks; a dry run or a plan that cannot be read makes nothing."""
    put_at(repo / "plan.md", PLAN)
    looked = harness("import", "plan.md", "--dry-run")
    assert (looked.code, "would add 2 tasks" in looked.out) == (0, True)
    put_at(repo / "design.md", "# A design\n")
    assert harness("import", "design.md").code == 2
    assert not list(repo.glob("*harness*"))

    said = harness("import", "plan.md")
    assert (said.code, said.out.splitlines()[0][:8]) == (0, "made har")
    assert "added 2 tasks" in said.out
    assert len(json.loads((repo / "harness-tasks.json").read_text())["tasks"]) == 2


def test_two_plans_from_standard_input_are_two(harness: Harness) -> None:
    assert harness("init").code == 0
    for text, added in ((PLAN, 2), (PLAN, 0), (PLAN.replace("Say", "Then"), 2)):
        said = harness("import", "-", stdin=text)
        assert f"added {added} tasks" in said.out


def test_a_file_elsewhere_is_a_plan_too(project: Project, agent: Agent, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text(PLAN)
    agent.ok("import", str(elsewhere))
    assert project.task()["source"]["plan"] == str(elsewhere.resolve())

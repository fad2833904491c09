"""A plan that is imported again, and `harness export --tick`: what is in the list already, what is done."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.system.git.gitrepo import put as put_at
from tests.verbs.plans import PLAN, SCRIPT, put, tasks
from tests.verbs.project import Agent, Project


def test_importing_again_adds_what_is_new_and_names_what_changed(project: Project, agent: Agent) -> None:
    file = put(project, "plan.md", PLAN)
    agent.ok("import", file, "--yes", **SCRIPT)
    agent.ok("edit", "task-002", "--validate", "test -f why.md")
    before = tasks(project)

    again = agent.ok("import", file, "--yes", **SCRIPT)
    assert (again["added"], tasks(project)) == (0, before)
    assert "2 tasks of the plan are in the list already" in again["message"]
    assert not any("otherwise" in each for each in again["warnings"])

    text = PLAN.replace("**Goal:** Greet.", "**Goal:** Greet all.").replace("hello a.txt", "hi a.txt")
    put(project, file, text.replace("### Task 2: Say why", "### Task 3: Say when"))
    said = agent.ok("import", file, "--yes", **SCRIPT)

    assert [task["title"] for task in tasks(project)] == ["Say hello", "Say why", "Say when"]
    assert tasks(project)[:2] == before
    assert tasks(project)[2]["depends_on"] == ["task-001"]
    assert project.state["plans"][0]["header"].endswith("Greet all.")
    warnings = " ".join(said["warnings"])
    assert "task-001 (description, check)" in warnings
    assert "No longer in the plan: task-002" in warnings


def test_a_check_list_of_ours_is_imported_again_and_ticked_too(project: Project, agent: Agent) -> None:
    """Its items are known by their titles, or by their ids; it says nothing more to an agent."""
    text = (
        "- [ ] One\n  - check: test -f a.txt\n- [ ] Group\n  - [ ] One\n    - check: test -f b.txt\n"
        "- [x] Old\n- [ ] Two\n  - id: two\n  - check: test -f c.txt\n"
    )
    file = put(project, "list.md", text)
    agent.ok("import", file)
    keys = [task["source"] for task in tasks(project)]
    assert keys == [{"plan": "list.md", "key": key} for key in ("- One", "- One(2)", "- two")]

    put(project, file, text.replace("Two", "Two, and why") + "- [ ] Three\n  - after: two\n")
    again = agent.ok("import", file)

    assert (again["added"], tasks(project)[-1]["title"]) == (1, "Three")
    assert "3 tasks of the plan are in the list already" in again["message"]
    assert "two (title)" in " ".join(again["warnings"])
    project.put("a.txt", "hello\n")
    brief = agent.ok("claim")["message"]
    assert "from a plan" not in brief
    agent.ok("finish")
    assert "1 of 4 tasks completed, 1 box ticked" in agent.ok("export", "--tick", file)["message"]
    assert project.read(file).startswith("- [x] One\n  - check: test -f a.txt\n- [ ] Group\n")


def test_a_link_is_the_plan_that_it_leads_to(project: Project, agent: Agent, tmp_path: Path) -> None:
    """A link out of the work tree keeps its own name, which is the same on every machine."""
    put(project, "docs/plan.md", PLAN)
    (project.top / "docs/newest.md").symlink_to("plan.md")
    (project.top / "far.md").symlink_to(put_at(tmp_path / "elsewhere.md", PLAN))
    assert agent.ok("import", "docs", "--yes", **SCRIPT)["added"] == 2
    assert agent.ok("import", "docs/newest.md", "--yes", **SCRIPT)["added"] == 0

    assert agent.ok("import", "far.md", "--yes", **SCRIPT)["added"] == 2

    assert [task["source"]["plan"] for task in tasks(project)] == ["docs/plan.md"] * 2 + ["far.md"] * 2


def test_tick_changes_the_boxes_of_completed_tasks_and_no_other_byte(project: Project, agent: Agent) -> None:
    code = "```md\r\n- [ ] code\r\n```\r\n"
    text = "\ufeff" + PLAN.replace("Expected: PASS\n", "Expected: PASS\n\n" + code).replace("\n", "\r\n")
    data = text.replace("\r\r", "\r").encode() + b"\x0b - [ ] no end"
    file = put(project, "docs/plan.md", data)
    agent.ok("import", file, "--yes", **SCRIPT)
    agent.works({"a.txt": "hello\n"})

    said = agent.ok("export", "--tick", file)

    assert (said["completed"], said["ticked"], "2 boxes ticked" in said["message"]) == (1, 2, True)
    ticked = (project.top / file).read_bytes()
    wanted = data.replace(b"- [ ] **Step 1: Make", b"- [x] **Step 1: Make")
    assert ticked == wanted.replace(b"- [ ] **Step 2: Commit", b"- [x] **Step 2: Commit")
    assert agent.ok("export", "--tick", file)["ticked"] == 0
    assert agent.ok("import", file, "--yes", **SCRIPT)["added"] == 0


def test_a_plan_that_was_ticked_is_committed_by_the_next_command(project: Project, agent: Agent) -> None:
    """A claim refuses while a tracked file is changed; the commit waits while a task is in progress."""
    link = project.top / "link.md"
    link.symlink_to("docs/it's plan.md")
    file = put(project, "docs/it's plan.md", PLAN)
    project.commit("plan")
    agent.ok("import", file, "--yes", **SCRIPT)
    agent.ok("edit", "task-002", "--validate", "test -f why.md")
    agent.works({"a.txt": "hello\n"})

    following = agent.ok("export", "--tick", "link.md")["next"]

    assert following == """git commit -m 'Tick what is done in it'"'"'s plan.md' -- 'docs/it'"'"'s plan.md'"""
    assert agent.fails(8, "claim")["error"]["kind"] == "REFUSED"
    subprocess.run(following, shell=True, cwd=project.top, check=True, stdout=subprocess.DEVNULL)
    assert agent.ok("export", "--tick", file)["next"] == "harness status"
    agent.ok("claim")
    put(project, file, PLAN)
    assert agent.ok("export", "--tick", file)["next"] == "harness status"


def test_what_cannot_be_ticked_is_said(project: Project, agent: Agent) -> None:
    unknown = agent.fails(2, "export", "--tick", put(project, "plan.md", PLAN))
    assert "was imported from plan.md" in unknown["message"]
    assert "is not a plan" in agent.fails(2, "export", "--tick", put(project, "x.md", "words\n"))["message"]
    for words in (("export", "--tick", "nowhere.md"), ("export", "--tick", ""), ("import", "")):
        agent.fails(2, *words)
    document = {"tasks": [{"id": 1, "title": "A", "dependencies": []}]}
    file = put(project, "tasks.json", json.dumps(document))
    agent.ok("import", file)
    assert "no boxes" in agent.ok("export", "--tick", file)["message"]

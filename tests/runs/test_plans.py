"""A plan of each tool, imported as it is, goes to its end in one run each of the scripted agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

SUPERPOWERS = """# Greeting Implementation Plan

**Goal:** Greet everybody.

### Task 1: Say hello

- [ ] **Step 1: Write it**

do: write s1 done

Run: `grep -q done s1`
Expected: PASS

### Task 2: Say why

- [ ] **Step 1: Write it after the first**

do: sh grep -q done s1 ;; write s2 done

Run: `grep -q done s2`
Expected: PASS
"""
SPEC_KIT = """# Tasks: Greeting

## Phase 1: Setup

- [ ] T001 [P] Begin, verify that `grep -q done k1` passes
      do: write k1 done
- [ ] T002 [P] Begin beside it, verify that `grep -q done k2` passes
      do: write k2 done

## Phase 2: Polish

- [ ] T003 End, verify that `grep -q done k3` passes
      do: sh grep -q done k1 && grep -q done k2 ;; write k3 done
"""
OPENSPEC = """## 1. Greeting

- [ ] 1.1 Say hello; verify `grep -q done o1` succeeds
      do: write o1 done
- [ ] 1.2 Say why; verify `grep -q done o2` succeeds
      do: sh grep -q done o1 ;; write o2 done
"""
GSD = """---
phase: 01-greeting
plan: 01
wave: 1
depends_on: []
---
<objective>Greet.</objective>
<tasks>
<task type="auto">
  <name>Task 1: Say hello</name>
  <action>
do: write g1 done
  </action>
  <verify><automated>grep -q done g1</automated></verify>
</task>
<task type="checkpoint:human-verify">
  <what-built>A greeting</what-built>
  <how-to-verify>Read g1.</how-to-verify>
</task>
<task type="auto">
  <name>Task 3: Say why</name>
  <action>
do: write g2 done
  </action>
  <verify>grep -q done g2</verify>
</task>
</tasks>
"""
TASK_MASTER = {
    "master": {
        "tasks": [
            {"id": 1, "title": "Hello", "dependencies": [], "details": "do: write m1 done"}
            | {"testStrategy": "grep -q done m1"},
            {
                "id": 2,
                "title": "Why",
                "dependencies": [1],
                "details": "do: sh grep -q done m1 ;; write m2 done",
            }
            | {"testStrategy": "grep -q done m2"},
        ]
    }
}
ISSUES = [
    {"number": 2, "title": "Why", "state": "OPEN", "labels": []}
    | {"body": "do: sh grep -q done i1 ;; write i2 done\n\nDepends on #1.\n\nVerify: `grep -q done i2`"},
    {"number": 1, "title": "Hello", "state": "OPEN", "labels": []}
    | {"body": "do: write i1 done\n\nVerify: `grep -q done i1`"},
]
YES = ("--yes",)
SCRIPT = {"HARNESS_TRUST": "1"}


@pytest.mark.release
def test_a_plan_of_each_tool_goes_to_its_end(workshop: Workshop) -> None:
    """In two runs, because in between a person looks at what a checkpoint asks."""
    files = {
        "docs/superpowers/plans/greeting.md": SUPERPOWERS,
        "specs/001-greeting/tasks.md": SPEC_KIT,
        "openspec/changes/greeting/tasks.md": OPENSPEC,
        ".planning/phases/01-greeting/01-01-PLAN.md": GSD,
        ".taskmaster/tasks/tasks.json": json.dumps(TASK_MASTER),
        "issues.json": json.dumps(ISSUES),
    }
    said = []
    for name, text in files.items():
        put(workshop.top / name, text)
        said.append(workshop.ok("import", name, *YES, **SCRIPT)["message"].splitlines()[0])
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "Plan")
    assert said == [
        "superpowers plan: 2 tasks, 2 with a check",
        "spec-kit tasks: 3 tasks, 3 with a check",
        "OpenSpec tasks: 2 tasks, 2 with a check",
        "GSD plan: 3 tasks, 2 with a check, 1 for a person",
        "Task Master list: 2 tasks, 2 with a check",
        "GitHub issues: 2 tasks, 2 with a check",
    ]
    look = next(task["id"] for task in workshop.state["tasks"] if task.get("halt_kind") == "HUMAN")

    first = workshop.run("-j", "2")
    assert f"harness accept {look}" in first.stdout + first.stderr
    left = {task["id"] for task in workshop.state["tasks"] if task["status"] != "completed"}
    assert len(left) == 2
    assert look in left
    workshop.ok("accept", look)
    workshop.ends(0, "-j", "2")

    assert set(workshop.statuses().values()) == {"completed"}
    workshop.ok("export", "--tick", "specs/001-greeting/tasks.md")
    assert "[ ]" not in Path(workshop.top / "specs/001-greeting/tasks.md").read_text(encoding="utf-8")
    sh(workshop.top, "checkout", "-q", "--", ".")
    workshop.nothing_is_left_over()

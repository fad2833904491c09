"""A plan of another tool, imported as it is, goes to its end in runs of the scripted agent."""

from __future__ import annotations

import pytest

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put

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


@pytest.mark.release
def test_a_run_halts_at_a_checkpoint_of_a_plan_and_goes_on_when_it_is_accepted(workshop: Workshop) -> None:
    name = ".planning/phases/01-greeting/01-01-PLAN.md"
    put(workshop.top / name, GSD)
    said = workshop.ok("import", name, "--yes", HARNESS_TRUST="1")["message"]
    assert said.startswith("GSD plan: 3 tasks, 2 with a check, 1 for a person\n")
    (look,) = [task["id"] for task in workshop.state["tasks"] if task.get("halt_kind") == "HUMAN"]

    first = workshop.run("-j", "2")

    assert f"harness accept {look}" in first.stdout + first.stderr
    left = [task["id"] for task in workshop.state["tasks"] if task["status"] != "completed"]
    assert (len(left), left[0]) == (2, look)
    workshop.ok("accept", look)
    workshop.ends(0, "-j", "2")
    assert set(workshop.statuses().values()) == {"completed"}

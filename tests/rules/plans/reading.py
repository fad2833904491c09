"""Two plans that several tests read, and how they read them."""

from __future__ import annotations

from harness_lib.rules import plans
from harness_lib.rules.plans.plan import Plan

SPEC_KIT = """# Tasks: Photo albums

**Input**: Design documents from `/specs/001-albums/`

## Phase 1: Setup (Shared Infrastructure)

**Purpose**: A place to work in

- [X] T001 Create the project as plan.md says
- [ ] T002 [P] Configure the linter in pyproject.toml
- [ ] T003 [P] Configure the tests

## Phase 2: Foundational (Blocking Prerequisites)

- [ ] T004 Make the schema in src/db.py
- [ ] T005 [P] Make the session in src/auth.py (depends on T004)

## Phase 3: User Story 1 - Albums (Priority: P1)

**Goal**: Users make albums.

### Tests for User Story 1

- [ ] T006 [P] [US1] Test the contract in tests/test_albums.py

### Implementation for User Story 1

- [ ] T007 [P] [US1] Make the model
- [ ] T008 [US1] Make the service (depends on T006, T007);
      verify that `pytest -q tests/test_albums.py` passes
- [ ] T009 [US1] Make the page

## Phase 4: User Story 2 - Sharing (Priority: P2)

- [ ] T010 [US2] Make a link

## Phase 5: Polish & Cross-Cutting Concerns

- [ ] T011 [P] Write the documents
"""


GSD = """---
phase: 03-features
plan: 02
wave: 2
depends_on: ["03-01"]   # the model
autonomous: false
---

<objective>
Build the page.
</objective>

<execution_context>
@~/somewhere/execute-plan.md
</execution_context>

<tasks>

<task type="auto">
  <name>Task 1: Build the layout</name>
  <action>Make a grid & use a < b.
```xml
<task type="auto"><name>code</name></task>
```
  </action>
  <verify>
    <automated>npm test -- page &amp;&amp; npm run build</automated>
  </verify>
  <done>It is drawn</done>
</task>

<!-- <task type="auto"><name>a comment</name></task> -->
<task type="auto" tdd="true">
  <name>Start it</name>
  <verify>npm run build succeeds</verify>
  <done>without an end

<task type="checkpoint:human-verify" gate="blocking">
  <what-built>The page at http://localhost:3000</what-built>
  <how-to-verify>Open it. Look at the grid.</how-to-verify>
</task>

</tasks>

<success_criteria>All of it works</success_criteria>
<output>Create SUMMARY.md</output>
"""


def read(text: str, word: str) -> Plan:
    """Return the plan `text`, which must be recognised as one of the tool `word`."""
    found = plans.recognised(text)
    assert found is not None
    assert found[0].word == word
    return found[1]


def waits(plan: Plan) -> dict[str, str]:
    return {task.key: " ".join(task.after or ()) for task in plan.tasks}

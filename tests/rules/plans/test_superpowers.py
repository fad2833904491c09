"""Plans of superpowers: one task for each `Task N`, with the check that its author expects to pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness_lib.rules import plans
from harness_lib.rules.plans import superpowers
from harness_lib.rules.plans.plan import Document, Plan, PlannedTask

HEADER = """# Limiter Implementation Plan

> **For agentic workers:** REQUIRED SUB-SKILL: Use superpowers:executing-plans to implement this plan.

**Goal:** Limit requests per client.

---

## File map

- Create: `limiter.py`

"""


def task(text: str) -> PlannedTask:
    """Return the only task of the plan with `text` below its heading."""
    (only,) = read(f"{HEADER}### Task 1: Add it\n\n{text}\n").tasks
    return only


def read(text: str) -> Plan:
    """Return the plan `text`; one without tasks if it is none."""
    return superpowers.read(Document(text)) or Plan("", ())


def test_a_task_is_its_heading_and_everything_below_it() -> None:
    plan = (
        HEADER
        + """## Chunk 1: Core

### Task 1: Add the limiter

**Files:**
- Create: `limiter.py`

- [ ] **Step 1: Write the failing test**

```python
### Task 9: code, and no heading
def test_limit(): ...
```

- [ ] **Step 2: Run it**

Run: `pytest -q tests/test_limiter.py`
Expected: FAIL with "No module named limiter"

#### What to keep in mind

- [ ] **Step 3: Make it pass**

Run: `pytest -q tests/test_limiter.py`
Expected: PASS

- [ ] **Step 4: Commit**

```bash
git add -A
git commit -m "feat: limiter"
```

---

### Task 2: Say so

- [x] **Step 1: Write the page**
- [x] **Step 2: Stage and commit**

## Verification

Run: `make all`
Expected: PASS
"""
    )
    whole = read(plan)
    first, second = whole.tasks

    assert (first.title, first.check, first.done) == (
        "Add the limiter",
        "pytest -q tests/test_limiter.py",
        False,
    )
    assert first.description.startswith("**Files:**")
    assert first.description.endswith('git commit -m "feat: limiter"\n```')
    assert "#### What to keep in mind" in first.description
    assert "### Task 9" in first.description
    steps = "- [x] **Step 1: Write the page**\n- [x] **Step 2: Stage and commit**"
    assert second._replace(lines=(0, 0), boxes=()) == PlannedTask("2", "Say so", steps, done=True)
    lines = plan.splitlines()
    assert lines[first.lines[0] - 1] == "### Task 1: Add the limiter"
    assert lines[second.lines[0] - 1] == "### Task 2: Say so"
    assert [lines[line - 1][:14] for line in first.boxes] == [f"- [ ] **Step {step}" for step in "1234"]
    head = "# Limiter Implementation Plan\n\n**Goal:** Limit requests per client.\n\n---\n\n## File map\n\n"
    rest = "- Create: `limiter.py`\n\n## Chunk 1: Core\n\n## Verification\n\nRun: `make all`\nExpected: PASS"
    assert whole.header == head + rest


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("## Task 1: Add it", "Add it"),
        ("### Task 12a - Add it", "Add it"),
        ("### **Task 3: Add it**", "Add it"),
        ("#### Task 1.2. Add `x`", "Add `x`"),
        ("### \u4efb\u52a1 1\uff1a\u6dfb\u52a0", "\u6dfb\u52a0"),
        ("Task 4: Add it\n---", "Add it"),
        ("### Tasks 6-19: The rest", None),
        ("### Multitask 1: x", None),
        ("### Task list", None),
        ("Text:\n\n    ### Task 1: code", None),
        ("<!--\n### Task 1: a comment\n-->", None),
    ],
)
def test_what_begins_a_task(heading: str, title: str | None) -> None:
    found = read(f"{HEADER}{heading}\n\nText.\n")
    assert [each.title for each in found.tasks] == ([title] if title else [])


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("Run: `pytest -q`\nExpected: PASS", "pytest -q"),
        ("**Run:** `npm test`\n\n**Expected:** 67 passed, 0 failed", "npm test"),
        ("Run:\n\n```bash\n$ make test\n```\n\nExpected: success.", "make test"),
        ("```sh\nmake\n# and\nmake test\n```\n\nExpected: builds, no errors", "set -e\nmake\nmake test"),
        ("Run: `npm run build 2>&1 | tail -5`\nExpected: build succeeds", "npm run build"),
        ("Run: `true`\nExpected: PASS\n\nRun: `pytest`\nExpected: FAIL", "true"),
        (
            "Run: `true`\nExpected: PASS\n\nRun: `pytest`\nExpected: all green",
            "set -e\n(\ntrue\n)\n(\npytest\n)",
        ),
        ("**Step 1**\n\nRun: `make`\nExpected: ok\n\n**Step 2**\n\nRun: `pytest`\nExpected: ok", "pytest"),
        ("Run: `npx tsc`\nExpected: No new type errors", "npx tsc"),
        ("Run: `pytest`\nExpected: PASS. If it fails, look at the log.", "pytest"),
        ("Run: `git diff --check`\nExpected: no errors", None),
        ("Run: `pytest`\nExpected before the change: exit `1`; old tests pass, two fail", None),
        ("\u8fd0\u884c\uff1a`pytest`\n\u9884\u671f\uff1a\u5168\u90e8\u901a\u8fc7", "pytest"),
        ("\u8fd0\u884c: `pytest`\n\u9884\u671f: \u5931\u8d25", None),
        ("- [ ] **Step 1: Look.** Run `just test`; expect pass.", "just test"),
        ("- [ ] Run `npm test` and confirm RED.", None),
        ("Run: `pytest`", None),
        ("Run: `gh run watch <run-id>`\nExpected: it succeeds", None),
        ("Run: `git commit -m x`\nExpected: ok", None),
        ("```python\nassert x\n```\n\nExpected: PASS", None),
        ("Expected: PASS", None),
        ("Run: ``\nExpected: PASS", None),
    ],
)
def test_the_check_is_the_last_command_that_is_expected_to_pass(text: str, check: str | None) -> None:
    assert task(text).check == check


def test_a_fence_in_a_fence_of_markdown_ends_no_task() -> None:
    """Authors write both with three marks."""
    quoted = "```markdown\n```sh\nmake\n```\n\n## Use\n```"
    plan = f"### Task A1: One\n\n{quoted}\n\n- [ ] A step\n\n### Task A2: Two\n"
    first, second = read(plan).tasks
    assert (first.key, first.title, second.title) == ("A1", "One", "Two")
    assert first.boxes == (11,)


def test_nested_fences_tabs_and_comments_are_no_structure() -> None:
    plan = (
        "### Task 1: One\n\n````md\n```sh\n### Task 8: code\n```\n### Task 9: code\n````\n\n"
        "<!--\n### Task 7: a comment\n-->\n-\t[ ]\tA step\n\t- [x] a step below it\n\n### Task 2: Two\n"
    )
    first, second = read(plan).tasks
    assert (first.title, second.title) == ("One", "Two")
    assert first.boxes == (13, 14)


# -- shapes of plans as they are found in public repositories, in words of our own; the other files have more
#
# Beside each stands what its author meant: a line for each task, `KEY TITLE < AFTER ! CHECK`, with `x` behind
# the key of a task that is done, `?` behind one that asks a person; no `<` where the plan does not say.


SUPERPOWERS = {
    "boxes, and a last command that passes": (
        (
            "### Task 1: Add `f`\n- [ ] **Step 1: Test**\n\nRun: `go test ./f`\nExpected: FAIL\n\n"
            "- [ ] **Step 2: Do**\n\nRun: `go test ./f`\nExpected: ok\n\n- [ ] **Step 3: Commit**\n"
        ),
        "1 Add `f` ! go test ./f",
    ),
    "neither boxes nor steps": ("### Task 1: Move it\n\nMove `a` to `b`.\n", "1 Move it"),
    "commands inside of sentences": (
        (
            "### Task 1: Guard\n\n- [ ] **Step 1: Test.** Run `just test guard`; expect failure.\n"
            "- [ ] **Step 2: Do.** Run `just test guard`; expect pass. Then `just check`.\n"
        ),
        "1 Guard ! just test guard",
    ),
    "chunks, and numbers with dots": (
        (
            "## Chunk 1: Core\n\n### Task 1.1: A\n\nText.\n\n"
            "## Chunk 2: Edge\n\n### Task 2.1 - B\n\nText.\n\n## Risks\n\nR.\n"
        ),
        "1.1 A\n2.1 B",
    ),
}
SPEC_KIT = {
    "numbers of phases with dots, and no stories": (
        (
            "## Phase 3.1: Setup\n- [ ] T001 A\n## Phase 3.2: Tests First\n- [ ] T002 [P] B in tests/b.py\n"
            "- [ ] T003 [P] C\n## Phase 3.3: Core\n- [ ] T004 D\n## Dependencies\n- T004 blocks T005\n"
        ),
        "T001 A <\nT002 B in tests/b.py < T001\nT003 C < T001\nT004 D < T002 T003",
    ),
    "headings in another language": (
        "# Tarefas\n## Fase 1: Base\n- [X] T001 A\n## Fase 2: Hist\u00f3ria 1\n- [ ] T002 [US1] B\n",
        "T001x A <\nT002 B < T001",
    ),
    "bold numbers, and no phases": (
        "- [ ] **T001** A\n- [ ] **T002**: [P] B (depends on T001)\n",
        "T001 A <\nT002 B < T001",
    ),
    "phases of the third level, and a phase that says what it depends on": (
        (
            "## Task Breakdown\n### Phase 1: Setup (2 tasks)\n"
            "- [ ] T001 A\n### Phase 2: Model\n- [ ] T002 B\n"
            "### Phase 3: Page\n\n**Depends on**: Phase 1 (the set-up)\n\n- [ ] T003 C\n"
        ),
        "T001 A <\nT002 B < T001\nT003 C < T001",
    ),
    "stories that name each other, and a last phase": (
        (
            "## Phase 1: Foundational\n- [ ] T001 A\n## Phase 2: User Story 1 - X\n- [ ] T002 [US1] B\n"
            "## Phase 3: User Story 2 - Y\n- [ ] T003 [US2] C\n"
            "## Phase 4: User Story 3 - Z\n- [ ] T004 [US3] D\n"
            "## Phase 5: Polish\n- [ ] T005 E\n## Dependencies & Execution Order\n"
            "- **US1**: after Foundational\n- **US2 (Phase 3)**: needs T001 only\n- **US3**: Depends on US1\n"
            "- **Polish**: depends on all stories\n"
        ),
        "T001 A <\nT002 B < T001\nT003 C < T001\nT004 D < T002\nT005 E < T002 T003 T004",
    ),
}
OPENSPEC = {
    "items of several lines": ("## 1. A\n- [ ] 1.1 One that\n      goes on\n", "1.1 One that goes on"),
    "waves": (
        "## Wave 1: A\n\n- [ ] 1.1 [S] One\n\n## Wave 2: B\n\n- [ ] 2.1 [M] Two\n",
        "1.1 [S] One\n2.1 [M] Two",
    ),
    "groups with boxes": (
        "- [ ] 1. A\n  - [ ] 1.1 One\n    - detail\n  - [ ] 1.2 Two\n- [ ] 2. Alone\n",
        "1.1 One\n1.2 Two\n2 Alone",
    ),
    "bold numbers": ("## A\n- [ ] **1.1** One\n- [ ] **1.2.** Two\n", "1.1 One\n1.2 Two"),
}
GSD = {
    "automatic tasks": (
        '<task type="auto"><name>Task 1: A</name><verify>npx tsc --noEmit passes</verify></task>',
        "1 A ! npx tsc --noEmit",
    ),
    "a decision for a person": (
        (
            '<task type="checkpoint:decision" gate="blocking">\n'
            "<decision>Which store? Both work.</decision>\n</task>"
        ),
        "1? Which store?",
    ),
    "no end of a task": (
        '<task type="auto">\n<name>A</name>\n<done>yes</done>\n<task type="auto">\n<name>B</name>',
        "1 A\n2 B",
    ),
    "no front matter and no type": ("<tasks>\n<task>\n<name>1. A</name>\n</task>\n</tasks>", "1 A"),
}
TASK_MASTER: dict[str, tuple[Any, str]] = {
    "no tags": ({"tasks": [{"id": 7, "title": "A", "subtasks": []}], "metadata": {}}, "7 A"),
    "done and given up": (
        {
            "tasks": [
                {"id": number, "title": status, "status": status, "details": ""}
                for number, status in enumerate(("done", "cancelled", "review", "pending"))
            ]
        },
        "0x done\n1x cancelled\n2? review\n3 pending",
    ),
}
SHAPES = {
    "superpowers": SUPERPOWERS,
    "spec-kit": SPEC_KIT,
    "openspec": OPENSPEC,
    "gsd": GSD,
    "task-master": {name: (json.dumps(document), meant) for name, (document, meant) in TASK_MASTER.items()},
}


def shown(task: PlannedTask) -> str:
    mark = "x" if task.done else "?" if task.human else ""
    after = "" if task.after is None else " < " + " ".join(task.after)
    check = f" ! {task.check}" if task.check else ""
    return f"{task.key}{mark} {' '.join(task.title.split())}{after}{check}".rstrip()


@pytest.mark.parametrize(
    ("word", "text", "meant"),
    [
        pytest.param(word, text, meant, id=f"{word}: {name}")
        for word, shapes in SHAPES.items()
        for name, (text, meant) in shapes.items()
    ],
)
def test_a_plan_is_read_as_its_author_meant_it(word: str, text: str, meant: str) -> None:
    found = plans.recognised(text)
    assert found is not None
    assert found[0].word == word
    assert "\n".join(map(shown, found[1].tasks)) == meant

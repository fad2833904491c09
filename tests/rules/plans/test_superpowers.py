"""Plans of superpowers: one task for each `Task N`, with the check that its author expects to pass."""

from __future__ import annotations

import pytest

from harness_lib.rules.plans import markdown
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
    return markdown.superpowers(Document(text)) or Plan("", ())


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
    assert task("    make  \n---").description == "    make"


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
        ("```SH title=x\nmake\n```\n\nExpected: PASS", "make"),
        ("Run: `a`\nRun: `b`\nRun: `c`\nExpected: PASS", "c"),
        ("Run: `make`\nExpected: FAIL\n\nExpected: PASS", None),
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
    """Authors write both with three marks. Where one stays open, each mark means what Markdown says."""
    quoted = "```markdown\n```sh\nmake\n```\n\n## Use\n```"
    plan = f"### Task A1: One\n\n{quoted}\n\n- [ ] A step\n\n### Task A2: Two\n"
    first, second = read(plan).tasks
    assert len(read(plan.replace("## Use\n```", "Use")).tasks) == 2
    assert (first.key, first.title, second.title) == ("A1", "One", "Two")
    for info in ("md", "mdx"):
        assert read(plan.replace("```markdown", f"```{info}")).tasks[1] == second
    assert first.boxes == (11,)


def test_nested_fences_tabs_and_comments_are_no_structure() -> None:
    plan = (
        "### Task 1: One\n\n````md\n```sh\n### Task 8: code\n```\n### Task 9: code\n````\n\n"
        "<!--\n### Task 7: a comment\n-->\n-\t[ ]\tA step\n\t- [x] a step below it\n\n### Task 2: Two\n"
    )
    first, second = read(plan).tasks
    assert (first.title, second.title) == ("One", "Two")
    assert first.boxes == (13, 14)

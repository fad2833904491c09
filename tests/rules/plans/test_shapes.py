"""Shapes of plans as they are found in public repositories, in words of our own; the other files have more.

Beside each stands what its author meant: a line for each task, `KEY TITLE < AFTER ! CHECK`, with `x` behind
the key of a task that is done, `?` behind one that asks a person; no `<` where the plan does not say.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness_lib.rules import plans
from harness_lib.rules.plans.plan import PlannedTask

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

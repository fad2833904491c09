"""Read the tasks of an implementation plan as the skill `superpowers:writing-plans` writes it.

A task is a heading such as `### Task 3: Add the limiter` with everything below it, at whatever level the plan
has its tasks. Its check is the last command that the plan expects to pass (`Run: …`, `Expected: PASS`).
Source: docs/plans.md, "Plans of other tools".
"""

from __future__ import annotations

import re

from harness_lib.rules.checklist import unique
from harness_lib.rules.plans import commands
from harness_lib.rules.plans.plan import (
    Document,
    Format,
    Plan,
    PlannedTask,
    without_comments,
)

_WORDS = "Task|Tarea|Tâche|Tarefa|Aufgabe|Задача|任务|任務|タスク|작업"
_TASK = re.compile(
    rf"(?:{_WORDS})\s*[#№]?\s*(?P<number>(?-i:[A-Z]{{1,2}}[.-]?)?\d+(?:[.-]\d+)*[a-z]?)(?:\s*[:\uff1a.)\u2014\u2013-]\s*|\s+)(?P<title>.*\S)",
    re.IGNORECASE,
)
# It tells an agent to carry out the whole plan by a skill of that tool.
_FOR_WORKERS = re.compile(r"^>.*(?:SUB-SKILL|superpowers:).*(?:\n>.*)*\n?", re.MULTILINE)


def read(doc: Document) -> Plan | None:
    """Return the plan; None if no heading is a task."""
    heads = [(head, match) for head in doc.headings if (match := _TASK.fullmatch(head.text))]
    if not heads:
        return None
    keys = unique([match["number"] for _, match in heads])
    starts = [head.line for head, _ in heads]
    tasks, outside, last = [], [], 0
    for (head, match), key in zip(heads, keys, strict=True):
        # The next task begins, or a section that is not below this one.
        end = min([doc.end_of(head), *(line for line in starts if line > head.line)])
        boxes = doc.boxes_in(head.line, end)
        tasks.append(
            PlannedTask(
                key,
                match["title"],
                doc.cut(head.line + 1, doc.last(head.line, end)),
                (head.line + 1, doc.last(head.line, end)),
                check=_check(doc, head.line + 1, end),
                done=bool(boxes) and all(box.ticked for box in boxes),
                boxes=tuple(box.line + 1 for box in boxes),
            )
        )
        outside.append(doc.cut(last, head.line))
        last = end
    outside.append(doc.cut(last, len(doc.lines)))
    header = without_comments(_FOR_WORKERS.sub("", "\n\n".join(filter(None, outside))))
    return Plan(header, tuple(tasks), strays=doc.strays(tasks))


def _check(doc: Document, start: int, end: int) -> str | None:
    """Return the last command that is expected to pass, or else the last one that a sentence says so of."""
    tokens = doc.within(start, end)
    said = "\n".join(token.content for token in tokens if token.type == "inline")
    return commands.expected_to_pass(tokens) or commands.in_prose(said)


FORMAT = Format(
    "superpowers",
    "superpowers plan",
    "headings such as `### Task 1: …`",
    re.compile(rf"(?:{_WORDS})\s*[#№]?\s*(?-i:[A-Z]{{1,2}}[.-]?)?\d", re.IGNORECASE),
    read,
)

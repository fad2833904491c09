"""Read the `tasks.md` of OpenSpec, and the implementation plans of the skill `superpowers:writing-plans`.

The one has items such as `- [ ] 1.2 Add the parser` below `## 1. Parser`, the other headings such as
`### Task 3: Add the limiter`.
Source: docs/plans.md, "Plans of other tools".
"""

from __future__ import annotations

import re
from bisect import bisect_left

from harness_lib.rules.checklist import unique
from harness_lib.rules.plans import commands
from harness_lib.rules.plans.plan import Box, Document, Format, Plan, PlannedTask, without_comments

_ITEM = re.compile(
    r"\**(?:Task )?(?P<key>\d+(?:\.\d+)+|\d+(?=[.):]))[.):]?\**\s*[:\u2013\u2014-]?\s+(?P<rest>.*\S)",
    re.DOTALL,
)
_MANUAL = re.compile(r"\W*manual(?:ly)?\b(?:\)|\s+(?:test|verif|check|smoke|qa)|:)", re.IGNORECASE)


def openspec(doc: Document) -> Plan | None:
    """Return the plan of OpenSpec; None if no item has a number such as 1.2.

    An item with numbered ones below it only groups them.
    """
    found = [(box, match) for box in doc.boxes if (match := _ITEM.fullmatch(box.text))]
    if not any("." in match["key"] for _, match in found):
        return None
    starts = [box.line for box, _ in found]
    tasks: list[PlannedTask] = []
    above: list[Box] = []
    keys = unique([match["key"] for _, match in found])
    for (box, match), key in zip(found, keys, strict=True):
        if bisect_left(starts, box.end) > bisect_left(starts, box.line) + 1:
            above.append(box)
            continue
        whole = doc.cut(box.line, box.end)
        head = doc.above(box.line, lambda each: each.level > 1)
        above = [each for each in above if box.line < each.end]
        groups = [each.text for each in above]
        about = [*([head.text] if head else []), *groups]
        is_manual = _MANUAL.match(match["rest"]) is not None
        tasks.append(
            PlannedTask(
                key,
                match["rest"],
                "\n\n".join((whole, *(f"Part of: {each}" for each in about))),
                (box.line + 1, box.end),
                check=None if is_manual else commands.in_prose(whole) or commands.only(match["rest"]),
                human=match["rest"] if is_manual else None,
                done=box.ticked,
                boxes=tuple(each.line + 1 for each in doc.boxes_in(box.line, box.end)),
            )
        )
    first = min([starts[0], *(head.line for head in doc.headings if head.level > 1)])
    strays = tuple(line for line in doc.strays(tasks) if line - 1 not in starts)
    return Plan(without_comments(doc.cut(0, first)), tuple(tasks), strays=strays)


OPENSPEC = Format(
    "openspec",
    "OpenSpec tasks",
    "items such as `- [ ] 1.1 …`",
    re.compile(r"\[[ xX]\]\s+\**(?:Task )?\d+\.\d"),
    openspec,
    ("proposal.md", "design.md", "specs"),
)


_WORDS = "Task|Tarea|Tâche|Tarefa|Aufgabe|Задача|任务|任務|タスク|작업"
_TASK = re.compile(
    rf"(?:{_WORDS})\s*[#№]?\s*(?P<number>(?-i:[A-Z]{{1,2}}[.-]?)?\d+(?:[.-]\d+)*[a-z]?)(?:\s*[:\uff1a.)\u2014\u2013-]\s*|\s+)(?P<title>.*\S)",
    re.IGNORECASE,
)
# It tells an agent to carry out the whole plan by a skill of that tool.
_FOR_WORKERS = re.compile(r"^>.*(?:SUB-SKILL|superpowers:).*(?:\n>.*)*\n?", re.MULTILINE)


def superpowers(doc: Document) -> Plan | None:
    """Return the plan of superpowers; None if no heading is a task.

    A task is a heading with everything below it, at whatever level the plan has its tasks. Its check is the
    last command that the plan expects to pass (`Run: …`, `Expected: PASS`).
    """
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


SUPERPOWERS = Format(
    "superpowers",
    "superpowers plan",
    "headings such as `### Task 1: …`",
    re.compile(rf"(?:{_WORDS})\s*[#№]?\s*(?-i:[A-Z]{{1,2}}[.-]?)?\d", re.IGNORECASE),
    superpowers,
)

"""Read the `tasks.md` of OpenSpec: `- [ ] 1.2 Add the parser` below `## 1. Parser`.

An item with numbered ones below it only groups them.
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


def read(doc: Document) -> Plan | None:
    """Return the plan; None if no item has a number such as 1.2."""
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


FORMAT = Format(
    "openspec",
    "OpenSpec tasks",
    "items such as `- [ ] 1.1 …`",
    re.compile(r"\[[ xX]\]\s+\**(?:Task )?\d+\.\d"),
    read,
    ("proposal.md", "design.md", "specs"),
)

"""What an entry of a task's `error_log` looks like: `[TEST_FAIL] what happened`, one line, bounded.

Source: docs/protocol.md, "Progress Persistence" and "Error Handling".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import cast

from harness_lib.task import CATEGORIES, Category, Task
from harness_lib.text import in_one_line

LIMIT = 500  # characters of an entry, its category included
_CUT = " … "
_CATEGORY = re.compile(r"\[(" + "|".join(CATEGORIES) + r")\]")


def entry(category: Category, message: str) -> str:
    """Return `[CATEGORY] message` on one line of at most `LIMIT` characters."""
    tag = f"[{category}] "
    return (tag + line(message, LIMIT - len(tag))).rstrip()


def line(message: str, limit: int = LIMIT) -> str:
    """Return `message` on one line of at most `limit` characters.

    Line breaks become ` | `; what cannot be printed (colours of a terminal) becomes a blank.
    From the middle of a long text is cut: its beginning names the failure, its end is the output's last word.
    """
    rows = (in_one_line(row) for row in _rows(message))
    text = " | ".join(row for row in rows if row)
    if len(text) <= limit:
        return text
    start = (limit - len(_CUT)) // 3
    return text[:start] + _CUT + text[start + len(_CUT) - limit :]


def category_of(text: str) -> Category | None:
    """Return the category of an entry, or None.

    The first category named decides: prose-following agents put other things before it, and a failed check
    may quote any category in its output.
    """
    match = _CATEGORY.search(text)
    return cast("Category", match[1]) if match else None


def _rows(message: str) -> list[str]:
    # The output of a check may be megabytes; all but its ends would be cut anyway.
    reach = LIMIT * 20
    if len(message) > 2 * reach:
        message = message[:reach] + "\n" + message[-reach:]
    return message.splitlines()


def concerning(tasks: Iterable[Task], task_id: str) -> list[Task]:
    """Return the tasks with notes for `task_id`: itself, then what it depends on, then those done last."""
    listed = tuple(tasks)
    needs = next((task.depends_on for task in listed if task.id == task_id), ())
    noted = [other for other in listed if other.notes and (other.is_done or other.id == task_id)]
    return sorted(noted, key=lambda t: (t.id == task_id, t.id in needs, t.completed_at or ""), reverse=True)

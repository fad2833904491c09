"""The grammar of one line in harness-progress.txt.

Source: docs/protocol.md, "Standardized Log Format"; the writing itself is `system/files/append_log`.
"""

from __future__ import annotations

from datetime import datetime

from harness_lib import timestamps
from harness_lib.task import Category, LogType


def line(
    kind: LogType,
    message: str,
    *,
    now: datetime,
    session: int,
    task: str | None = None,
    category: Category | None = None,
) -> str:
    """Return `[stamp] [SESSION-N] TYPE [task]? [category]? message`; the writer escapes line breaks."""
    parts = [f"[{timestamps.render(now)}]", f"[SESSION-{session}]", kind]
    parts += [f"[{tag}]" for tag in (task, category) if tag is not None]
    return " ".join([*parts, message]) if message else " ".join(parts)

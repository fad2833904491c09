"""Every line of the log keeps the grammar that people grep for."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from harness_lib.state import journal
from harness_lib.task import Category, LogType

NOW = datetime(2025, 7, 1, 12, 0, 2, 999999, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("kind", "message", "task", "category", "expected"),
    [
        ("LOCK", "released", None, None, "LOCK released"),
        ("Starting", "Title (base=abc)", "task-001", None, "Starting [task-001] Title (base=abc)"),
        ("ERROR", "Redis refused", "task-002", "TASK_EXEC", "ERROR [task-002] [TASK_EXEC] Redis refused"),
        ("ERROR", "no make", None, "ENV_SETUP", "ERROR [ENV_SETUP] no make"),
        ("WARN", "", "task-003", None, "WARN [task-003]"),
    ],
)
def test_stamp_session_type_task_category_message(
    kind: LogType, message: str, task: str | None, category: Category | None, expected: str
) -> None:
    line = journal.line(kind, message, now=NOW, session=7, task=task, category=category)

    assert line == f"[2025-07-01T10:00:02Z] [SESSION-7] {expected}"

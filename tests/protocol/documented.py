"""What the legacy protocol documents of the list: its strict reader, and a task of its making."""

from __future__ import annotations

import re
from typing import Any

Document = dict[str, Any]

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
STATUSES = ("pending", "in_progress", "completed", "failed")


def require_documented(document: Any) -> Document:
    """Return `document` if each documented field is there with the documented type; else fail the test."""
    assert type(document) is dict
    assert document["version"] == 2
    assert type(document["created"]) is str
    config = document["session_config"]
    assert config["concurrency_mode"] in ("exclusive", "concurrent")
    for name in ("max_tasks_per_session", "max_sessions"):
        assert type(config[name]) is int, name
    assert type(document["session_count"]) is int
    assert document["last_session"] is None or STAMP.fullmatch(document["last_session"])
    for task in document["tasks"]:
        _require_task(task)
    return document


def _require_task(task: Any) -> None:
    for name, kind in (("id", str), ("title", str), ("attempts", int), ("max_attempts", int)):
        assert type(task[name]) is kind, name
    assert task["status"] in STATUSES
    assert task["priority"] in ("P0", "P1", "P2")
    for name in ("depends_on", "error_log"):
        assert all(type(each) is str for each in task[name]), name
    commit = task["started_at_commit"]
    assert commit is None or re.fullmatch(r"[0-9a-f]{7,64}", commit)
    command, timeout = task["validation"]["command"], task["validation"]["timeout_seconds"]
    assert command is None or type(command) is str
    assert type(timeout) is int
    cleanup = task["on_failure"]["cleanup"]
    assert cleanup is None or type(cleanup) is str
    for point in task["checkpoints"]:
        assert type(point["step"]) is int
        assert type(point["total"]) is int
        assert type(point["description"]) is str
        assert STAMP.fullmatch(point["timestamp"])
    done = task["completed_at"]
    assert STAMP.fullmatch(done) if task["status"] == "completed" else done is None
    if task.get("lease_expires_at") is not None:
        assert STAMP.fullmatch(task["lease_expires_at"])
        assert type(task["claimed_by"]) is str


def seed_task(task_id: str, title: str = "", command: str | None = "true", **fields: Any) -> Document:
    """Return a pending task with exactly the documented fields, and `fields` over them."""
    return {
        "id": task_id,
        "title": title or f"Do {task_id}",
        "status": "pending",
        "priority": "P1",
        "depends_on": [],
        "attempts": 0,
        "max_attempts": 3,
        "started_at_commit": None,
        "validation": {"command": command, "timeout_seconds": 60},
        "on_failure": {"cleanup": None},
        "error_log": [],
        "checkpoints": [],
        "completed_at": None,
        **fields,
    }

"""A clone whose every file was made to be run, moved or believed: nothing of it is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hookio.conftest import EVENTS, Ring
from tests.hostile.traps import clone_of
from tests.verbs.project import Project, make

EVIL = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"
VERBS: tuple[tuple[str, ...], ...] = (
    ("status", "--all"),
    ("check", "--all"),
    ("doctor",),
    ("graph", "--all"),
    ("log",),
    ("show", "task-001"),
    ("rescue", "list"),
    ("budget",),
    ("trust", "--all"),
    ("trust", "--yes"),
    ("start",),
    ("claim",),
    ("claim", "task-001"),
    ("recover",),
    ("validate", "--all"),
    ("finish",),
    ("release",),
    ("run", "--agent-command", "true"),
    ("check", "--repair"),
    ("stop",),
)


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Project]:
    """Return a fresh clone with a trap in every file that harness, git or a check may read."""
    pwn = f"touch {tmp_path}/PWNED"
    task = {
        "title": f"Build {EVIL}",
        "description": EVIL,
        "validation": {"command": pwn, "cwd": "."},
        "on_failure": {"cleanup": pwn},
    }
    tasks = [
        {**task, "id": "task-001", "status": "pending"},
        {**task, "id": "task-002", "status": "failed", "attempts": 3, "error_log": [f"[TASK_EXEC] {EVIL}"]},
        {**task, "id": f"a{EVIL[-5:]}", "status": "pending", "halt": f"$({pwn})"},
    ]
    document = json.dumps({"version": 2, "tasks": tasks})
    files = {
        "harness-tasks.json": document,
        "harness-tasks.json.bak": document,
        ".harness-active": "",
        "harness-progress.txt": f"[2025-07-01T10:00:00Z] [SESSION-1] WARN {EVIL}\n",
        "harness-init.sh": f"#!/bin/sh\n{pwn}\n",
        ".harness/generations/9999999999.json": document,
        ".harness/summary.json": json.dumps({"format": 3, "stamp": [1, 2, 3, 4], "work_remains": False}),
        ".harness/budget.json": json.dumps({"max_cost": 1}),
        ".harness/board-1.json": json.dumps({"pid": 1, "started": "", "boot": "", "at": 0, "board": {}}),
        ".harness/logs/task-001/1.running": "1 0 x\n",
        ".harness/stops/x": "{}",
        ".worktreeinclude": "../../*\n/etc/passwd\n",
        f"name{EVIL[:4]}": "odd\n",
    }
    made = Project(clone_of(make(tmp_path / "origin", bare=True), files))
    yield made
    made.close()


def _outside(project: Project) -> dict[str, bytes]:
    """Return what stands beside the clone, and its branches."""
    beside = (path for path in project.top.parent.rglob("*") if project.top not in (path, *path.parents))
    files = {str(path): path.read_bytes() for path in beside if path.is_file()}
    return {**files, "refs": project.git("for-each-ref").encode(), "head": project.head.encode()}


def _shows_nothing_raw(said: str) -> bool:
    return not {"\x1b", "\x07", "\x9b", "\u202e"} & set(said)


def test_nothing_of_a_clone_is_run_or_believed_until_it_is_trusted(clone: Project, ring: Ring) -> None:
    before, agent = _outside(clone), clone.agent()
    shown = {}

    for verb in VERBS:
        shown[verb] = agent(*verb, PATH=f".:{os.environ['PATH']}")
        for event in EVENTS if verb[0] in ("status", "claim") else ():
            heard = ring(event, {"cwd": str(clone.top)}, cwd=clone.top)
            assert heard.code in (0, 2)
            assert _shows_nothing_raw(heard.out + heard.err), (event, heard)

    assert _outside(clone) == before
    assert not (clone.top.parent / "PWNED").exists()
    raw = [verb for verb, said in shown.items() if not _shows_nothing_raw(said.text)]
    assert raw == []
    assert _shows_nothing_raw(agent("status", "--all", "--json").out)
    for verb in (("validate", "--all"), ("run", "--agent-command", "true")):
        assert "harness trust" in shown[verb].text, (verb, shown[verb])
    assert 70 not in {said.code for said in shown.values()}

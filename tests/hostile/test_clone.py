"""A clone whose every file was made to be run, moved or believed: nothing of it is."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.hookio.conftest import EVENTS, Ring
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import sh
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


def clone_of(origin: Project, files: Mapping[str, str]) -> Path:
    """Return a clone beside `origin`: it has `files`, and programs that leave a file PWNED beside it."""
    place = origin.top.parent
    pwn = f"touch {place}/PWNED"
    module, program = f"import os; os.system({pwn!r})\n", f"#!/bin/sh\n{pwn}\n"
    traps = {"conftest.py": module, "sitecustomize.py": module, "git": program, "python3": program}
    attributes = {".gitattributes": "* filter=evil diff=evil merge=evil\n"}
    for name, text in {**files, **traps, **attributes}.items():
        origin.put(name, text, executable=text.startswith("#!"))
    origin.git("add", "-A", "--force")
    origin.commit_only("A trap")
    sh(place, "clone", "-q", str(origin.top), "clone")
    origin.close()
    return place / "clone"


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


# -- one whose commands the user has trusted: they run, and nothing else of it is run or believed


PROOF = "0" * 40


def _proof(task: dict[str, Any]) -> str:
    """Return the proof that harness itself would write into `task`: anybody can compute it."""
    check = task["validation"]
    facts = [task["id"], 0, check["command"], check.get("cwd"), task["completed_commit"]]
    return "sha256:" + hashlib.sha256(json.dumps(facts).encode()).hexdigest()


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that the clone names wherever harness notes processes of its own."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def trusted(tmp_path: Path, bystander: subprocess.Popen[bytes]) -> Workshop:
    """Return a trusted clone: its check is harmless, and every other file is a trap."""
    origin = make(tmp_path / "origin", bare=True)
    (tmp_path / "secret").write_text("of the machine\n")
    pwn = f"touch {tmp_path}/PWNED"
    done = {
        "id": "task-002",
        "title": "Never done",
        "status": "completed",
        "completed_at": "2025-07-01T10:00:00Z",
        "completed_commit": PROOF,
        "validation": {"command": "test -f never-made"},
    }
    tasks = [
        {
            "id": "task-001",
            "title": "Make it",
            "status": "pending",
            "description": "do: write made.txt done",
            "validation": {"command": "test -f made.txt && test ! -e secret"},
        },
        {**done, "proof": _proof(done)},
    ]
    letter = {"verb": "add", "task": "task-001", "words": [json.dumps({"title": "Mine", "validate": pwn})]}
    running = f"{bystander.pid} 0 x\n"
    files = {
        "harness-tasks.json": json.dumps({"version": 2, "sessions": [], "proofs": True, "tasks": tasks}),
        ".harness-active": "",
        ".harness/final.json": json.dumps([PROOF, "task-002"]),
        ".harness/budget.json": json.dumps({"max_cost": 1}),
        ".harness/board-1.json": json.dumps({"pid": bystander.pid, "board": {}}),
        ".harness/logs/task-001/1.running": running,
        ".harness/logs/task-001/final.running": running,
        ".harness/mail/00000000000000000001-0.json": json.dumps(letter),
        ".worktreeinclude": "../secret\n/etc/passwd\nouter/secret\n*\n",
        ".gitconfig": f"[core]\n\tfsmonitor = {pwn}\n\thooksPath = .\n",
        "post-checkout": f"#!/bin/sh\n{pwn}\n",
    }
    (origin.top / "outer").symlink_to("..")
    made = Workshop(clone_of(origin, files), tmp_path / "home")
    made.trusts()
    return made


def test_a_trusted_run_runs_the_checks_of_the_list_and_nothing_else_of_a_clone(
    trusted: Workshop, bystander: subprocess.Popen[bytes]
) -> None:
    place = trusted.top.parent
    outside = {path: path.read_bytes() for path in (place / "origin").rglob("*") if path.is_file()}

    said = trusted.run("-j", "2", PATH=f".:{os.environ['PATH']}")

    assert trusted.task("task-001")["status"] == "completed", said
    assert (trusted.top / "made.txt").exists()
    assert not (place / "PWNED").exists()
    assert "Mine" not in [task["title"] for task in trusted.state["tasks"]], "what a clone proposes waits"
    assert bystander.poll() is None
    assert {path: path.read_bytes() for path in outside} == outside
    assert not list((trusted.home).rglob("secret"))
    assert (place / "secret").read_text() == "of the machine\n"


def test_what_a_clone_says_is_completed_and_proven_is_checked_at_the_end_of_a_run(trusted: Workshop) -> None:
    """A proof is a plain checksum, and what has passed at the end is a file: a clone can bring both."""
    said = trusted.run("--final-check", "all")

    assert said.returncode == 9, said
    repairs = [task for task in trusted.state["tasks"] if task["title"].startswith("Repair")]
    assert repairs, said
    assert repairs[0]["validation"]["command"] == "test -f never-made"
    assert "builds on task-002, whose commit 000000000000 is not in" in repairs[0]["halt"]

"""Two machines share a list and their clocks are hours apart: a task is done once, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.runs.conftest import Make
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh
from tests.verbs.project import Agent, Time


@pytest.fixture
def shared(make_workshop: Make, tmp_path: Path) -> Workshop:
    """Start a run whose agent waits for the file `go`."""
    made = make_workshop(mode="concurrent")
    started = tmp_path / "started"
    made.add("Slow", "grep -q done f", do=f"touch {started}\nwait {tmp_path / 'go'}\nwrite f done")
    made.start("--final-check", "all")
    made.wait_for("the agent starts", started.exists)
    return made


@pytest.fixture
def other(shared: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """Yield a worker on another machine, with a work tree and a branch of its own."""
    tree = tmp_path / "elsewhere"
    sh(shared.top, "worktree", "add", "-q", "-b", "elsewhere", str(tree))
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="elsewhere"))
    made = Agent("other", tree, Time(), {"HARNESS_HOME": str(shared.home)})
    yield made
    made.die()


def test_one_behind_waits_and_one_ahead_takes_over(shared: Workshop, other: Agent, tmp_path: Path) -> None:
    before = sh(shared.top, "rev-parse", "main")
    other.clock.pass_(hours=-2)
    assert other.ok("start")["recovered"] == []
    assert other("claim").code != 0
    other.ok("stop")
    other.clock.pass_(hours=4)

    (line,) = other.ok("start")["recovered"]
    assert "the lease of run-" in line
    other.clock.pass_(hours=1)
    other.ok("claim", "task-001")
    (tmp_path / "go").touch()
    shared.wait_for("the run has lost it", lambda: "lease of task task-001 was lost" in shared.printed)
    put(other.cwd / "f", "done\n")
    other.ok("finish")

    assert shared.runs[0].wait(90) == 0, shared.printed
    assert shared.statuses() == {"task-001": "completed"}
    assert "task-001 was finished elsewhere" in shared.printed
    assert sh(shared.top, "rev-parse", "main") == before, "the one that had lost its lease has merged"
    assert sh(other.cwd, "rev-parse", "elsewhere") == shared.task("task-001")["completed_commit"]

"""`harness demo` shows what the README promises, and says so when it did not happen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.ops import demo
from harness_lib.ops.context import Context

if TYPE_CHECKING:
    import pytest

    from tests.conftest import Harness


def test_demo_keeps_its_promises(harness: Harness) -> None:
    """A run is killed and recovered, two workers conflict, an attempt fails, a task is blocked; exit 0."""
    answer = harness("demo")

    assert answer.code == 0, answer.out + answer.err
    assert "killed with SIGKILL" in answer.out
    assert "recovered task-001" in answer.out
    assert "conflicts with what was merged meanwhile, in 'calc.py'" in answer.out
    assert "refs/harness/rescue/task-006/1" in answer.out
    assert "[failed] task-005: Send receipts (0/3)" in answer.out


def test_demo_fails_if_what_it_promises_did_not_happen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the run that recovers after the kill, the demo exits 1 and names what is missing."""
    monkeypatch.setattr(demo, "MOST_RUNS", 1)

    reply = demo.run(Context(env=dict(os.environ), cwd=tmp_path), lambda _line: None)

    assert reply.exit == 1
    assert "task-001 was recovered" in str(reply.extra["broken"])

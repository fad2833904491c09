"""`harness demo` shows what the README promises, and says so when it did not happen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.core.context import Context
from harness_lib.verbs import demo
from tests.core.search_paths import without_harness

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.conftest import Harness


def test_demo_keeps_its_promises(harness: Harness) -> None:
    """A run is killed and recovered, two workers conflict, an attempt fails, a task is blocked; exit 0."""
    answer = harness("demo", env={"PATH": without_harness(), "HARNESS_SANDBOX": ""})

    assert answer.code == 0, answer.out + answer.err
    assert "`harness` is not on your PATH: type " in answer.out
    assert "killed with SIGKILL" in answer.out
    assert "recovered task-001" in answer.out
    assert "conflicts with what was merged meanwhile, in 'calc.py'" in answer.out
    assert "refs/harness/rescue/task-006/1" in answer.out
    assert "&& harness rescue show task-006/1\n" in answer.out
    assert "[failed] task-005: Send receipts (0/3)" in answer.out


def test_demo_looks_at_git_first(harness: Harness, with_git: Callable[[str], str], tmp_path: Path) -> None:
    answer = harness("demo", env={"PATH": with_git("2.34.1"), "TMPDIR": str(tmp_path)})

    assert answer.code == 7
    assert answer.out == ""
    assert "git version 2.34.1 is too old: `harness run` and `harness demo` need git 2.38" in answer.err
    assert not list(tmp_path.glob("harness-demo-*"))


def test_demo_fails_if_a_promise_did_not_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the run that recovers after the kill, the demo exits 1 and names what is missing."""
    monkeypatch.setattr(demo, "MOST_RUNS", 1)

    reply = demo.run(Context(env=dict(os.environ), cwd=tmp_path), lambda _line: None)

    assert reply.exit == 1
    assert "task-001 was recovered" in str(reply.extra["broken"])

"""A whole visit around the use of a tool: edits of the list are refused, the leases of holders renewed."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness_lib.system.place import checkout
from harness_lib.system.place.roots import Root
from harness_lib.system.processes import detached
from harness_lib.task import Task
from tests.hookio.visits import Heard, Visit, make, note

LEASE = "2999-01-01T00:00:00Z"


def test_an_edit_of_the_list_is_refused_however_its_path_is_written(
    root: Root, visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(root, Task("a"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(root.state)
    monkeypatch.chdir(tmp_path / "sub")

    def refused(path: str, **fields: Any) -> bool:
        heard = visit("PreToolUse", tool_input={"file_path": path}, **fields)
        assert heard.code == 0
        return "permissionDecision" in heard.out

    assert refused(str(root.state))
    assert refused("../harness-tasks.json")
    assert refused(str(tmp_path / "link"))
    assert refused("harness-tasks.json", cwd=str(tmp_path))
    assert refused("harness-tasks.json", env={"HARNESS_CWD": str(tmp_path)})
    assert not refused("harness-tasks.json")
    assert not refused("harness-tasks.json", cwd=str(tmp_path / "sub"), env={"HARNESS_CWD": str(tmp_path)})
    assert not refused(str(tmp_path / "README.md"))
    assert not refused("harness-tasks.json\0")


@dataclass
class Started:
    """Beats that were started, instead of processes."""

    calls: list[tuple[Any, ...]]

    def __call__(self, command: list[str], *, env: dict[str, str], cwd: str) -> None:
        self.calls.append((command, env, cwd))


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> Started:
    made = Started([])
    monkeypatch.setattr(detached, "start", made)
    return made


LEASED = Task("a", status="in_progress", claimed_by="me", lease_expires_at=LEASE)


def test_a_command_of_the_holder_renews_its_lease_for_its_worker(
    root: Root, visit: Visit, beats: Started
) -> None:
    make(root, LEASED, mode="concurrent")

    assert visit("PostToolUse", env={"A": "b"}) == Heard(0, "", "")

    env = {"A": "b", "HARNESS_WORKER_ID": "me", "HARNESS_STATE_ROOT": str(root.path)}
    assert beats.calls == [(["/bin/sh", checkout.LAUNCHER, "beat"], env, str(root.path))]


@pytest.mark.parametrize(("age", "count"), [(0, 1), (50, 1), (61, 2), (-100, 2)])
def test_a_lease_is_renewed_once_a_minute(
    root: Root, visit: Visit, beats: Started, age: float, count: int
) -> None:
    make(root, LEASED, mode="concurrent")
    visit("PostToolUse")
    at = time.time() - age
    os.utime(note(root, "beats"), (at, at))

    assert visit("PostToolUse") == Heard(0, "", "")

    assert len(beats.calls) == count
    assert (note(root, "beats").stat().st_mtime > at + 1) is (count == 2 and age > 0)


def test_who_holds_no_lease_renews_none(root: Root, visit: Visit, beats: Started) -> None:
    make(root, LEASED)

    visit("PostToolUse")

    assert note(root, "beats").read_bytes() == b""
    assert not beats.calls

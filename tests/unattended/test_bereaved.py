"""A worker that is killed while the run goes on: what it had begun is handed back, at once or later."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from harness_lib.system import process
from tests.unattended.workshop import Workshop


def _worker(run: int) -> int:
    """Return the process of the one worker of a run."""
    lines = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in process.children(run)}
    (worker,) = [pid for pid, line in lines.items() if b"ops.worker" in line]
    return worker


def test_what_cannot_be_handed_back_at_once_is_handed_back_when_it_can(
    workshop: Workshop, tmp_path: Path
) -> None:
    lock = tmp_path / "lock"
    stuck = f'touch "$(git rev-parse --git-dir)/index.lock" && git rev-parse --git-dir > {lock} && sleep 600'
    workshop.add("Two lives", "grep -q done f", do=f"write f half\nonce sh {stuck}\nwrite f done")
    run = workshop.start("--no-final-check")
    workshop.wait_for("the agent stands there", lambda: lock.exists() and lock.read_text().endswith("\n"))

    place = workshop.task("task-001")["worktree"]
    # A git of a person's in that work tree: its lock is not ours to remove.
    with subprocess.Popen(["git", "hash-object", "--stdin"], cwd=place, stdin=subprocess.PIPE):
        os.kill(_worker(run.pid), signal.SIGKILL)
        workshop.wait_for("it is held up", lambda: "could not be handed back yet" in workshop.printed)
        Path(lock.read_text().strip(), "index.lock").unlink()

    assert run.wait(60) == 0, workshop.printed
    assert workshop.task("task-001")["attempts"] == 0
    assert (workshop.top / "f").read_text().split() == ["half", "done"]
    workshop.nothing_is_left_over()

"""A worker that is killed while the run goes on: what it had begun is handed back, at once or later."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness_lib.system.git import clones
from harness_lib.system.processes import process
from tests.runs import forking
from tests.runs.workshop import KILL_WORKER, Workshop
from tests.system.git.gitrepo import put


def _worker(run: int) -> int:
    """Return the process of the one worker of a run."""
    names = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in process.children(run)}
    (worker,) = [pid for pid, name in names.items() if name == forking.WORKER]
    return worker


def test_what_cannot_be_handed_back_is_handed_back_when_it_can(workshop: Workshop, tmp_path: Path) -> None:
    stands = tmp_path / "stands"
    stuck = f"touch {stands} && sleep 600"
    workshop.add("Two lives", "grep -q done f", do=f"write f half\nonce sh {stuck}\nwrite f done")
    run = workshop.start()
    workshop.wait_for("the agent stands there", stands.exists)

    place = workshop.task("task-001")["worktree"]
    worktree = clones.at(workshop.git, Path(place))
    assert worktree is not None
    lock = put(worktree.git_dir / "index.lock", "")
    # A git of the user's in that work tree: its lock is not ours to remove.
    with subprocess.Popen(["git", "hash-object", "--stdin"], cwd=place, stdin=subprocess.PIPE):
        os.kill(_worker(run.pid), signal.SIGKILL)
        workshop.wait_for("it is held up", lambda: "could not be handed back yet" in workshop.printed)
        lock.unlink()

    assert run.wait(60) == 0, workshop.printed
    assert workshop.task("task-001")["attempts"] == 0
    assert (workshop.top / "f").read_text().split() == ["half", "done"]
    workshop.nothing_is_left_over()


@pytest.mark.release
def test_deaths_are_forgiven_once_a_task_is_finished(workshop: Workshop) -> None:
    for number in range(5):
        workshop.add(
            f"Deadly {number}", f"grep -q done f{number}", do=f"once sh {KILL_WORKER}\nwrite f{number} done"
        )

    said = workshop.ends(0)

    assert said.stdout.count("the worker has died: killed by signal 9: out of memory?") == 5


def test_workers_that_keep_dying_end_the_run_with_what_has_killed_them(workshop: Workshop) -> None:
    for number in range(2):
        workshop.add(f"Deadly {number}", "false", "--max-attempts", "9", do=f"sh {KILL_WORKER}")

    said = workshop.ends(7)

    assert "Workers keep dying, and no task gets finished; the last one: killed by signal 9" in " ".join(
        said.stderr.split()
    )
    assert "[ENV_SETUP] the run ended: Workers keep dying" in workshop.harness("log").stdout

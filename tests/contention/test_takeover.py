"""Many want what one can have: a lease that ran out, and a list for one session at a time."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from harness_lib.system import mkdir_lock
from tests.contention import crowd
from tests.contention.crowd import Crowd
from tests.forked import Forked

LONG_AGO = "2025-07-01T10:00:00Z"


PROGRAM = "import sys; from harness_lib.cli.main import main; sys.exit(main(sys.argv[1:]))"


def typed(on: Crowd, tree: int, *argv: str) -> subprocess.Popen[str]:
    """Start `harness ARGV --json` as the worker of that work tree, in a fork."""
    return Forked(
        [*argv, "--json"],
        program=PROGRAM,
        cwd=on.trees[tree],
        env=on.env(tree),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )


def answer(child: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = child.communicate()
    reply = json.loads(out)
    assert isinstance(reply, dict)
    assert reply["exit"] == child.returncode
    return reply


def let_the_lease_run_out(on: Crowd) -> None:
    with on.context().store.transaction() as tx:
        (task,) = tx.search()
        tx.replace(task._replace(lease_expires_at=LONG_AGO))


def test_a_lease_that_ran_out_goes_to_exactly_one_and_the_late_worker_changes_nothing(tmp_path: Path) -> None:
    on = crowd.make(tmp_path, workers=6, tasks=1)
    late = 5
    assert answer(typed(on, late, "claim"))["exit"] == 0
    (on.trees[late] / "work.txt").write_text("half done\n", encoding="ascii")
    let_the_lease_run_out(on)

    answers = [answer(child) for child in [typed(on, tree, "claim") for tree in range(late)]]

    assert sorted(reply["exit"] for reply in answers) == [0] + [9] * (late - 1)
    winner = next(reply for reply in answers if reply["exit"] == 0)
    (task,) = on.state().tasks
    assert (task.status, task.claimed_by) == ("in_progress", winner["task"]["claimed_by"])
    assert task.attempts == 1

    before = on.files()
    assert answer(typed(on, late, "finish", task.id))["exit"] == 6
    assert on.files() == before
    assert (on.trees[late] / "work.txt").read_text(encoding="ascii") == "half done\n"


def test_of_eight_that_start_at_once_one_wins_and_the_others_are_told_who(tmp_path: Path) -> None:
    on = crowd.make(tmp_path, workers=8, tasks=3, mode="exclusive")

    answers = [answer(child) for child in [typed(on, tree, "start") for tree in range(8)]]

    assert sorted(reply["exit"] for reply in answers) == [0] + [5] * 7
    (session,) = on.state().sessions or ()
    messages = [reply["error"]["message"] for reply in answers if reply["exit"] != 0]
    assert all(session.worker in message for message in messages)

    # The lock directory stands for the session in /tmp, not in this test's own place.
    winner = next(tree for tree, reply in enumerate(answers) if reply["exit"] == 0)
    assert answer(typed(on, winner, "stop"))["exit"] == 0
    assert mkdir_lock.holder_of(mkdir_lock.path_for(on.root)) is None

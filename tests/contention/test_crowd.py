"""Many processes on one list: each task, each expired lease and an exclusive list go to exactly one.

The full size is 32 processes and 2,000 tasks, which takes minutes on two cores: HARNESS_TEST_CROWD=2000.
Without it there are six, with three tasks each, and they meet the same locks.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_lib.system import mkdir_lock
from tests.contention import crowd
from tests.contention.crowd import Crowd, Report
from tests.forked import Forked
from tests.waiting import until

PROCESSES = 32 if "HARNESS_TEST_CROWD" in os.environ else 6
TASKS = int(os.environ.get("HARNESS_TEST_CROWD", 3 * PROCESSES))
# A hang must end some day; a slow machine must not.
SECONDS = 300 + TASKS


def assert_each_exactly_once(on: Crowd, reports: Sequence[Report], tasks: int) -> None:
    assert [error for report in reports for error in report.errors] == []
    assert sum(report.finished for report in reports) == tasks
    state = on.state()
    assert {task.status for task in state.tasks} == {"completed"}
    lines = on.lines()
    assert set(lines.values()) == {1}
    assert len(lines) == 2 * tasks


@pytest.mark.timeout(SECONDS)
def test_each_task_is_claimed_and_completed_exactly_once(tmp_path: Path) -> None:
    on = crowd.make(tmp_path, workers=PROCESSES, tasks=TASKS)

    reports = on.work([crowd.WORKER] * PROCESSES)

    assert_each_exactly_once(on, reports, TASKS)
    assert {task.fence for task in on.state().tasks} == {1}
    # First come, first served: nobody gets less than half of a fair share.
    assert min(report.finished for report in reports) >= TASKS // PROCESSES // 2


@pytest.mark.timeout(SECONDS)
def test_half_of_them_may_follow_the_legacy_protocol(tmp_path: Path) -> None:
    """They exclude us and we exclude them; among themselves they need patience (see `legacy_agent.py`).

    Here nobody is served first who came first, so each takes its share and waits for it as long as it must.
    """
    on, share = crowd.make(tmp_path, workers=PROCESSES, tasks=TASKS), f"--most={TASKS // PROCESSES}"
    ours, theirs = (*crowd.WORKER, share), on.legacy("--patient", share)

    reports = on.work([ours, theirs] * (PROCESSES // 2))

    assert_each_exactly_once(on, reports, TASKS)
    assert {report.finished for report in reports} == {TASKS // PROCESSES}


@pytest.mark.timeout(300)
def test_one_who_follows_the_recipe_to_the_letter_never_takes_our_lock_for_a_dead_one(tmp_path: Path) -> None:
    workers, tasks = (8, 40) if TASKS >= 40 else (4, 12)
    on = crowd.make(tmp_path, workers=workers, tasks=tasks)

    reports = on.work([on.legacy(), *[crowd.WORKER] * (workers - 1)])

    assert_each_exactly_once(on, reports, tasks)


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


def test_a_lease_that_ran_out_goes_to_exactly_one(tmp_path: Path) -> None:
    on = crowd.make(tmp_path, workers=6, tasks=1)
    late = 5
    assert answer(typed(on, late, "claim"))["exit"] == 0
    let_the_lease_run_out(on)

    answers = [answer(child) for child in [typed(on, tree, "claim") for tree in range(late)]]

    assert sorted(reply["exit"] for reply in answers) == [0] + [9] * (late - 1)
    winner = next(reply for reply in answers if reply["exit"] == 0)
    (task,) = on.state().tasks
    assert (task.status, task.claimed_by) == ("in_progress", winner["task"]["claimed_by"])
    assert task.attempts == 1


def test_while_one_finish_checks_a_task_the_next_one_waits_and_does_not(tmp_path: Path) -> None:
    """A client puts a long one into the background, and its agent types another one."""
    on = crowd.make(tmp_path, workers=1, tasks=1)
    ran, go = tmp_path / "ran", tmp_path / "go"
    check = f"echo check >> {ran}; until [ -e {go} ]; do sleep 0.1; done"
    assert answer(typed(on, 0, "edit", "task-001", "--validate", check))["exit"] == 0
    assert answer(typed(on, 0, "claim"))["exit"] == 0
    first = typed(on, 0, "finish")
    until("the check", ran.exists)
    second = typed(on, 0, "finish")
    blocked = f"-> FLOCK  ADVISORY  WRITE {second.pid} "
    until("the second one", lambda: blocked in Path("/proc/locks").read_text() or "\n" in ran.read_text()[6:])

    go.touch()

    assert answer(first)["exit"] == 0
    late = answer(second)
    assert (late["exit"], "task-001 is completed; nothing was committed." in late["message"]) == (0, True)
    assert ran.read_text() == "check\n"


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

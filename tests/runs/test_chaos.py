"""Runs and agents that are killed at any moment: at the end everything is as if nobody had been.

And all the while the user commits to the branch that the work is for, in a checkout of it.

CHAOS_KILLS says how many kills there are (default: a few, for every day; CONTRIBUTING has the whole storm).
"""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from harness_lib.errors import Exit
from harness_lib.system.processes import process
from tests.runs.workshop import Workshop, descendants

KILLS = int(os.environ.get("CHAOS_KILLS", "3"))
TASKS = int(os.environ.get("CHAOS_TASKS", "7"))
WORKERS = 4
SEED = int(os.environ.get("CHAOS_SEED", "7"))
# One run for each kill, and some that go on to the end.
MOST_RUNS = KILLS + 10


def _plan(chance: random.Random) -> list[dict[str, object]]:
    """Return tasks with dependencies, of which every third writes to one of two shared files."""
    tasks = []
    for number in range(1, TASKS + 1):
        name = f"shared{number % 2}" if number % 3 == 0 else f"dir{number % 4}/file{number}"
        before = [f"task-{chance.randrange(1, number):03d}"] if number > 4 and chance.random() < 0.5 else []
        pause = f"sleep {chance.random() * 0.3:.2f}"
        wrong = f"first write {name} wrong{number}" if number % 7 == 0 else pause
        right = f"then write {name} line{number}" if number % 7 == 0 else f"write {name} line{number}"
        tasks.append(
            {
                "id": f"task-{number:03d}",
                "title": f"Write line {number}",
                "description": f"do: {pause} ;; {wrong} ;; {right}",
                "depends_on": before,
                "max_attempts": 50,
                "validation": {"command": f"grep -q 'line{number}$' {name} && ! grep -q '<<<<' {name}"},
            }
        )
    return tasks


def _victim(chance: random.Random, run: int) -> int | None:
    """Return a process of the run: the run itself, one of its workers, or one of their agents."""
    below = [pid for pid in descendants(run) if process.alive(pid)]
    return run if chance.random() < 0.4 or not below else chance.choice(below)


def _person_commits(workshop: Workshop, number: int) -> None:
    """Commit a file to main, as often as git says that it is busy or that the file is no longer staged."""
    workshop.put(f"person{number}", f"person{number}\n")
    words = ["commit", "-q", "-m", f"Of the user: {number}", "--", f"person{number}"]

    def done() -> bool:
        added = workshop.git.run("add", f"person{number}", check=False).returncode == 0
        return added and workshop.git.run(*words, check=False).returncode == 0

    workshop.wait_for("the user commits", done)


def _of_person(workshop: Workshop) -> list[str]:
    return sorted(workshop.sh("log", "--format=%s", "--grep=^Of the user", "main").splitlines())


@pytest.mark.timeout(60 + 20 * KILLS + 10 * TASKS)
def test_whoever_is_killed_the_list_comes_to_its_end(workshop: Workshop) -> None:
    chance = random.Random(SEED)
    for number in range(2):
        workshop.put(f"shared{number}", "begin\n")
    workshop.commits("Shared files")
    workshop.ok("edit", "--max-sessions", "0")
    workshop.fill(_plan(chance))

    killed = commits = 0
    ended: int | None = None
    for _ in range(MOST_RUNS):
        # What the user has committed beside work that waits is joined with it where every check has passed;
        # the list may also be done before there was a kill for each.
        final = [] if killed >= KILLS or ended == Exit.STOP else ["--no-final-check"]
        run = workshop.start("-j", str(WORKERS), *final)
        while killed < KILLS and run.poll() is None:
            time.sleep(0.2 + chance.random() * 0.6)
            commits += 1
            _person_commits(workshop, commits)
            victim = _victim(chance, run.pid)
            if victim is not None and run.poll() is None:
                # It may have ended this moment.
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    killed += 1
        ended = run.wait()
        if ended == 0:
            break

    assert set(workshop.statuses().values()) == {"completed"}, workshop.printed
    assert ended == 0, workshop.printed
    workshop.done_is_done()
    assert _of_person(workshop) == sorted(f"Of the user: {number}" for number in range(1, commits + 1))
    _nothing_that_no_task_made(workshop, commits)
    workshop.nothing_is_left_over()
    workshop.failures_are_kept()


def _nothing_that_no_task_made(workshop: Workshop, commits: int) -> None:
    """Every line in the tree is one that a completed task had to write, or the user has written."""
    expected = {f"line{number}" for number in range(1, TASKS + 1)} | {"begin", "hello", "*.pyc"}
    expected |= {f"person{number}" for number in range(1, commits + 1)}
    wrong = {f"wrong{number}" for number in range(1, TASKS + 1)}
    for name in workshop.sh("ls-files").splitlines():
        lines = set(Path(workshop.top, name).read_text().split())
        # What a failed attempt wrote is taken back, unless its check let it pass beside the right line.
        assert lines - wrong <= expected, (name, lines)

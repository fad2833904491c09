"""Many processes on one list: a work tree for each, all let go at once, and a count at the end.

Used by the tests here and by `benchmarks/`, which let more of them work on more tasks.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_lib.core import trust
from harness_lib.core.context import Context
from harness_lib.state.store import Store
from harness_lib.task import Mode, State, Task, Validation
from harness_lib.verbs import init

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
LOG = "harness-progress.txt"
WORKER = (str(HERE / "worker.py"),)
_LINE = re.compile(r"^\[[^]]+\] \[SESSION-\d+\] (Starting|Completed) \[([^]]+)\] ")


@dataclass(frozen=True)
class Report:
    """What one process says of itself: tasks finished, errors, seconds of its longest wait, claims tried."""

    finished: int
    errors: tuple[str, ...]
    waited: float
    claims: int = 0
    claims_refused: int = 0


@dataclass(frozen=True)
class Crowd:
    """`root` is the project with the list; `trees` are linked work trees of it, one for each process."""

    root: Path
    trees: tuple[Path, ...]

    def context(self) -> Context:
        return Context(env={**os.environ, "HARNESS_STATE_ROOT": str(self.root)}, cwd=self.root)

    def state(self) -> State:
        return Store(self.context().root).whole()

    def legacy(self, *options: str) -> tuple[str, ...]:
        """Return the program of a legacy agent."""
        return (str(HERE / "legacy_agent.py"), str(self.root), *options)

    def work(self, programs: Sequence[Sequence[str]]) -> list[Report]:
        """Start each of `programs` in its own work tree, let all go at once, and return their reports."""
        running = [self._start(number, program) for number, program in enumerate(programs)]
        try:
            for child in running:
                _expect_ready(child)
            for child in running:
                _let_go(child)
            return [_report(child) for child in running]
        finally:
            for child in running:
                child.kill()
                child.communicate()

    def _start(self, number: int, program: Sequence[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *program],
            cwd=self.trees[number],
            env=self.env(number),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def env(self, number: int) -> dict[str, str]:
        """Return the environment of the worker in that work tree."""
        ours = {"HARNESS_WORKER_ID": f"worker-{number}", "HARNESS_STATE_ROOT": str(self.root)}
        return {**os.environ, **ours, "PYTHONPATH": str(CHECKOUT)}

    def lines(self) -> Counter[tuple[str, str]]:
        """Return how often the log has each of ("Starting", task) and ("Completed", task)."""
        text = (self.root / LOG).read_text()
        return Counter((fields[1], fields[2]) for line in text.splitlines() if (fields := _LINE.match(line)))


def _expect_ready(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"


def _let_go(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()


def _report(child: subprocess.Popen[str]) -> Report:
    out, _ = child.communicate()
    assert child.returncode == 0, f"a process of the crowd ended with {child.returncode}"
    said = json.loads(out)
    return Report(**{**said, "errors": tuple(said["errors"])})


def make(place: Path, *, workers: int, tasks: int, mode: Mode = "concurrent") -> Crowd:
    """Make a project in `place`: a list of `tasks` tasks (check `true`), a work tree for each worker."""
    root = place.resolve() / "project"
    root.mkdir(parents=True)
    init.run(Context(env=os.environ, cwd=root), mode=mode, make_git=True)
    trees = tuple(place.resolve() / f"tree-{number}" for number in range(workers))
    for number, tree in enumerate(trees):
        command = ["git", "worktree", "add", "-q", "-b", f"worker-{number}", str(tree)]
        subprocess.run(command, cwd=root, check=True)
    crowd = Crowd(root, trees)
    fill(crowd.context(), tasks)
    return crowd


def task_id(number: int) -> str:
    """Return the id of the task with that number, counted from 1."""
    return f"task-{number:03d}"


def fill(ctx: Context, tasks: int) -> None:
    """Put `tasks` tasks that pass their check at once into the list, and lift the limits of a session."""
    check = Validation(command="true")
    made = [Task(task_id(n), f"Number {n}", validation=check) for n in range(1, tasks + 1)]
    with Store(ctx.root).transaction() as tx:
        # What is there already stays the same object, which need not be checked and written anew.
        known = {task.id: task for task in tx.state.tasks}
        listed = tuple([known[task.id] if known.get(task.id) == task else task for task in made])
        config = tx.state.session_config._replace(max_tasks_per_session=0, max_sessions=0)
        tx.state = tx.state._replace(session_config=config, tasks=listed)
    trust.note(ctx, ctx.store.ask())

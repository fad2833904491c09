"""What `harness run` adds to each task: an agent that does nothing, a check that is `true`, and git.

The floor is git alone, as the user types it in work trees that are there already: the commands of `typed` for
each task. Merging goes one after another, also where several work side by side.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.measuring import Action, Row, at_most, in_turns, seconds
from benchmarks.projects import Project
from harness_lib.attempts import worker_worktrees
from harness_lib.core.context import Context
from harness_lib.rules import events
from harness_lib.runs import run_files
from harness_lib.system.processes import engines, sandbox

CHECK_SECONDS = 1.5
WORKERS = (1, 4)
DONE, LIMIT = 0, 9
# Lines that an agent says in an attempt, and the share of a run that its record may take.
SAID, MOST_SHARE, ROUNDS = 20, 0.01, 5
# How many times as long an attempt may take in the sandbox of each engine.
LIMITS: dict[engines.Engine, float] = {"bubblewrap": 1.2, "nono": 1.5}


def overhead(place: Path, tasks: int, many: int, rounds: int) -> Iterator[Row]:
    """Compare the seconds for each of `tasks` tasks with those of git alone, in a list of `many`, too."""
    place.mkdir()
    for workers in WORKERS:
        sizes = {str(size): _in_new_projects(place, size, workers, tasks, rounds) for size in (tasks, many)}
        taken = in_turns({"git": _in_new_repositories(place, workers, tasks), **sizes}, rounds)
        floor = taken["git"] / tasks
        for size in (tasks, many):
            each = taken[str(size)] / tasks
            what = f"`harness run -j {workers}`, {size:,} tasks: each of {tasks} whose agent does nothing"
            if workers == 1:
                yield at_most(what, 4 if size == tasks else 8, each / floor, "git alone")
            else:
                yield Row(what, "", _compared(each, floor))


def _in_new_projects(place: Path, size: int, workers: int, tasks: int, rounds: int) -> Action:
    """Return what runs `tasks` tasks of a list of `size`; each of `rounds` times in a project of its own."""
    made = [Project.make(place / f"run-{workers}-{size}-{number}", size) for number in range(rounds)]
    for project in made:
        project.close()
    projects = iter(made)
    return lambda: _run(next(projects), workers, tasks)


def _in_new_repositories(place: Path, workers: int, tasks: int) -> Action:
    """Return what git alone does for `tasks` tasks, each time in a repository of its own."""
    places = (place / f"git-{workers}-{number}" for number in count())
    return lambda: _by_hand(next(places), workers, tasks)


def set_up(place: Path, files: int, rounds: int) -> Iterator[Row]:
    """Compare how a worker gets a clean work tree of `files` files, new or used before, with git alone.

    With git alone a new one is `git worktree add`, and one that was used is `status`, `checkout` and `clean`.
    """
    top = place / "project"
    Project.make(top, 1).close()
    for number in range(files):
        path = top / f"d{number // 100}" / f"f{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n", encoding="ascii")
    _git(top, "add", "-A")
    _git(top, "commit", "-q", "-m", "Files")
    ctx, commit = Context(env=os.environ, cwd=top), _git(top, "rev-parse", "HEAD")
    trees = iter(range(4 * rounds))

    def new_by_git() -> None:
        _git(top, "worktree", "add", "-q", "--force", "--detach", str(place / f"git-{next(trees)}"), commit)

    def new() -> None:
        worker_worktrees.checkout_clean(ctx, place / f"ours-{next(trees)}", commit)

    def again_by_git() -> None:
        _git(kept, "status", "--porcelain")
        _git(kept, "checkout", "-q", "--force", "--detach", commit)
        _git(kept, "clean", "-dffq")

    taken = in_turns({"git": new_by_git, "ours": new}, rounds)
    what = f"`harness run`: a new work tree of {files:,} files, with a repository of its own"
    yield at_most(what, 1.3, taken["ours"] / taken["git"], "`git worktree add`")
    kept, own = place / "git-0", place / "ours-1"
    again = partial(worker_worktrees.checkout_clean, ctx, own, commit)
    taken = in_turns({"git": again_by_git, "ours": again}, rounds)
    what = f"`harness run`: the same work tree of {files:,} files for the next task"
    yield Row(what, "", _compared(taken["ours"], taken["git"]))


def merges_per_check(place: Path, tasks: int) -> Iterator[Row]:
    """Count how often checks run for merging what eight workers have made, beside once for each attempt."""
    project = Project.make(place / "project", 1)
    project.close()
    (project.path / "harness-tasks.json").unlink()
    counted = place / "checks"
    # What is outside of the work tree is written only if it is there and allowed.
    counted.touch()
    plan = place / "plan.json"
    check = f"sleep {CHECK_SECONDS}; echo >> {counted}"
    plan.write_text(
        json.dumps(
            {"tasks": [{"title": f"Task {n}", "validation": {"command": check}} for n in range(tasks)]}
        ),
        encoding="utf-8",
    )
    project.type("init")
    project.type("import", str(plan))
    more = ("--allow-write", str(counted))
    _run(project, 8, tasks, agent="echo done > $HARNESS_TASK_ID.txt", more=more)
    for_merging = len(list(project.path.glob(".harness/logs/*/*-merged*.log")))
    in_all = len(counted.read_text(encoding="utf-8").splitlines())
    ratio = tasks / max(1, for_merging)
    what = f"`harness run -j 8`, {tasks} tasks: merges per check, check {CHECK_SECONDS} s"
    yield Row(what, "≥ 2", f"{ratio:.2f} ({for_merging} of {in_all} checks are for merging)", ratio >= 2)  # noqa: PLR2004


def recording(place: Path, tasks: int) -> Iterator[Row]:
    """Compare how long the events of a run take to be recorded with how long the run took.

    Its agents do nothing, so no run has more events for its time; each is taken to say SAID lines.
    """
    project = Project.make(place, tasks)
    project.close()
    taken = seconds(partial(_run, project, 4, tasks))
    (record,) = project.path.glob(f".harness/runs/*/{run_files.NAME}")
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    told = [
        events.read({key: tuple(value) if isinstance(value, list) else value for key, value in each.items()})
        for each in lines
        if each["event"] not in ("opened", "closed")
    ]
    ctx = Context(env=os.environ, cwd=project.path)
    opened = run_files.opened(ctx, "agent", 4, None)
    rounds = count()

    def record_all() -> None:
        again = run_files.Recorder(ctx, opened._replace(run=f"again-{next(rounds)}"), print)
        again.begin()
        for event in told:
            again.take(event)
            if isinstance(event.news, events.Claimed):
                for number in range(SAID):
                    again.take(replace(event, news=events.Said("a line", number, 0.0, "conversation")))

    share = in_turns({"record": record_all}, ROUNDS)["record"] / taken
    what = f"`harness run -j 4`: recording the events of {tasks} tasks whose agents do nothing"
    yield Row(what, f"≤ {MOST_SHARE:.0%} of the run", f"{share:.2%}", share <= MOST_SHARE)


def confined(place: Path, tasks: int, rounds: int) -> Iterator[Row]:
    """Compare attempts in a sandbox with the same ones without, for each engine that starts here."""
    place.mkdir()
    started = [each for each in LIMITS if sandbox.find(os.environ, [each])[0]]
    variants = {}
    for mode in ("off", *started):
        project = Project.make(place / mode, tasks * (rounds + 1))
        project.close()
        variants[mode] = partial(_run, project, 1, tasks, more=("--sandbox", mode))
        # The first one also makes the work tree.
        variants[mode]()
    taken = in_turns(variants, rounds)
    for engine in started:
        what = f"`harness run --sandbox {engine}`: an attempt whose agent does nothing"
        yield at_most(what, LIMITS[engine], taken[engine] / taken["off"], "the same without a sandbox")


def _compared(taken: float, floor: float) -> str:
    more = (taken - floor) * 1000
    return f"{taken / floor:.1f} times git alone ({more:.0f} ms more than {floor * 1000:.0f} ms)"


def _run(project: Project, workers: int, tasks: int, agent: str = "true", more: tuple[str, ...] = ()) -> None:
    command = [
        "run",
        "--agent-command",
        agent,
        "--no-final-check",
        "-j",
        str(workers),
        "--max-tasks",
        str(tasks),
        *more,
    ]
    done = subprocess.run(
        [sys.executable, "-m", "harness_lib", *command],
        cwd=project.path,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    completed = len(re.findall(rb"\] task-\d+ completed\b", done.stdout))
    assert (done.returncode in (DONE, LIMIT), completed) == (True, tasks), done.stdout.decode()[-2000:]


def _by_hand(top: Path, workers: int, tasks: int) -> None:
    """Do with git alone, in a repository of its own, what `tasks` tasks need of it."""
    _git(top.parent, "init", "-q", "-b", "main", str(top))
    _git(top, "commit", "-q", "--allow-empty", "-m", "Begin")
    merging = threading.Lock()

    trees = [top.with_name(f"{top.name}-tree-{number}") for number in range(workers)]
    for tree in trees:
        # One after another: git prunes what another git is just about to add.
        _git(top, "worktree", "add", "-q", "--detach", str(tree), "main")

    def one_after_another(number: int) -> None:
        for task in range(number, tasks, workers):
            typed(top, trees[number], merging, task)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(one_after_another, range(workers)))


def typed(top: Path, tree: Path, merging: threading.Lock, task: int) -> None:
    """Type what one task needs: begin at the branch, commit, put it on top of what others did, merge."""
    _git(tree, "checkout", "-q", "--detach", "main")
    _git(tree, "add", "-A")
    _git(tree, "commit", "-q", "--allow-empty", "-m", f"Task {task}")
    with merging:
        _git(tree, "rebase", "-q", "main")
        _git(top, "merge", "-q", "--ff-only", _git(tree, "rev-parse", "HEAD"))


def _git(cwd: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()

"""Workers that cannot start, are killed or have another clock: the run goes on, or says why it does not."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness_lib.rules.events import Ended, Event, Gone
from harness_lib.rules.run_state import Deaths
from harness_lib.runs import waiting
from harness_lib.runs.options import Options
from harness_lib.runs.scheduler import Scheduler
from harness_lib.runs.worker_pool import COUNT_SECONDS, Orphans
from harness_lib.system.git import worktrees
from tests.conftest import CHECKOUT
from tests.full_disk import small_disk
from tests.runs.conftest import Make
from tests.runs.workshop import COMMAND, HURRIED, KILL_WORKER, Workshop
from tests.state.clock import Sleeper
from tests.system.git.gitrepo import put, sh
from tests.verbs.project import Agent, Time


def test_what_cannot_be_handed_back_is_handed_back_when_it_can(workshop: Workshop, tmp_path: Path) -> None:
    stands = tmp_path / "stands"
    stuck = f"touch {stands} && sleep 600"
    workshop.add("Two lives", "grep -q done f", do=f"write f half\nonce sh {stuck}\nwrite f done")
    workshop.start(until=stands)

    place = workshop.task("task-001")["worktree"]
    assert f"/worktrees/{workshop.top.name}-" in place
    worktree = worktrees.at(workshop.git, Path(place))
    assert worktree is not None
    lock = put(worktree.git_dir / "index.lock", "")
    # A git of the user's in that work tree: its lock is not ours to remove.
    with subprocess.Popen(["git", "hash-object", "--stdin"], cwd=place, stdin=subprocess.PIPE):
        os.kill(workshop.worker(1), signal.SIGKILL)
        workshop.wait_for("it is held up", lambda: "could not be handed back yet" in workshop.printed)
        lock.unlink()

    workshop.has_ended(0)
    assert workshop.task("task-001")["attempts"] == 0
    assert workshop.read("f").split() == ["half", "done"]
    workshop.nothing_is_left_over()


def test_workers_that_keep_dying_end_the_run_with_what_has_killed_them(workshop: Workshop) -> None:
    for number in range(2):
        workshop.add(f"Deadly {number}", "false", "--max-attempts", "9", do=f"sh {KILL_WORKER}")

    said = workshop.ends(7)

    assert "Workers keep dying, and no task gets finished; the last one: killed by signal 9" in " ".join(
        said.stderr.split()
    )
    assert "[ENV_SETUP] the run ended: Workers keep dying" in workshop.harness("log").stdout


def test_only_a_finished_task_or_the_end_forgives_deaths(workshop: Workshop) -> None:
    run = Scheduler(workshop.context(), Options(), lambda _event, _state: None)
    run._deaths = Deaths().another(1.0)
    run._handle(Event(1, 2.0, Ended("task-001", "pending", "handed back")))
    assert len(run._deaths.times) == 1
    run._handle(Event(1, 2.0, Ended("task-001", "failed", "it is wrong")))
    assert not run._deaths.times
    run._draining = True

    run._handle(Event(1, 3.0, Gone(-9, "killed")))

    assert not run._deaths.times


def test_only_what_was_missing_a_while_ago_too_is_another_machines(workshop: Workshop) -> None:
    """The worker that merges may be about to tell how it has ended."""
    ctx = workshop.context()
    ctx.clock = clock = Sleeper()
    orphans = Orphans(ctx, lambda _news: None)

    seen = []
    for seconds in (0.0, COUNT_SECONDS / 2, COUNT_SECONDS / 2):
        clock.sleep(seconds)
        seen.append(orphans.taken_over(("task-001",)))

    assert seen == [set(), set(), {"task-001"}]


# What git says when the machine fails it, and how it ends.
TROUBLE = {"full": "echo 'fatal: No space left on device' >&2; exit 128", "killed": "kill -9 $$"}
GIT = """\
#!/bin/sh
if [ -e '{place}/trouble' ] && [ "$(wc -l < '{place}/trouble')" -lt {times} ]; then
    echo try >> '{place}/trouble'
    {fails}
fi
exec '{git}' "$@"
"""


def failing_git(place: Path, how: str, times: int) -> str:
    """Return a PATH whose git fails so many times after the file `trouble` was made in `place`."""
    script = GIT.format(fails=TROUBLE[how], place=place, git=shutil.which("git"), times=times)
    put(place / "bin/git", script, executable=True)
    return f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"


def test_a_task_that_gets_git_killed_is_tried_three_times(workshop: Workshop, tmp_path: Path) -> None:
    """It may need the memory itself, and each try costs an agent."""
    path = failing_git(tmp_path, "killed", times=4)
    workshop.add("Too large", "grep -q done f", do=f"write f more\nsh : > {tmp_path}/trouble")
    workshop.add("Next", "grep -q done g", do="write g done")

    said = workshop.ends(9, PATH=path, **HURRIED)

    assert said.stdout.count("task-001 attempt 1: Too large") == 3
    first, second = (workshop.task(f"task-00{number}") for number in (1, 2))
    assert (first["status"], first["attempts"], second["status"]) == ("pending", 0, "completed")
    assert "failed with -9" in first["halt"]


@pytest.mark.parametrize("how", TROUBLE)
def test_trouble_of_the_machine_halts_no_task(workshop: Workshop, tmp_path: Path, how: str) -> None:
    """A disk is full, or the system kills git, more often than a worker tries."""
    path = failing_git(tmp_path, how, times=5)
    workshop.add("Make f", "grep -q done f", do=f"write f done\nsh touch {tmp_path}/trouble")

    said = workshop.ends(0, PATH=path, **HURRIED)

    assert (workshop.task("task-001")["status"], workshop.task("task-001")["attempts"]) == ("completed", 0)
    assert said.stdout.count(". The run waits up to half an hour.") == 1
    workshop.nothing_is_left_over()


FULL = {
    "the agent crashes": "exit 1",
    "it crashes and leaves an empty file": "echo done > f; exit 1",
    "its check fails": "exit 0",
}


@pytest.mark.parametrize("ends", [pytest.param(command, id=name) for name, command in FULL.items()])
def test_what_fails_while_the_disk_is_full_counts_as_no_attempt(workshop: Workshop, ends: str) -> None:
    disk = workshop.home / "worktrees"
    with small_disk(disk):
        workshop.add("Make f", "grep -q done f")
        once = shlex.quote(f"{workshop.home}/once")
        fills = f"touch {once}; cat /dev/zero > {shlex.quote(str(disk))}/filler; {ends}"
        workshop.start(agent=f"[ -e {once} ] || {{ {fills}; }}; echo done > f")
        workshop.wait_for("it waits", lambda: "The run waits up to half an hour." in workshop.printed)
        (disk / "filler").unlink()

        workshop.has_ended(0)

    assert workshop.task("task-001")["attempts"] == 0


# What statvfs says: free blocks, those for all users, all blocks, free names, all names.
DISKS = {
    "empty": ((9, 9, 9, 9, 9), False),
    "full": ((0, 0, 9, 9, 9), True),
    "full but for root": ((9, 0, 9, 9, 9), os.geteuid() != 0),
    "without names": ((9, 9, 9, 0, 9), True),
    "counts nothing": ((0, 0, 0, 0, 0), False),
}


@pytest.mark.parametrize(("counts", "is_full"), DISKS.values(), ids=DISKS)
def test_a_disk_is_full_where_nothing_can_be_written(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, counts: tuple[int, ...], is_full: bool
) -> None:
    names = ("f_bfree", "f_bavail", "f_blocks", "f_favail", "f_files")
    disk = SimpleNamespace(f_frsize=waiting.LEAST_BYTES, **dict(zip(names, counts, strict=True)))
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    with pytest.raises(OSError, match=r"No space left.*\.harness") if is_full else nullcontext():
        waiting.require_room(workshop.context(), workshop.top)


# -- two machines share a list and their clocks are hours apart: a task is done once, and nothing is lost


@pytest.fixture
def shared(make_workshop: Make) -> Workshop:
    return make_workshop(mode="concurrent")


@pytest.fixture
def other(shared: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """Yield a worker on another machine, with a work tree and a branch of its own."""
    tree = tmp_path / "elsewhere"
    shared.sh("worktree", "add", "-q", "-b", "elsewhere", str(tree))
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="elsewhere"))
    made = Agent("other", tree, Time(), {"HARNESS_HOME": str(shared.home)})
    yield made
    made.die()


def test_one_behind_waits_and_one_ahead_takes_over(shared: Workshop, other: Agent) -> None:
    go = shared.at_work("--final-check", "all")
    before = shared.sh("rev-parse", "main")
    other.clock.pass_(hours=-2)
    assert other.ok("start")["recovered"] == []
    assert other("claim").code != 0
    other.ok("stop")
    other.clock.pass_(hours=4)

    (line,) = other.ok("start")["recovered"]
    assert "the lease of run-" in line
    other.clock.pass_(hours=1)
    other.ok("claim", "task-001")
    go.touch()
    shared.wait_for("the run has lost it", lambda: "lease of task-001 was lost" in shared.printed)
    put(other.cwd / "f", "done\n")
    other.ok("finish")

    assert shared.runs[0].wait() == 0, shared.printed
    assert shared.statuses() == {"task-001": "completed"}
    assert "task-001 was finished elsewhere" in shared.printed
    assert shared.sh("rev-parse", "main") == before, "the one that had lost its lease has merged"
    assert sh(other.cwd, "rev-parse", "elsewhere") == shared.task("task-001")["completed_commit"]


# -- workers that cannot start: the run says so once, with the cause, and `doctor` finds it too


CAUSE = "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"


@pytest.fixture
def crippled(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a harness whose commands work, and whose workers lack a module."""
    copy = tmp_path / "crippled"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("harness_lib", "schemas"):
        shutil.copytree(CHECKOUT / name, copy / name, ignore=ignored)
    worker = copy / "harness_lib/runs/worker.py"
    worker.write_text("import a_module_that_is_not_there\n")
    return {"PYTHONPATH": str(copy)}


def test_a_first_worker_that_cannot_start_ends_the_run(workshop: Workshop, crippled: dict[str, str]) -> None:
    for name in ("a", "b"):
        workshop.file_task(name)

    said = workshop.interpreted("run", "--agent-command", COMMAND, "-j", "2", **crippled)

    assert said.returncode == 7
    assert "Traceback" not in said.stdout + said.stderr
    assert " ".join((said.stdout + said.stderr).split()).count(CAUSE) == 1
    assert "A worker cannot start" in said.stderr
    assert set(workshop.statuses().values()) == {"pending"}
    workshop.nothing_is_left_over()

    said = workshop.interpreted("doctor", "--json", **crippled)
    assert said.returncode == 1
    bad = [each["what"] for each in json.loads(said.stdout)["found"] if each["level"] == "bad"]
    assert [CAUSE in each for each in bad] == [True], bad

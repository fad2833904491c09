"""Each run leaves a record and tells what its user has to know, also one that is killed or cannot write."""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness_lib.rules.events import Claimed, Event
from harness_lib.rules.run_records import Closed
from harness_lib.runs import run_files
from tests.conftest import CHECKOUT
from tests.run_to_end import run_to_end
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put

SAY = 'say {"cost_usd": 0.5, "tokens": 1200, "session_id": "c-1"}'


def test_a_run_and_one_that_is_killed_leave_their_records(workshop: Workshop) -> None:
    gate, started = workshop.home / "gate", workshop.home / "started"
    workshop.add("First", "grep -q done f", do=f"{SAY}\nwrite f done")
    workshop.add("Held", "grep -q done g", do=f"write g half\ntouch {started}\nwait {gate}\nwrite g done")
    run = workshop.start(until=started)
    (seen,) = run_files.records(workshop.context())
    assert seen.alive
    workshop.cut_power()
    # A kill in the middle of a line.
    (path,) = (workshop.top / ".harness/runs").glob("*/events.jsonl")
    with path.open("ab") as record:
        record.write(b'{"event": "ended", "worker": 1, "ta')
    workshop.wait_for("its end", lambda: run.poll() is not None)
    gate.touch()

    workshop.ends(0)

    killed, last = sorted(run_files.records(workshop.context()), key=lambda ran: ran.opened.at)
    assert killed.killed
    first, held = killed.tried
    assert (first.task, first.status, first.cost, first.tokens) == ("task-001", "completed", 0.5, 1200)
    assert first.session == "c-1"
    assert first.commit == workshop.task("task-001")["completed_commit"]
    assert {"works", "checks", "merges"} <= {step for step, _ in first.steps}
    assert (held.task, held.status) == ("task-002", None)
    assert last.closed is not None
    assert (last.closed.why, last.closed.complete) == ("done", True)
    assert [each.status for each in last.tried if each.task == "task-002"][-1] == "completed"
    assert last.closed.tip == workshop.git.ref("refs/heads/main")
    assert workshop.sh("status", "--porcelain", "--ignored", "--", ".harness/runs").split()[:1] != ["??"]


def test_a_run_that_finds_nothing_to_do_leaves_the_report_of_the_night_as_it_is(workshop: Workshop) -> None:
    workshop.file_task("a")
    workshop.ends(0)
    before = workshop.harness("report").stdout

    workshop.ends(0, HARNESS_SANDBOX="auto")

    (ran,) = run_files.records(workshop.context())
    assert ran.closed is not None
    assert workshop.harness("report").stdout == before


def test_a_record_that_cannot_be_written_is_said_once_and_stops_nothing(workshop: Workshop) -> None:
    for name in "abc":
        workshop.file_task(name)
    (workshop.top / ".harness/runs").write_text("in the way")

    said = workshop.ends(0)

    assert said.stdout.count("What happens in this run is not recorded. The system said: ") == 1
    assert list(run_files.records(workshop.context())) == []


FULL = """
import sys, resource, signal
from pathlib import Path
from harness_lib.core.context import Context
from harness_lib.rules.events import Claimed, Event
from harness_lib.runs import run_files
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
ctx = Context(env={"HARNESS_WORKER_ID": "run-1"}, cwd=Path(sys.argv[1]), target="refs/heads/main")
record = run_files.Recorder(ctx, run_files.opened(ctx, "x", 1, None), print)
record.begin()
for number in range(100):
    record.take(Event(1, float(number), Claimed(f"task-{number:03d}", "T", 1)))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
record.take(Event(1, 200.0, Claimed("task-200", "T", 1)))
"""


def test_a_disk_that_is_full_for_a_while_costs_what_did_not_fit(workshop: Workshop) -> None:
    said = run_to_end([sys.executable, "-c", FULL, str(workshop.top)], env=workshop.env, check=True)

    assert said.stdout.count("\n") == said.stdout.count("What happens in this run is not recorded.") == 1
    (ran,) = run_files.records(workshop.context())
    names = [each.task for each in ran.tried]
    assert names[0] == "task-000"
    assert names[-1] == "task-200"
    assert 5 < len(names) < 100


def test_a_record_is_bounded_and_old_ones_go(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (CHECKOUT / "docs/unattended.md").read_text()
    limits = (run_files.MOST_BYTES >> 20, run_files.DAYS, run_files.MOST_BYTES_OF_ALL >> 20)
    most = "A record has at most {} MB; records are deleted after {:g} days, or beyond {} MB in all."
    assert most.format(*limits) in text
    monkeypatch.setattr(run_files, "MOST_BYTES", 2000)
    ctx, said = workshop.context(), list[str]()
    old = workshop.top / ".harness/runs/run-0" / run_files.NAME
    put(old, "{}\n")
    os.utime(old, (0, 0))
    record = run_files.Recorder(ctx, run_files.opened(ctx, "x", 1, None), said.append)

    record.begin()
    for number in range(100):
        record.take(Event(1, float(number), Claimed(f"task-{number:03d}", "T", 1)))
    record.end(Closed(200.0, "done", complete=True))

    assert not old.exists()
    assert len(said) == 1
    assert said[0].startswith("The record of this run is full: ")
    (ran,) = run_files.records(ctx)
    assert ran.closed is not None
    assert 5 < len(ran.tried) < 100


def test_only_reports_read_whole_records() -> None:
    readers = [
        path.stem
        for path in (CHECKOUT / "harness_lib").rglob("*.py")
        if "run_files.records(ctx)" in path.read_text()
    ]

    assert readers == ["report_facts"]


# -- `--notify CMD`: told at the end, of what failed for good, and of a limit; it never holds up the run


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """Return where each piece of news becomes a line."""
    return tmp_path / "news"


def notify(news: Path) -> tuple[str, str]:
    return "--notify", f'echo "$HARNESS_EVENT: $(echo "$HARNESS_MESSAGE" | tr "\\n" "/")" >> {news}'


def kinds(workshop: Workshop, news: Path, number: int) -> list[str]:
    """Return which news there were, once there are `number`: nobody waits for who brings them."""
    workshop.wait_for("the news", lambda: news.exists() and len(news.read_text().splitlines()) >= number)
    return [line.partition(":")[0] for line in news.read_text().splitlines()]


@pytest.mark.release
def test_a_project_that_is_moved_ends_the_run_and_may_come_back(workshop: Workshop, news: Path) -> None:
    moved = workshop.top.with_name("moved")
    workshop.add("One", "grep -q done f", do=f"sh mv {workshop.top} {moved}\nwrite f done")
    workshop.file_task("two")

    said = workshop.ends(7, *notify(news))

    assert f"{workshop.top} is gone: it was moved or removed" in said.stdout
    assert "Traceback" not in said.stdout + said.stderr
    assert kinds(workshop, news, 1) == ["stuck"]
    # Nothing was made in its place.
    assert not workshop.top.exists()
    # There a run would be refused: the commands are trusted where they were.
    there = Workshop(moved, workshop.home)
    assert there.harness("status").stdout.endswith("next: harness check\n")

    moved.rename(workshop.top)
    said = workshop.ends(0)

    workshop.all_is_well()


def test_a_task_that_failed_for_good_and_a_used_up_budget_are_told(workshop: Workshop, news: Path) -> None:
    """An attempt that failed and is made again is not. A command that fails is a warning."""
    for most in ("1", "2"):
        workshop.add("Never", "false", "--max-attempts", most, do="write f x")
    workshop.file_task("one")
    option, command = notify(news)
    said = workshop.ends(9, option, f"{command}; echo no such bell; exit 3", "--max-tasks", "3")
    assert "The command of --notify failed" in said.stdout
    assert "no such bell" in workshop.read(".harness/logs/notify.log")
    assert kinds(workshop, news, 3) == ["failed", "limit", "stopped"]
    assert "task-001 failed for good" in news.read_text()
    assert "attempts: 3 of 3" in news.read_text()


@pytest.mark.release
def test_a_usage_limit_is_told_once_for_all_and_who_stopped_it(workshop: Workshop, news: Path) -> None:
    for name in ("one", "two"):
        workshop.file_task(name)
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    agent = f"echo '{json.dumps({'limit_resets_at': str(later)})}'"
    run = workshop.start(*notify(news), "-j", "2", agent=agent)
    workshop.wait_for("both wait", lambda: workshop.printed.count("usage limit, goes on at") == 2)
    assert kinds(workshop, news, 1) == ["limit"]
    for _ in range(2):
        run.send_signal(signal.SIGINT)
        workshop.wait_for("it says so", lambda: "starting nothing new" in workshop.printed)
    assert run.wait() == 9
    assert kinds(workshop, news, 2) == ["limit", "stopped"]


def test_a_run_that_never_began_is_told_to_who_typed_it_only(workshop: Workshop, news: Path) -> None:
    workshop.file_task("one")
    assert workshop.run(*notify(news), "--agent", "claude", PATH="/nowhere").returncode != 0
    assert not news.exists()


def test_a_command_that_hangs_holds_up_nothing(workshop: Workshop, tmp_path: Path) -> None:
    go = tmp_path / "go"
    workshop.file_task("one")
    waits = f"while [ ! -e {go} ]; do sleep 0.05; done"
    workshop.ends(0, "--notify", f"{waits}; echo $HARNESS_EVENT: $HARNESS_MESSAGE > {go}.heard")
    go.touch()
    heard = tmp_path / "go.heard"
    workshop.wait_for("it goes on by itself", lambda: heard.exists() and heard.stat().st_size > 0)
    event, _, message = heard.read_text().partition(": ")
    assert (event, "Every task is completed." in message) == ("done", True)

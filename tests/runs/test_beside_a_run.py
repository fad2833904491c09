"""What the user in a second terminal sees and changes while a run goes on."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path

import pytest
from rich.console import Console

from harness_lib.core.context import Context
from harness_lib.rules import run_state
from harness_lib.rules.run_state import Budget, Row, RunState, Spent
from harness_lib.rules.stats import Ahead, Counts
from harness_lib.runs import overview, run_files
from harness_lib.runs.run_files import Seen
from harness_lib.system.processes import process
from harness_lib.terminal import drawing
from harness_lib.text import span
from harness_lib.verbs import budget, status
from tests.runs.conftest import Make
from tests.runs.workshop import COMMAND, Workshop, descendants
from tests.state.clock import Sleeper
from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project


@pytest.fixture
def go(workshop: Workshop, tmp_path: Path) -> Path:
    """Start a run whose agent has spent something and waits; return the file that lets it end."""
    go = tmp_path / "go"
    used = '{"tokens": 1200, "cost_usd": 0.5, "action": "think"}'
    workshop.add("Slow", "grep -q done f", do=f"say {used}\nsay nearly there\nwait {go}\nwrite f done")
    workshop.file_task("next")
    run = workshop.start("--max-cost", "7")

    def has_spent() -> bool:
        assert run.poll() is None, workshop.printed
        return "0.50 of" in workshop("budget").text

    workshop.wait_for("it has spent", has_spent)
    return go


def end(workshop: Workshop, go: Path) -> int:
    go.touch()
    return workshop.runs[0].wait()


def test_a_second_terminal_sees_what_goes_on_and_changes_its_limits(workshop: Workshop, go: Path) -> None:
    pid = workshop.runs[0].pid
    said = workshop.ok("budget")
    (run,) = said["runs"]
    assert (said["limits"], run["pid"]) == ({"max_cost": 7.0}, pid)
    assert (run["spent"]["cost"], run["spent"]["tokens"]) == (0.5, 1200)
    assert "cost: $0.50 of $7.00" in said["message"]

    status = workshop("status").out
    (shown,) = [line for line in status.splitlines() if line.startswith("run: ")]
    assert "cost: $0.50 of $7.00, tokens: 1,200" in shown
    assert shown.endswith(f"; process {pid}")
    assert "[1] task-001 Slow: works, " in status
    assert "$0.50, 1,200 tokens | nearly there" in status
    assert status.rstrip().endswith("next: harness status --watch")
    (run,) = workshop.ok("status")["runs"]
    (worker,) = run["workers"]
    assert (run["pid"], worker["task"], worker["step"]) == (pid, "task-001", "works")

    _limits_that_nobody_can_read(workshop, pid)
    workshop.ok("note", "task-001", "Mind the gap.")
    for verb in ("remove", "retry"):
        # To release it is for its worker only.
        assert "when its attempt has ended. If no run" in workshop(verb, "task-001").text
    assert workshop("budget", "--max-cost", "9", HARNESS_SUPERVISED="task-001").code == 2
    assert f"The run of process {pid} goes on; to end it: Ctrl-C" in workshop("pause").out
    # Zero lifts a limit, and one that is raised before the end lets the run go on.
    assert workshop.ok("budget", "--max-cost", "0")["limits"] == {}
    workshop.ok("budget", "--max-cost", "0.4")
    workshop.wait_for("the limit is met", lambda: "finishing what runs" in workshop.printed)
    workshop.ok("budget", "--max-cost", "5")
    # An agent, or a `git clean` of its, takes `.harness/`: what the user typed holds, and the record goes on.
    shutil.rmtree(workshop.top / ".harness")
    workshop.wait_for("it shows itself again", lambda: workshop("budget").code == 0)
    assert workshop.ok("budget")["limits"] == {"max_cost": 5.0}

    assert end(workshop, go) == 0, workshop.printed
    assert workshop.statuses() == {"task-001": "completed", "task-002": "completed"}
    noted = workshop.task("task-001")
    assert (noted["notes"], noted["attempts"]) == (["Mind the gap."], 0)
    assert "the worker has died" not in workshop.printed
    assert workshop.ok("status")["runs"] == []
    (ran,) = run_files.records(workshop.context())
    assert (ran.opened.agent, ran.closed is not None) == (COMMAND, True)
    assert [each.task for each in ran.tried if each.commit] == ["task-001", "task-002"]


def _limits_that_nobody_can_read(workshop: Workshop, pid: int) -> None:
    """Ask for limits in torn files: each is said, and nothing is changed."""
    asked = workshop.top / f".harness/budget-{pid}.json"
    for torn in ('{"max_cost": 0', '{"max_cost": -1}', "[]"):
        asked.write_text(torn)
        workshop.wait_for("it is taken", lambda: not asked.exists())
    assert workshop.ok("budget")["limits"] == {"max_cost": 7.0}
    kept = "limits of this run stay as they are"
    workshop.wait_for("it is said", lambda: workshop.printed.count(kept) == 3)


def test_limits_that_are_set_meanwhile_end_the_attempt_and_the_run(workshop: Workshop, go: Path) -> None:
    limits = workshop.ok("budget", "--task-tokens", "1000", "--max-tasks", "1")["limits"]

    assert limits == {"max_cost": 7.0, "task_tokens": 1000, "max_tasks": 1}
    assert workshop.runs[0].wait() == 9
    assert "tokens: 1,200 of 1,000" in workshop.task("task-001")["error_log"][0]
    assert workshop.statuses() == {"task-001": "failed", "task-002": "pending"}
    assert "attempts: 1 of 1" in workshop.printed
    assert "\nnext: harness run" in workshop.printed
    assert not go.exists()


def test_a_check_that_is_edited_while_it_runs_does_not_decide(workshop: Workshop, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    wrong = f"touch {begun}; until [ -e {go} ]; do sleep 0.05; done; test -f other"
    workshop.add("One", wrong, do="write right done")
    run = workshop.start("--no-precheck")
    workshop.wait_for("its check runs", begun.exists)

    said = workshop.ok("edit", "task-001", "--validate", "test -f right")["message"]
    go.touch()

    assert "the new check decides on its attempt in progress" in said
    assert run.wait() == 0, workshop.printed
    assert (workshop.task("task-001")["status"], workshop.task("task-001")["attempts"]) == ("completed", 0)


def test_a_check_that_is_edited_again_and_again_halts_its_task(workshop: Workshop, tmp_path: Path) -> None:
    """Otherwise a program that edits it, itself for one, would keep the run busy for ever."""
    check, ran = tmp_path / "check", tmp_path / "ran"
    known = [f"{name}={os.environ[name]}" for name in ("HOME", "PATH", "PYTHONPATH", "GIT_CONFIG_GLOBAL")]
    edit = shlex.join(["env", "-i", *known, sys.executable, "-m", "harness_lib", "edit", "task-001"])
    edited = f'cd {workshop.top} && {edit} --validate "sh {check} $$"'
    put(check, f"echo ran >> {ran}\n[ $(wc -l < {ran}) -gt 20 ] || ({edited})\n")
    workshop.add("One", f"sh {check}", do="write right done")

    said = workshop.ends(9, "--no-precheck")

    assert "The check of task-001 was edited while it ran." in workshop.task("task-001")["halt"]
    assert "harness retry task-001" in said.stdout
    assert ran.read_text() == "ran\n" * 4


def test_what_is_no_amount_is_refused_before_anything_begins(workshop: Workshop) -> None:
    workshop.file_task("one")
    for amount in ("-1", "nan", "inf"):
        workshop.ends(2, f"--max-cost={amount}")
    assert workshop.state["session_count"] == 0


def test_a_run_that_was_killed_is_not_shown_and_can_be_ended(workshop: Workshop, go: Path) -> None:
    run = workshop.runs[0]
    below = descendants(run.pid)
    run.kill()
    run.wait()

    error = workshop("budget", "--json").json["error"]
    assert (error["kind"], "harness run" in error["hint"]) == ("USAGE", True)
    assert "run: " not in workshop("status").out
    later = workshop.ok("status")
    assert later["next"] == "harness run"
    (session,) = later["sessions"]
    assert session.endswith("its run was killed; this goes on with its work: harness run")
    go.touch()
    workshop.wait_for("its workers are gone", lambda: not any(map(process.find, below)))
    assert workshop.ok("status")["next"] == "harness run"
    workshop.ok("stop", "--session", "1")
    assert workshop.state["sessions"] == []


@pytest.mark.release
def test_runs_of_one_list_share_limits_and_count_for_themselves(make_workshop: Make, tmp_path: Path) -> None:
    workshop = make_workshop(mode="concurrent")
    go = tmp_path / "go"
    for number in range(2):
        workshop.add(f"Slow {number}", f"grep -q done f{number}", do=f"wait {go}\nwrite f{number} done")

    def shown() -> int:
        return len(workshop.ok("status")["runs"])

    workshop.start("--max-cost", "7")
    workshop.wait_for("the first run", lambda: shown() == 1)
    workshop.start("--max-tasks", "5")
    workshop.wait_for("the second run", lambda: shown() == 2)
    said = workshop.ok("budget")
    limits: list[dict[str, float]] = [{"max_cost": 7.0}, {"max_tasks": 5}]
    assert {run["pid"]: run["limits"] for run in said["runs"]} == dict(
        zip([run.pid for run in workshop.runs], limits, strict=True)
    )
    workshop.ok("budget", "--task-cost", "3")
    now = [run["limits"] for run in workshop.ok("budget")["runs"]]
    assert now == [{**each, "task_cost": 3.0} for each in limits]
    go.touch()
    assert [run.wait() for run in workshop.runs] == [0, 0], workshop.printed


# -- a run in words: what each worker does, what was spent, and how long it takes at least


AHEAD = Ahead(4, 1)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0:00"),
        (0, "0:00"),
        (59.6, "1:00"),
        (61, "1:01"),
        (3599, "59:59"),
        (3600, "1:00:00"),
        (90061, "25:01:01"),
    ],
)
def test_a_length_of_time(seconds: float, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize("number", [0, 1])
def test_runs_are_listed_from_the_oldest_whatever_their_process_numbers(tmp_path: Path, number: int) -> None:
    (tmp_path / "harness-tasks.json").write_text("{}")
    ctx = Context(env={"HARNESS_STATE_ROOT": str(tmp_path)}, cwd=tmp_path)
    pids = [os.getpid(), os.getppid()]
    oldest = pids[number]
    for pid in pids:
        found = process.find(pid)
        assert found
        board = run_state.write(RunState(began=1.0 if pid == oldest else 2.0))
        document = {"pid": pid, "started": found.started, "boot": process.boot_id(), "at": 0, "board": board}
        put(run_files.file_of(ctx.root, "board", pid), json.dumps(document))
    assert run_files.running(ctx)[0].pid == oldest
    assert {seen.pid for seen in run_files.running(ctx)} == set(pids)


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (Row(1, "t1", "One", 1, "works", since=40.0), "  [1] t1 One: works, 1:00"),
        (
            Row(2, "t1", "One", 2, "checks", since=99.0, cost=0.5, tokens=1200, last="a\nb\x1b[31m"),
            "  [2] t1 One (attempt 2): checks, 0:01, $0.50, 1,200 tokens | a b\ufffd[31m",
        ),
        (
            Row(1, "t1", "One", 1, "limit", since=0.0, until=3700.0),
            "  [1] t1 One: usage limit, 1:00:00 left, 1:40",
        ),
        (Row(1, step="waits", since=95.0, idle="waiting"), "  [1] waits for what others do, 0:05"),
        (Row(1, step="waits", since=95.0, idle="CONFIG: no\ncheck"), "  [1] waits CONFIG: no check, 0:05"),
    ],
)
def test_a_worker_is_one_line(row: Row, line: str) -> None:
    seen = Seen(7, RunState(rows={row.worker: row}))
    assert list(overview.run_lines(seen, AHEAD, 100.0))[1:] == [line]


def test_the_first_line_has_what_was_spent_of_which_limit_and_an_estimate() -> None:
    state = RunState(0.0, {1: Row(1), 2: Row(2)}, Spent(1.5, 12000, 0.0, 5), (60.0,), Budget(max_cost=5.0))
    (first, *_) = overview.run_lines(Seen(7, state), AHEAD, 1800.0)
    assert first == (
        "run: at least 2:00 more; cost: $1.50 of $5.00, tokens: 12,000, hours: 0.50, attempts: 5; process 7"
    )


def test_many_workers_are_bounded() -> None:
    state = RunState(rows={number: Row(number) for number in range(64)})
    lines = list(overview.run_lines(Seen(7, state), AHEAD, 0.0))
    assert len(lines) == 12
    assert lines[-1] == "  … and 54 more workers"


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_the_estimate_is_never_cut(columns: int) -> None:
    """Neither in the table of a run nor in a list that is watched, however narrow the terminal is."""
    spent = Spent(1234.5, 12_000_000, 0.0, 500)
    state = RunState(0.0, {1: Row(1), 2: Row(2)}, spent, (36_000.0,), Budget(max_cost=5000.0, max_hours=99.0))
    view = overview.View(
        *(Counts(5, 1, 0, 4, 0, 0, 0, 0, 0, 0), (), {}, ("act",), (), "hooks: on", (), (), None, False, ()),
        *("sessions: 1", 1, None, ()),
        runs=(Seen(4_194_304, state),),
        ahead=AHEAD,
        up_next=("task-009 Next",),
    )
    out = io.StringIO()
    console = Console(file=out, width=columns, force_terminal=False)

    console.print(drawing.run(state, view.counts, AHEAD, 1800.0))
    console.print(drawing.watched(view, 1800.0))

    lines = out.getvalue().splitlines()
    assert sum("at least 20:00:00 more" in line for line in lines) == 2
    order = [
        next(n for n, line in enumerate(lines) if words in line)
        for words in ("act", "run: ", "then: task-009")
    ]
    assert order == sorted(order)


# -- `harness status --watch` in a pipe: a line when something has changed, and an end


class Story(Sleeper):
    """Each sleep is the moment at which the next thing happens."""

    def __init__(self, events: Iterable[Callable[[], object]]) -> None:
        self.events = iter(events)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        next(self.events, lambda: None)()


def test_a_request_that_another_one_overwrote_is_made_again(project: Project) -> None:
    def take() -> None:
        run_files.show(ctx, RunState(limits=run_state.read_budget(run_files.asked(ctx) or {})))

    ctx = Context(env={}, cwd=project.top, clock=Story((lambda: run_files.asked(ctx), take)))
    run_files.show(ctx, RunState())
    reply = budget.answer(ctx, Namespace(**{**dict.fromkeys(Budget._fields), "max_cost": 5.0}))
    assert (reply.extra["limits"], reply.warnings) == ({"max_cost": 5.0}, ())
    run_files.clear(ctx)


def lines_about(project: Project, *events: Callable[[], object]) -> list[str]:
    """Return what a pipe is told until nothing is left to do."""
    ctx = Context(env={}, cwd=project.top, clock=Story(events))
    return [line for line, _ in groupby(map(status.in_a_line, status.follow(ctx, 20)))]


def test_a_change_of_the_counts_is_one_line_and_it_ends_by_itself(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")

    def note() -> None:
        with (project.top / "harness-progress.txt").open("a") as log:
            log.write("[2025-07-01T10:00:00Z] [SESSION-1] WARN a word\n")

    said = lines_about(
        project,
        lambda: agent.ok("claim"),
        note,
        lambda: agent.ok("add", "Two", "--validate", "true"),
        lambda: agent.ok("finish"),
        agent.works,
    )
    assert [line.partition(": ")[2] for line in said] == [
        "0 of 1 completed, 1 pending",
        "0 of 1 completed, 1 in progress",
        "0 of 2 completed, 1 in progress, 1 pending",
        "1 of 2 completed, 1 pending",
        "2 of 2 completed",
    ]


def test_an_empty_list_is_finished_at_once(project: Project) -> None:
    assert lines_about(project) == ["no tasks yet"]


def test_a_list_that_the_user_is_editing_is_a_warning_and_not_the_end(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    project.without_proofs()
    good = project.file.read_text()
    said = lines_about(
        project,
        lambda: project.file.write_text(good.replace('"pending"', '"pnding"')),
        lambda: project.file.write_text(good.replace('"pending"', '"completed"')),
    )
    assert said[1].startswith("warning: harness-tasks.json: tasks[0].status")
    assert "100 %" in said[2]

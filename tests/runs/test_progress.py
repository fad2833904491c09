"""A run in words: what each worker does, what was spent, and how long it takes at least."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from harness_lib.core.context import Context
from harness_lib.rules import run_state
from harness_lib.rules.run_state import Budget, Row, RunState, Spent
from harness_lib.rules.stats import Ahead, Counts
from harness_lib.runs import overview, run_snapshot
from harness_lib.runs.run_snapshot import Seen
from harness_lib.system.processes import process
from harness_lib.terminal import drawing

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
    assert run_snapshot.span(seconds) == words


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
        run_snapshot.write_file(ctx.root, "board", pid, document)
    assert run_snapshot.runs(ctx)[0].pid == oldest
    assert {seen.pid for seen in run_snapshot.runs(ctx)} == set(pids)


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
    assert list(run_snapshot.lines(seen, AHEAD, 100.0))[1:] == [line]


def test_the_first_line_has_what_was_spent_of_which_limit_and_an_estimate() -> None:
    state = RunState(0.0, {1: Row(1), 2: Row(2)}, Spent(1.5, 12000, 0.0, 5), (60.0,), Budget(max_cost=5.0))
    (first, *_) = run_snapshot.lines(Seen(7, state), AHEAD, 1800.0)
    assert first == (
        "run: at least 2:00 more; cost: $1.50 of $5.00, tokens: 12,000, hours: 0.50, attempts: 5; process 7"
    )


def test_many_workers_are_bounded() -> None:
    state = RunState(rows={number: Row(number) for number in range(64)})
    lines = list(run_snapshot.lines(Seen(7, state), AHEAD, 0.0))
    assert len(lines) == 12
    assert lines[-1] == "  … and 54 more workers"


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_the_estimate_is_never_cut(columns: int) -> None:
    """Neither in the table of a run nor in a list that is watched, however narrow the terminal is."""
    spent = Spent(1234.5, 12_000_000, 0.0, 500)
    state = RunState(0.0, {1: Row(1), 2: Row(2)}, spent, (36_000.0,), Budget(max_cost=5000.0, max_hours=99.0))
    view = overview.View(
        *(Counts(5, 1, 0, 4, 0, 0, 0, 0, 0, 0), (), {}, ("act",), (), "hooks: on", (), (), None, False, ()),
        *("sessions: 1", 1, None, (), {}),
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

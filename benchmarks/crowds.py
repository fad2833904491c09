"""Thirty-two processes on one list, ours and, beside it, the original's protocol under the same load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measuring import Row
from tests.contention import crowd
from tests.contention.crowd import Crowd, Report

PROCESSES = 32


def ours(place: Path, tasks: int) -> Iterator[Row]:
    """Let our workers claim and complete `tasks` tasks."""
    on = crowd.make(place / "ours", workers=PROCESSES, tasks=tasks)
    reports = on.work([crowd.WORKER] * PROCESSES)
    errors = [error for report in reports for error in report.errors]
    wrong = _wrong(on, tasks)
    shares = [report.finished for report in reports]
    fair = tasks / PROCESSES
    what = f"{PROCESSES} processes, {tasks:,} tasks"
    yield Row(f"{what}: each claimed and completed exactly once", "all", f"{tasks - wrong:,}", wrong == 0)
    yield Row(f"{what}: time-outs and other errors", "0", str(len(errors)), not errors)
    yield Row(
        f"{what}: tasks of the slowest and of the fastest process",
        f"≥ half of a fair share ({fair:.0f})",
        f"{min(shares)} to {max(shares)}",
        min(shares) >= fair / 2,
    )


def the_original(place: Path, tasks: int) -> Iterator[Row]:
    """Let legacy agents to the letter do the same, with fewer tasks; for comparison.

    Most of them end at a torn list before long, and those who are left would take an hour for all.
    """
    on = crowd.make(place / "original", workers=PROCESSES, tasks=tasks)
    reports = on.work([on.legacy("--fail-fast")] * PROCESSES)
    asked, refused = _sum(reports, "claims"), _sum(reports, "claims_refused")
    torn = sum(bool(report.errors) for report in reports)
    what = f"{PROCESSES} processes by the legacy protocol, {tasks:,} tasks"
    yield Row(f"{what}: claims that the lock turned away", "", f"{refused / max(1, asked):.0%} of {asked:,}")
    yield Row(f"{what}: tasks not claimed and completed exactly once", "", f"{_wrong(on, tasks):,}")
    yield Row(f"{what}: agents that ended at a torn list", "", f"{torn} of {PROCESSES}")


def _wrong(on: Crowd, tasks: int) -> int:
    """Return how many tasks were not claimed once and completed once, as the log has it."""
    lines = on.lines()
    names = [crowd.task_id(number) for number in range(1, tasks + 1)]
    return sum((lines["Starting", name], lines["Completed", name]) != (1, 1) for name in names)


def _sum(reports: Sequence[Report], field: str) -> int:
    return sum(getattr(report, field) for report in reports)

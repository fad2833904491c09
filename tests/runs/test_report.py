"""How a run ends: with what a person needs to know, in at most twenty lines, and once in the log."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime, timedelta
from pathlib import Path

from harness_lib import timestamps
from harness_lib.core.context import Context
from harness_lib.rules.budget import Spent
from harness_lib.runs import report
from harness_lib.system.clock import Clock
from tests.conftest import CHECKOUT
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

SAY = "say " + json.dumps({"cost_usd": 0.5, "tokens": 1200})


def ending(printed: str) -> list[str]:
    """Return what is said after the last event of the run."""
    lines = printed.splitlines()
    timed = [at for at, line in enumerate(lines) if line[:2] == "20" and line[19:20] == "Z"]
    return lines[timed[-1] + 1 :]


def test_it_ends_with_what_is_done_what_failed_what_is_halted_and_what_it_cost(
    workshop: Workshop, tmp_path: Path
) -> None:
    workshop.add("Dear", "grep -q done f", do=f"{SAY}\nwrite f done")
    workshop.add("Never", "echo no luck; false", "--max-attempts", "1", do="write g x")
    workshop.ok("add", "No check")
    news = tmp_path / "news"
    base = str(workshop.git.head())

    said = workshop.run("--notify", f'echo "$HARNESS_MESSAGE" > {news}')

    assert said.returncode == 9, said.stdout + said.stderr
    report_lines = ending(said.stdout)
    assert len(report_lines) <= 21
    text = "\n".join(report_lines)
    assert "3 tasks: 1 completed (1 in this run), 1 failed for good, 1 pending" in report_lines
    assert (
        "failed: task-002 Never: [TEST_FAIL] The check failed with exit code 1. no luck; "
        "its work: harness rescue show task-002/1"
    ) in report_lines
    assert "halted: task-003 No check: CONFIG: Missing validation.command" in text
    assert "harness edit task-003 --validate 'COMMAND'" in text
    assert "task-003 attempt" not in said.stdout
    assert "dearest: task-001 ($0.50, 1,200 tokens, " in text
    assert "spent: $0.50, 1,200 tokens, " in text
    assert f"the work is on main: git log --oneline {base[:12]}..main" in report_lines
    workshop.wait_for("the news", lambda: news.exists() and "the work is on main" in news.read_text())
    assert news.read_text().splitlines() == report_lines[:-1]
    assert len([line for line in workshop.harness("log").stdout.splitlines() if " STATS " in line]) == 1
    assert "1: completed, from 20" in workshop.harness("show", "task-001").stdout
    assert ", $0.50, 1,200 tokens" in workshop.harness("show", "task-001").stdout


def test_what_was_over_in_the_second_in_which_a_run_begins_is_not_of_it(workshop: Workshop) -> None:
    workshop.add("One", "grep -q done f", do=f"{SAY}\nwrite f done")
    assert "1 tasks: 1 completed (1 in this run)" in workshop.run().stdout
    ended = timestamps.parse(workshop.task("task-001")["attempt_log"][-1]["ended_at"])

    class Then(Clock):
        def now(self) -> datetime:
            return ended + timedelta(milliseconds=900)

    ctx = Context(env=workshop.env, cwd=workshop.top, clock=Then(), target="refs/heads/main")
    report_lines = report.lines(ctx, report.beginning(ctx), [], Spent())
    assert report_lines == ["1 tasks: 1 completed"]
    earlier = report.Beginning(ended, None, frozenset())
    assert "1 tasks: 1 completed (1 in this run)" in report.lines(ctx, earlier, [], Spent())


def test_what_agents_have_proposed_stands_in_it_and_nothing_of_it_has_run(
    workshop: Workshop, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    propose = f"PYTHONPATH={CHECKOUT} {sys.executable} -m harness_lib add More --validate 'touch {ran}'"
    workshop.add("One", "grep -q done f", do=f"sh {propose}\nwrite f done")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    sentence = "1 proposed by agents, nothing of it runs yet: 1. More (harness add --proposed)"
    assert sentence in ending(said.stdout)
    assert workshop.statuses() == {"task-001": "completed"}
    assert not ran.exists()


def test_many_failures_are_bounded(workshop: Workshop) -> None:
    workshop.fill(
        [{"title": "Never " * 30, "validation": {"command": "false"}, "max_attempts": 1} for _ in range(25)]
    )

    said = workshop.run("-j", "2", agent="true")

    report_lines = ending(said.stdout)
    assert "failed: 19 more, see: harness status" in report_lines
    assert len(report_lines) <= 21
    assert max(map(len, report_lines)) <= 400


def test_what_to_type_is_never_cut_off_at_its_end(workshop: Workshop) -> None:
    workshop.add("Large", "test -f big", do="sh truncate -s 3M big")
    long = [f"{letter * 180}/{letter * 180}" for letter in "abc"]
    for name in long:
        workshop.add(name[:9], f"grep -q done {name}", do=f"sh mkdir -p {name[:180]}\nwrite {name} done")
        put(workshop.top / name, "a person's own\n")

    report_lines = ending(workshop.run("--max-file", "2", "-j", "2", "--no-final-check").stdout)

    (halted,) = [line for line in report_lines if line.startswith("halted: task-001 Large")]
    assert halted.endswith("; all of it: harness why task-001"), halted
    (waits,) = [line for line in report_lines if line.startswith("Finished work waits")]
    assert waits.endswith(". Take it over with: git merge harness/main"), waits


def test_a_run_that_cannot_go_on_reports_too(workshop: Workshop) -> None:
    workshop.file_task("one")

    said = workshop.run(agent="exit 1")

    assert said.returncode == 7
    assert "A person must act first. the agent cannot start" in said.stderr
    assert "1 tasks: 0 completed, 1 pending" in said.stderr
    assert json.loads(workshop.run("--json", agent="exit 1").stdout.splitlines()[-1])["tasks"] == []


def test_what_to_look_at_in_completed_work_is_said_at_the_end_by_status_and_by_show(
    workshop: Workshop,
) -> None:
    put(workshop.top / "check.sh", "grep -q done f\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "A check")
    changed = workshop.add("Cheat", "sh check.sh", do="sh echo true > check.sh")
    workshop.add("Fail", "false", "--max-attempts", "1", do="write g x")
    for _ in range(4):
        workshop.add("Nothing", "true", do="say nothing to do")

    reply = json.loads(workshop.run("--json").stdout.splitlines()[-1])

    commit = workshop.task(changed)["completed_commit"]
    sentence = f"{changed} changed what judges it: check.sh (git show {commit[:12]})"
    said = reply["message"].splitlines()
    looks = [line for line in said if line.startswith("look at: ")]
    assert looks[0] == f"look at: {sentence}"
    assert looks[1].startswith("look at: Nothing was committed for task-003")
    assert looks[4:] == ["look at: 1 more, see: harness status --all"]
    first, failed, third, *_ = reply["tasks"]
    assert (first["outcome"], first["commit"], first["warnings"]) == ("completed", commit, [sentence])
    assert (failed["outcome"], failed["commit"], failed["warnings"]) == ("failed", None, [])
    assert third["warnings"] == workshop.task("task-003")["look_at"]
    assert {"cost_usd", "tokens", "seconds"} < set(first)
    assert "check.sh" in sh(workshop.top, *sentence.rpartition("(git ")[2].rstrip(")").split())
    shown = workshop.harness("status").stdout
    assert "look at: 2 more, see: harness status --all" in shown
    assert f"look at: {sentence}" not in shown
    assert f"look at: {sentence}" in workshop.harness("status", "--all").stdout
    assert f"look at: {sentence}" in workshop.harness("show", changed).stdout
    workshop.ok("retry", changed)
    assert sentence not in workshop.harness("status", "--all").stdout


def test_a_run_takes_old_logs_away_at_its_end_and_never_rescued_work(workshop: Workshop) -> None:
    workshop.add("Wrong", "false", "--max-attempts", "1", do="write g x")
    assert workshop.run().returncode == 9
    logs = workshop.top / ".harness/logs/task-001"
    old = sorted(logs.iterdir())
    for log in old:
        os.utime(log, (0, 0))
    workshop.file_task("f")

    said = workshop.run()

    assert f"{len(old)} logs of 0.0 MB were taken away: older than 30 days" in said.stdout, said.stdout
    assert not [log for log in old if log.exists()]
    assert list((workshop.top / ".harness/logs/task-002").iterdir())
    workshop.failures_are_kept()


COPILOT = """#!/bin/sh
echo done > f
while [ $# -gt 1 ]; do
  [ "$1" != --usage-output-file ] || echo '{
    "totalNanoAiu": 150000000000,
    "modelMetrics": {"m": {"usage": {"inputTokens": 1000, "outputTokens": 200}}}
  }' > "$2"
  shift
done
"""


def test_what_an_agent_leaves_in_a_file_about_its_cost_counts(workshop: Workshop, tmp_path: Path) -> None:
    workshop.file_task("f")
    copilot = tmp_path / "bin/copilot"
    copilot.parent.mkdir()
    copilot.write_text(COPILOT, encoding="utf-8")
    copilot.chmod(0o755)

    said = workshop.harness("run", "--agent", "copilot", PATH=f"{copilot.parent}:{os.environ['PATH']}")

    assert said.returncode == 0, said.stdout + said.stderr
    assert "$1.50, 1,200 tokens" in said.stdout

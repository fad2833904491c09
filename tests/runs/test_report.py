"""How a run ends: with what the user needs to know, in at most twenty lines, and once in the log."""

from __future__ import annotations

import json
import os
import shlex
import sys
from datetime import datetime, timedelta
from pathlib import Path

from harness_lib import timestamps
from harness_lib.core.context import Context
from harness_lib.rules.budget import Spent
from harness_lib.runs import report
from harness_lib.system.clock import SYSTEM, Clock
from tests.conftest import CHECKOUT
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh
from tests.verbs.project import Agent, Project, begin

SAY = "say " + json.dumps({"cost_usd": 0.5, "tokens": 1200})


def ending(printed: str) -> list[str]:
    """Return what is said after the last event of the run."""
    lines = printed.splitlines()
    timed = [at for at, line in enumerate(lines) if line[:2] == "20" and line[19:20] == "Z"]
    return lines[timed[-1] + 1 :]


def test_it_ends_with_what_is_done_failed_halted_and_spent(workshop: Workshop, tmp_path: Path) -> None:
    """And with what agents have proposed, of which nothing has run."""
    ran, news = tmp_path / "ran", tmp_path / "news"
    python = f"PYTHONPATH={shlex.quote(str(CHECKOUT))} {shlex.quote(sys.executable)}"
    propose = f"{python} -m harness_lib add More --validate 'touch {ran}'"
    workshop.add("Dear", "grep -q done f", do=f"{SAY}\nsh {propose}\nwrite f done")
    workshop.add("Never", "echo no luck; false", "--max-attempts", "1", do="write g x")
    workshop.ok("add", "No check")
    base = str(workshop.git.head())

    said = workshop.ends(9, "--notify", f'echo "$HARNESS_MESSAGE" > {news}')

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
    proposed = "1 proposed by agents, not added yet: 1. More (harness add --proposed)"
    assert proposed in report_lines
    assert not ran.exists()
    assert f"the work is on main: git log --oneline {base[:12]}..main" in report_lines
    workshop.wait_for("the news", lambda: news.exists() and "the work is on main" in news.read_text())
    assert news.read_text().splitlines() == report_lines[:-1]
    assert len([line for line in workshop("log").out.splitlines() if " STATS " in line]) == 1
    shown = workshop("show", "task-001").out
    assert "1: completed, from 20" in shown
    assert ", $0.50, 1,200 tokens" in shown


def reported(project: Project, began: report.Beginning | None = None, clock: Clock = SYSTEM) -> list[str]:
    """Return the report of a run that set out at `began`, by default now, and has spent nothing."""
    ctx = Context(env={}, cwd=project.top, clock=clock, target="refs/heads/main")
    return report.lines(ctx, began or report.beginning(ctx), [], Spent())


def test_what_was_over_when_the_run_began_is_not_of_it(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    agent.ok("finish")
    ended = timestamps.parse(project.task()["attempt_log"][-1]["ended_at"])

    class Then(Clock):
        def now(self) -> datetime:
            return ended + timedelta(milliseconds=900)

    assert "1 tasks: 1 completed" in reported(project, clock=Then())
    earlier = report.Beginning(ended, None, frozenset())
    assert "1 tasks: 1 completed (1 in this run)" in reported(project, earlier)


def test_many_failures_are_bounded(project: Project, agent: Agent) -> None:
    agent.ok("add", "Never " * 30, "--validate", "false")
    failed = {**project.task(), "status": "failed", "attempts": 3, "error_log": ["[TEST_FAIL] It " * 99]}
    project.edit(tasks=[{**failed, "id": f"task-{number:03d}"} for number in range(1, 26)])

    lines = reported(project)

    assert "failed: 19 more, see: harness status" in lines
    assert len(lines) <= 21
    assert max(map(len, lines)) <= 400


def test_what_to_type_is_never_cut_off_at_its_end(project: Project, agent: Agent) -> None:
    """A task is halted with many words, and work waits for files with long names."""
    agent.ok("add", "Large", "--validate", "true")
    project.edit_task(halt="CONFIG: " + "a large file " * 20, halt_kind="CONFIG")
    project.git("switch", "-q", "-c", "harness/main")
    long = [f"{letter * 180}/{letter * 180}" for letter in "abc"]
    for name in long:
        project.put(name)
    project.commit()
    project.git("switch", "-q", "main")
    for name in long:
        project.put(name, "the user's own\n")

    lines = reported(project)

    (halted,) = [line for line in lines if line.startswith("halted: task-001 Large")]
    assert halted.endswith("; then: harness retry task-001"), halted
    (waits,) = [line for line in lines if line.startswith("Finished work waits")]
    assert waits.endswith(". Take it over with: git merge harness/main"), waits


def test_what_to_look_at_in_completed_work_is_said_at_the_end_and_shown(workshop: Workshop) -> None:
    put(workshop.top / "check.sh", "grep -q done f\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "A check")
    changed = workshop.add("Cheat", "sh check.sh", do="write f done\nsh echo true > check.sh")
    workshop.add("Fail", "false", "--max-attempts", "1", do="write g x")
    for _ in range(4):
        workshop.add("Nothing", "true", do="say nothing to do")

    reply = json.loads(workshop.run("--json").stdout.splitlines()[-1])

    commit = workshop.task(changed)["completed_commit"]
    sentence = (
        f"{changed} changed a file that its check depends on: check.sh (1 line) (git show {commit[:12]})"
    )
    said = reply["message"].splitlines()
    looks = [line for line in said if line.startswith("look at: ")]
    assert looks[0] == f"look at: {sentence}"
    assert looks[1].startswith("look at: task-003 was done already")
    assert looks[4:] == ["look at: 1 more, see: harness status --all"]
    first, failed, third, *_ = reply["tasks"]
    assert (first["outcome"], first["commit"], first["warnings"]) == ("completed", commit, [sentence])
    assert (failed["outcome"], failed["commit"], failed["warnings"]) == ("failed", None, [])
    assert third["warnings"] == workshop.task("task-003")["look_at"]
    assert {"cost_usd", "tokens", "seconds"} < set(first)
    assert "check.sh" in sh(workshop.top, *sentence.rpartition("(git ")[2].rstrip(")").split())
    shown = workshop("status").out
    assert "look at: 2 more, see: harness status --all" in shown
    assert f"look at: {sentence}" not in shown
    assert f"look at: {sentence}" in workshop("status", "--all").out
    assert f"look at: {sentence}" in workshop("show", changed).out
    workshop.ok("retry", changed)
    assert sentence not in workshop("status", "--all").out


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

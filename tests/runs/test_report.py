"""How a run ends: with what the user needs to know, in at most 24 lines, and once in the log."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from harness_lib import timestamps
from harness_lib.core.context import Context
from harness_lib.runs import report
from harness_lib.system.clock import Clock
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


@pytest.mark.release
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
    assert len(report_lines) <= 25
    text = "\n".join(report_lines)
    assert report_lines[1].endswith("  $0.50   1,200 tokens")
    assert "3 tasks: 1 completed, 1 waiting for you, 1 failed for good" in text
    (failed,) = [line for line in report_lines if line.startswith("  task-002 Never")]
    assert "  failed 1 of 1 in 0:0" in failed
    assert ": no luck  " in failed
    assert failed.endswith("  harness rescue show task-002/1")
    (halted,) = [line for line in report_lines if line.startswith("  task-003 No check")]
    assert "  CONFIG: Missing validation.command" in halted
    assert halted.endswith("  harness edit task-003 --validate 'COMMAND'")
    assert "task-003 attempt" not in said.stdout
    (proposed,) = [line for line in report_lines if line.startswith("  1 proposed by agents: More  ")]
    assert proposed.endswith("  harness add --proposed")
    assert not ran.exists()
    span = f"{base[:12]}..{str(workshop.git.head())[:12]}"
    assert f"main: 1 commit, 1 file (+1 -0): git log --stat {span}" in report_lines
    workshop.wait_for("the news", lambda: news.exists() and "AGAIN: " in news.read_text())
    assert [line.split() for line in news.read_text().splitlines()] == [
        line.split() for line in report_lines[:-1]
    ]
    assert len([line for line in workshop("log").out.splitlines() if " STATS " in line]) == 1
    shown = workshop("show", "task-001").out
    assert "1: completed, from 20" in shown
    assert ", $0.50, 1,200 tokens" in shown


def test_what_was_over_when_the_run_began_is_not_of_it(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    agent.ok("finish")
    ended = timestamps.parse(project.task()["attempt_log"][-1]["ended_at"])

    class Then(Clock):
        def now(self) -> datetime:
            return ended + timedelta(milliseconds=900)

    ctx = Context(env={}, cwd=project.top, clock=Then(), target="refs/heads/main")
    assert report.tasks(ctx, report.beginning(ctx)) == []
    earlier = report.Beginning(ended, None, frozenset())
    assert [each["id"] for each in report.tasks(ctx, earlier)] == ["task-001"]


def test_many_failures_are_bounded(project: Project, agent: Agent) -> None:
    agent.ok("add", "Never " * 30, "--validate", "false")
    failed = {**project.task(), "status": "failed", "attempts": 3, "error_log": ["[TEST_FAIL] It " * 99]}
    project.edit(tasks=[{**failed, "id": f"task-{number:03d}"} for number in range(1, 26)])

    lines = agent("report").out.splitlines()

    assert re.search(r"^  … and \d+ more: harness report --all$", "\n".join(lines), re.MULTILINE)
    assert len(lines) == 24
    assert max(map(len, lines)) <= 120
    assert len(agent("report", "--all").out.splitlines()) > 28


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

    lines = agent("report").out.splitlines()

    (halted,) = [line for line in lines if line.startswith("  task-001 Large")]
    assert halted.endswith("  harness retry task-001"), halted
    assert "      git merge harness/main" in lines


@pytest.mark.release
def test_what_to_look_at_in_completed_work_is_said_at_the_end_and_shown(workshop: Workshop) -> None:
    put(workshop.top / "check.sh", "grep -q done f\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "A check")
    changed = workshop.add("Cheat", "sh check.sh", do="write f done\nsh echo true > check.sh")
    workshop.add("Fail", "false", "--max-attempts", "1", do="write g x")
    for _ in range(4):
        workshop.add("Nothing", "true", do="say nothing to do")

    reply = json.loads(workshop.run("--json", "--final-check", "all").stdout.splitlines()[-1])

    commit = workshop.task(changed)["completed_commit"]
    sentence = (
        f"{changed} changed a file that its check depends on: check.sh (1 line) (git show {commit[:12]})"
    )
    said = reply["message"].splitlines()
    look, _ = [line for line in said if line.startswith(f"  {changed} Cheat")]
    assert "  changed what checks it: check.sh (1 line)" in look
    assert look.endswith(f"  git show {commit[:12]}")
    assert sum("was done already" in line for line in said) == 4
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
    assert "$1.50   1,200 tokens" in said.stdout

"""How a run ends, and its report: what the user needs to know, on a screen, and once in the log."""

from __future__ import annotations

import json
import os
import re
import shlex
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from harness_lib import timestamps
from harness_lib.core.context import Context
from harness_lib.runs import ending as end_of_run
from harness_lib.runs import report_text
from harness_lib.system.clock import Clock
from tests.conftest import for_release
from tests.runs.workshop import HURRIED, KILL_WORKER, Workshop
from tests.system.git.gitrepo import commit_all, put, sh
from tests.verbs.project import Agent, Project, begin, lose

SAY = "say " + json.dumps({"cost_usd": 0.5, "tokens": 1200})


def test_a_list_that_was_started_over_has_none_of_the_old_ones_runs(workshop: Workshop) -> None:
    """Its tasks are called like those of the old one."""
    workshop.add("Old", "test -f f", do=f"{SAY}\nwrite f done")
    workshop.ends(0)
    workshop.ok("init", "--start-over")
    workshop.add("New", "test -f g", do="write g done")
    assert "no run has a record" in workshop.ok("report")["message"]

    workshop.ends(0)

    facts = workshop.ok("report")["report"]
    assert (len(facts["runs"]), facts["cost"], [each["tries"] for each in facts["done"]]) == (1, 0.0, [1])
    assert len(list((workshop.top / ".harness/logs").glob("runs-*/*/events.jsonl"))) == 1


def test_what_was_over_when_the_run_began_is_not_of_it(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    agent.ok("finish")
    ended = timestamps.parse(project.task()["attempt_log"][-1]["ended_at"])

    class Then(Clock):
        def now(self) -> datetime:
            return ended + timedelta(milliseconds=900)

    ctx = Context(env={}, cwd=project.top, clock=Then(), target="refs/heads/main")
    assert end_of_run.tasks(ctx, end_of_run.beginning(ctx)) == []
    earlier = end_of_run.Beginning(ended, None, frozenset())
    assert [each["id"] for each in end_of_run.tasks(ctx, earlier)] == ["task-001"]


def test_many_failures_are_bounded(project: Project, agent: Agent) -> None:
    agent.ok("add", "Never " * 30, "--validate", "false")
    failed = {**project.task(), "status": "failed", "attempts": 3, "error_log": ["[TEST_FAIL] It " * 99]}
    project.edit(tasks=[{**failed, "id": f"task-{number:03d}"} for number in range(1, 26)])

    lines = agent("report").out.splitlines()

    assert re.search(r"^  … and \d+ more: harness report --all$", "\n".join(lines), re.MULTILINE)
    assert len(lines) == 24
    assert max(map(len, lines)) <= 120
    assert len(agent("report", "--all").out.splitlines()) > 28


def test_how_long_the_tries_took_is_not_said_of_the_next_one(project: Project, agent: Agent) -> None:
    lose(agent)
    took = {"started_at": "2026-11-29T09:00:00Z", "ended_at": "2026-11-29T09:01:30Z"}
    project.edit_task(attempt_log=[{"number": 1, "outcome": "failed", **took}])
    assert "failed 1 of 3 in 1:30, and is tried again: " in agent("report", COLUMNS="200").out


def test_work_in_two_years_is_dated_with_them(project: Project, agent: Agent) -> None:
    lose(agent)
    ends = [{"started_at": f"{n}-06-15T12:00:00Z", "ended_at": f"{n}-06-15T12:01:00Z"} for n in (2024, 2025)]
    project.edit_task(attempt_log=[{"number": 1, "outcome": "failed", **each} for each in ends])

    first = agent("report").out.splitlines()[0]

    assert first.startswith("15 Jun 2024, ")
    assert " to 15 Jun 2025, " in first


def test_a_list_is_not_said_to_go_on_while_a_chat_has_it_nor_without_a_session_left(agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "test -f one")
    agent.ok("edit", "--max-sessions", "1")
    agent.ok("start")
    *_, last = agent.ok("report")["message"].splitlines()
    assert last.startswith("AGAIN: harness run is refused while session 1 is open")

    agent.ok("stop")

    *_, last = agent.ok("report")["message"].splitlines()
    assert last.startswith("AGAIN: harness run starts nothing (no session is left)")
    assert "harness edit --max-sessions N" in last


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

    (at,) = [number for number, line in enumerate(lines) if line.startswith("  task-001 Large")]
    assert lines[at + 1] == "      harness retry task-001"
    assert "      git merge harness/main" in lines


@pytest.mark.release
def test_what_to_look_at_in_completed_work_is_said_at_the_end_and_shown(workshop: Workshop) -> None:
    workshop.commits("A check", {"check.sh": "grep -q done f\n"})
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
    assert "check.sh" in workshop.sh(*sentence.rpartition("(git ")[2].rstrip(")").split())
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
    put(copilot, COPILOT, executable=True)

    said = workshop.harness("run", "--agent", "copilot", PATH=f"{copilot.parent}:{os.environ['PATH']}")

    assert said.returncode == 0, said.stdout + said.stderr
    assert "$1.50   1,200 tokens" in said.stdout


# -- a night in small, and its report: whoever reads its first screen knows all that there is to know


PAID = 'say {"cost_usd": 0.25, "tokens": 1000}'


def _list(workshop: Workshop, gate: Path, more: int) -> None:
    """Add every way to end: done, done already, red, failed, silent, a secret, its check changed, waiting.

    `more` tasks come to a good end, some after their agent or their worker was killed, or with a late check.
    """
    workshop.commits("A check", {"check.sh": "grep -q done parser\n"})
    add = workshop.add("add", "grep -q done add && ! grep -q broken add", do=f"{PAID}\nwrite add done")
    workshop.add("sub", "grep -q done sub", do=f"{PAID}\nonce wait {gate}\nwrite sub done")
    mul = workshop.add("mul", "echo assert 5 == 6; false", "--max-attempts", "2", do=f"{PAID}\nwrite mul x")
    workshop.add("hang", "false", "--max-attempts", "1", do="write half x\nsleep 600")
    workshop.add("secret", "grep -q done key", do="sh echo KEY=1 > .env\nwrite key done")
    workshop.add("parser", "sh check.sh", do="write parser done\nsh echo true > check.sh")
    workshop.add("breaks", "grep -q broken add", "--depends-on", add, do="write add broken")
    workshop.add("hello", "grep -q hello README.md", do="say nothing to do")
    workshop.add("after mul", "true", "--depends-on", mul, do="write after x")
    on_the_way = (
        "say at work",
        "once kill",
        f"once sh {KILL_WORKER}",
        "once sleep 600",
        "sh rm -rf .harness",
    )
    workshop.fill(
        [
            {"title": f"more {number}", "validation": {"command": f"grep -q done more-{number}"}}
            | {"description": f"do: {on_the_way[number % len(on_the_way)]} ;; write more-{number} done"}
            for number in range(more)
        ]
    )


def _night(workshop: Workshop, tmp_path: Path, more: int) -> tuple[str, str]:
    """Return what the second of two runs has printed, and where the branch stood before the first."""
    gate = tmp_path / "gate"
    _list(workshop, gate, more)
    before = str(workshop.git.head())[:12]
    workshop.start()
    records = workshop.top / ".harness/runs"

    def paid() -> bool:
        return any(path.read_text().count('"cost": 0.25') > 1 for path in records.glob("*/events.jsonl"))

    workshop.wait_for("a task that has cost something and waits", paid)
    workshop.cut_power()
    gate.touch()
    return workshop.ends(9, "-j", "4", "--final-check", "all", "--silence", "0.5", **HURRIED).stdout, before


def row(lines: list[str], task: str) -> str:
    return next(line for line in lines if line.startswith(f"  {task} "))


@pytest.mark.parametrize("more", [0, *for_release(31)])
def test_the_first_screen_answers_the_ten_questions(workshop: Workshop, tmp_path: Path, more: int) -> None:
    """Nine tasks, or forty, over two runs, one of which was killed."""
    printed, before = _night(workshop, tmp_path, more)

    text = workshop("report").out
    lines = text.splitlines()
    tip = str(workshop.git.head())

    assert len(lines) <= report_text.MOST_LINES
    # It is what the end of the run has printed, too.
    said = {line for line in lines if "harness " in line and ": harness report --all" not in line}
    assert said <= set(printed.splitlines())
    # What is really done, and what the night has cost, over both runs.
    assert re.search(
        r"\(2 runs; one was killed at \d\d:\d\d and resumed\) +\$\d\.\d\d   [\d,]+ tokens$", lines[0]
    )
    spent = workshop.ok("report")["report"]
    assert spent["cost"] >= 4 * 0.25
    assert " ".join(lines[1:3]).startswith(
        f"{9 + more} tasks: {5 + more} completed (1 done already, 3 to look at), "
        "1 waiting for you, 2 failed for good, 1 blocked."
    )
    # What was merged, and where.
    merged = f"main: {4 + more} commits, {4 + more} files (+{5 + more} -1)"
    assert f"{merged}: git log --stat {before}..{tip[:12]}" in lines
    # What failed, and why.
    assert re.search(r"failed 2 of 2 in \d+:\d\d, \$0\.50: assert 5 == 6", row(lines, "task-003"))
    assert "printed nothing for" in row(lines, "task-004")
    # What waits for a decision, with the commands.
    assert "named like a secret" in row(lines, "task-005")
    assert "harness rescue show task-005/1-work" in text
    assert "harness accept task-005 --path .env   or: harness return task-005" in text
    assert "waiting for these: task-009" in text
    # Was anything lost, and where is it kept?
    assert re.search(r"Nothing was lost \(\d+ rescued: harness rescue list\)\.", text)
    # Which differences are to be looked at: the command that is shown shows it.
    red = row(lines, "task-001")
    assert "red since task-007 changed add" in red
    shown = red[red.index("git show ") :].split()
    assert "+broken" in workshop.sh(*shown[1:])
    # Did an attempt change what judges it?
    assert "changed what checks it: check.sh (1 line)" in row(lines, "task-006")
    assert "attempts changed what checks them: task-006 check.sh" in text
    # How long did each take?
    assert re.match(r"  task-002 sub +\d:\d\d +\$0\.\d\d +\d +1$", row(lines, "task-002"))
    # What happens if I run again?
    assert lines[-1].startswith("AGAIN: harness run ")
    assert "harness retry task-001 task-003 task-004" in lines[-1]

    _in_other_forms(workshop)


def _in_other_forms(workshop: Workshop) -> None:
    everything = workshop("report", "--all").out
    assert "task-008 hello" in everything
    assert max(map(len, everything.splitlines())) < 2 * report_text.WIDTH
    trust = workshop.top / ".git/harness/trust.json"
    trusted = trust.read_bytes()
    trust.unlink()
    last = workshop("report").out.splitlines()[-1]
    assert last.endswith("is refused until you have read the commands; harness trust")
    trust.write_bytes(trusted)
    markdown = workshop("report", "--format", "markdown").out
    assert "| task-003 mul | failed 2 of 2: assert 5 &#61;&#61; 6" in markdown or "assert 5 == 6" in markdown
    assert "<code>harness rescue show task-003/2</code>" in markdown
    facts = workshop.ok("report", "--since", "1h")["report"]
    assert {each["task"] for each in facts["decisions"]} >= {f"task-{n:03d}" for n in (1, 3, 4, 5, 6)}
    assert [bool(ran["closed"]) for ran in facts["runs"]] == [False, True]
    assert json.loads(json.dumps(facts)) == facts


def test_without_records_the_list_says_what_it_knows(workshop: Workshop) -> None:
    workshop.add("One", "grep -q done f", do=f"{PAID}\nwrite f done")
    workshop.ends(0)
    workshop.sh("clean", "-fdxq", ".harness/runs")

    lines = workshop("report").out.splitlines()

    assert "(no run has a record)" in lines[0]
    assert lines[0].endswith("$0.25   1,000 tokens")
    assert re.match(r"  task-001 One +\d:\d\d +\$0\.25 +1", row(lines, "task-001"))


def test_an_attempt_that_a_power_cut_has_ended_counts_once(workshop: Workshop, tmp_path: Path) -> None:
    """Whoever recovers it holds it anew for a moment."""
    workshop.add("One", "grep -q done f", do=f"once sh touch {tmp_path}/works; sleep 600 ;; write f done")
    workshop.start(until=tmp_path / "works")
    workshop.cut_power()
    workshop.ends(0)

    done = workshop.ok("report")["report"]["done"]
    assert [each["tries"] for each in done] == [2]


@pytest.mark.release
def test_the_end_of_a_run_and_the_report_are_as_wide_as_the_terminal(workshop: Workshop) -> None:
    workshop.add("x" * 60, f"echo {'why ' * 60}; false", "--max-attempts", "1", do="write f x")
    said = workshop.ends(9, COLUMNS="84").stdout.splitlines()
    failed = row(said, "task-001")
    assert (len(failed) <= 84, max(map(len, said[said.index("LOOK AT") :])) <= 84) == (True, True)
    wide = row(workshop.harness("report", COLUMNS="150").stdout.splitlines(), "task-001")
    assert len(failed) < len(wide) <= 150


@pytest.mark.release
def test_a_list_that_was_complete_begins_anew(workshop: Workshop) -> None:
    workshop.file_task("f")
    workshop.ends(0)
    workshop.file_task("g")
    workshop.ends(0)

    said = workshop("report").out
    assert "(1 run)" in said
    assert "Make f" not in said
    assert "Make g" in said
    assert "(2 runs)" in workshop("report", "--since", "2000-01-01").out


def test_work_in_other_commits_after_a_rebase_or_a_squash_is_not_missing(workshop: Workshop) -> None:
    """One task changes the line of another; work that was reset away is missing."""
    before = workshop.git.head()
    workshop.add("One", "grep -q . f", do="write f one")
    workshop.add("Two", "grep -q two f", "--depends-on", "task-001", do="write f two")
    workshop.file_task("g")
    workshop.ends(0)
    for commits in (3, 1):
        workshop.sh("rebase", "--quiet", "--force-rebase", f"HEAD~{commits}")
        assert "Nothing was lost" in workshop("report").out
    workshop.sh("reset", "--quiet", "--soft", str(before))
    workshop.commits("All of it")
    assert "Nothing was lost" in workshop("report").out
    workshop.sh("reset", "--quiet", "--hard", str(before))
    missing = re.findall(r"(task-\d+) .*its commit is not on main", workshop("report").out)
    assert missing == ["task-001", "task-002", "task-003"]


def test_a_run_on_a_branch_without_the_work_says_so_and_where_it_is(workshop: Workshop) -> None:
    workshop.sh("branch", "other")
    workshop.file_task("f")
    workshop.file_task("g")
    workshop.ends(0)
    workshop.sh("switch", "--quiet", "other")

    said = workshop.run("--final-check", "all").stdout

    line = r"finished elsewhere: task-001, task-002: the check fails at \w+, which does not have the work"
    assert re.search(rf"Every task is completed. {line} ", " ".join(said.split()))
    assert "The commits of 2 tasks are not on the branch" in said
    assert "its commit is not on other, but on main" in said
    assert re.search(rf"^{line}: harness report$", workshop("status").out, re.MULTILINE)
    workshop.sh("merge", "--quiet", "main")
    # What failed without the work says nothing of what is here now.
    now = workshop("status").out
    assert not re.search(line, now)
    assert "not re-checked: 2 completed tasks." in now
    report = workshop("report").out
    assert "Nothing was lost" in report
    assert "not re-checked: 2 completed tasks" in report
    workshop.ok("validate", "--all", "--committed")
    assert "not re-checked" not in workshop("status").out


def test_work_that_is_on_no_branch_any_more_can_be_had_back_as_the_report_says(workshop: Workshop) -> None:
    before = workshop.git.head()
    workshop.file_task("f")
    workshop.ends(0, "--final-check", "all")
    line = (
        r"^checked at \w+, which HEAD does not have. Check what is here: harness validate --all --committed$"
    )
    assert not re.search(line, workshop("status").out, re.MULTILINE)
    workshop.sh("reset", "--quiet", "--hard", str(before))

    assert re.search(line, workshop("status").out, re.MULTILINE)
    (missing,) = workshop.ok("report")["report"]["decisions"]

    assert missing["what"] == "its commit is not on main, nor on another branch"
    for name in ("kept", "saved"):
        workshop.sh("branch", name, workshop.task("task-001")["completed_commit"])
    (found,) = workshop.ok("report")["report"]["decisions"]
    assert found["what"] == "its commit is not on main, but on kept"
    workshop.sh(*shlex.split(missing["commands"][0])[1:])
    assert "Nothing was lost" in workshop("report").out


def test_a_run_whose_work_was_reset_away_behind_it_is_not_done(workshop: Workshop) -> None:
    """Nor is the next one, until the work is on a branch again."""
    away = f"git -C {workshop.top} reset -q --hard {workshop.git.head()}"
    workshop.file_task("f")
    workshop.add("Two", "test -f g", "--depends-on", "task-001", do=f"write g done\nsh {away}")

    said = workshop.ends(9).stdout

    assert "The work of task-001 is on no branch any more." in " ".join(said.split())
    assert workshop.ok("report")["report"]["gone"] == ["task-001"]
    assert json.loads(workshop.ends(9, "--json").stdout)["stop"] == {"reason": "waiting"}
    commit = workshop.task("task-001")["completed_commit"]
    workshop.sh("branch", "kept", commit)
    workshop.ends(0)


def test_a_run_whose_work_was_squashed_and_edited_is_done_if_its_check_passes(workshop: Workshop) -> None:
    """As where a review of its branch changes it: no commit has the work as it was."""
    base = workshop.git.head()
    workshop.file_task("f")
    workshop.file_task("g")
    workshop.run("--max-tasks", "1")
    workshop.sh("reset", "-q", "--hard", str(base))
    workshop.commits("Squashed, and edited", {"f": "done, with an edit\n"})

    workshop.ends(0, "--final-check", "all")

    assert workshop.ok("report")["report"]["gone"] == []


def test_a_run_that_an_error_has_ended_was_not_stopped_by_the_user(workshop: Workshop) -> None:
    workshop.put("harness-init.sh", "case $PWD in */0) echo no database; exit 1; esac\n")
    workshop.file_task("f")
    workshop.add("Never", "false", "--max-attempts", "1")

    said = workshop.ends(7, "--final-check", "all")

    assert "no database" in said.stderr
    assert "2 tasks: 1 completed, 1 failed for good." in said.stderr
    report = workshop("report").out
    assert "(1 run; ended, as it needed you)" in report
    assert "stopped by you" not in report


def test_what_shows_why_a_task_is_red_can_be_typed_where_the_list_lies(tmp_path: Path) -> None:
    """In a directory of a monorepo; git reads paths from where a command is typed."""
    top = tmp_path / "mono"
    inner = Workshop(top / "app", tmp_path / "home")
    sh(tmp_path, "init", "-q", "-b", "main", str(top))
    commit_all(top, "Begin", {"app/x": "x\n"})
    inner.ok("init")
    inner.add("One", "grep -q good app/f", do="sh echo good > app/f")
    inner.add("Two", "true", "--depends-on", "task-001", do="sh echo bad > app/f")
    try:
        inner.ends(9, "--final-check", "all", "--max-tasks", "2")
        (red,) = [each for each in inner.ok("report")["report"]["decisions"] if each["kind"] == "red"]
        assert "+bad" in inner.sh(*shlex.split(red["commands"][0])[1:])
        assert inner.ok("report")["report"]["commands"] == ["harness retry task-001"]
    finally:
        inner.close()


def test_each_branch_that_the_runs_have_merged_into_is_named(workshop: Workshop) -> None:
    workshop.sh("branch", "other")
    workshop.commits("Only here", {"more": "x\n"})
    workshop.file_task("f")
    workshop.file_task("g")
    workshop.ends(9, "--max-tasks", "1")
    workshop.sh("switch", "-q", "other")
    workshop.ends(0)

    lines = workshop("report").out.splitlines()

    assert "Nothing was lost" in lines[1]
    assert [line.partition(":")[0] for line in lines if "1 commit, 1 file" in line] == ["other", "main"]
    assert workshop.ok("report")["report"]["merged"]["branch"] == "other"


def test_what_waited_beside_a_branch_counts_as_merged_into_it(workshop: Workshop) -> None:
    workshop.file_task("f")
    workshop.file_task("g")
    workshop.ends(9, "--max-tasks", "1", "--merge", "branch")
    assert "\nharness/main: 1 commit, 1 file" in workshop("report").out
    workshop.ends(0)
    assert "\nmain: 2 commits, 2 files" in workshop("report").out


@pytest.mark.parametrize("when", ["yesterday", "8", "2026-13-01", ""])
def test_a_moment_that_is_none_is_refused(workshop: Workshop, when: str) -> None:
    said = workshop("report", "--since", when)
    assert said.code == 2
    assert "harness report --since 8h" in said.text

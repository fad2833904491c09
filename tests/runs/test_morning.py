"""A night in small, and its report: whoever reads its first screen knows all that there is to know."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness_lib.runs import report_text
from tests.conftest import for_release
from tests.runs.workshop import HURRIED, KILL_WORKER, Workshop
from tests.system.git.gitrepo import put, sh

PAID = 'say {"cost_usd": 0.25, "tokens": 1000}'


def _list(workshop: Workshop, gate: Path, more: int) -> None:
    """Add every way to end: done, done already, red, failed, silent, a secret, its check changed, waiting.

    `more` tasks come to a good end, some after their agent or their worker was killed, or with a late check.
    """
    put(workshop.top / "check.sh", "grep -q done parser\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "A check")
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
    assert "assert 5 == 6" in row(lines, "task-003")
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
    assert "+broken" in sh(workshop.top, *shown[1:])
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
    assert (
        workshop("report")
        .out.splitlines()[-1]
        .endswith("is refused until you have looked at the commands; harness trust")
    )
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
    sh(workshop.top, "clean", "-fdxq", ".harness/runs")

    lines = workshop("report").out.splitlines()

    assert "(no run has a record)" in lines[0]
    assert lines[0].endswith("$0.25   1,000 tokens")
    assert re.match(r"  task-001 One +\d:\d\d +\$0\.25 +1", row(lines, "task-001"))


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


@pytest.mark.parametrize("when", ["yesterday", "8", "2026-13-01", ""])
def test_a_moment_that_is_none_is_refused(workshop: Workshop, when: str) -> None:
    said = workshop("report", "--since", when)
    assert said.code == 2
    assert "harness report --since 8h" in said.text

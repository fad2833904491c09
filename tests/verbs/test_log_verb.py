"""`harness log`: the end of the log, taken apart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness_lib.core.context import Context
from harness_lib.state import journal
from harness_lib.system.clock import Clock
from harness_lib.verbs import log
from tests.verbs.project import Agent, Project

STAMP = "[2025-07-01T10:00:00Z] [SESSION-1]"
PROSE = f"""\
{STAMP} INIT Harness initialized for project /path/to/project
{STAMP} LOCK acquired (pid=12345)
{STAMP} Starting [task-001] Implement user authentication (base=def5678)
{STAMP} CHECKPOINT [task-001] step=2/4 "auth routes created, tests pending"
{STAMP} Completed [task-001] (commit abc1234)
{STAMP} ERROR [task-002] [TASK_EXEC] Redis connection refused
{STAMP} ERROR [ENV_SETUP] harness-tasks.json corrupted and unrecoverable
[2025-07-01T10:00:00Z] [SESSION-2] STATS tasks_total=5 completed=1
a line of nobody's
"""


@pytest.fixture
def logged(project: Project) -> Project:
    (project.top / "harness-progress.txt").write_text(PROSE)
    return project


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("INIT ready", ("INIT", None, None, "ready")),
        ("Completed [t-1] (commit a)", ("Completed", "t-1", None, "(commit a)")),
        ("ERROR [t-1] [TIMEOUT] too long", ("ERROR", "t-1", "TIMEOUT", "too long")),
        ("ERROR [CONFIG] no check", ("ERROR", None, "CONFIG", "no check")),
        ("CHECKPOINT [t-1] [half] done", ("CHECKPOINT", "t-1", None, "[half] done")),
        ("STATS", ("STATS", None, None, "")),
    ],
)
def test_a_line_of_the_grammar_is_taken_apart(line: str, parts: tuple[str | None, ...]) -> None:
    entry = journal.parse(f"{STAMP} {line}")
    assert (entry.type, entry.task, entry.category, entry.message) == parts
    assert (entry.at, entry.session) == ("2025-07-01T10:00:00Z", 1)


@pytest.mark.parametrize("line", ["", "a line of nobody's", "[x] [SESSION-y] WARN z", "[] [SESSION-1]"])
def test_a_line_that_is_not_in_the_grammar_is_kept_as_text(line: str) -> None:
    assert journal.parse(line) == journal.Entry(line, message=line)


FILTERED = [
    ("--task task-002", ["Redis connection refused"]),
    ("--task 2", ["Redis connection refused"]),
    ("-n 1", ["a line of nobody's"]),
    ("-n 1 --task task-001", ["(commit abc1234)"]),
    ("-n 0", []),
]


@pytest.mark.usefixtures("logged")
def test_the_last_lines_and_those_of_one_task_are_shown(agent: Agent) -> None:
    """The number of a task will do, also where the task is gone."""
    for options, texts in FILTERED:
        assert [line["message"] for line in agent.ok("log", *options.split())["lines"]] == texts, options
    assert len(agent.ok("log")["lines"]) == len(PROSE.splitlines())
    assert "No line" in agent("log", "--task", "nobody").out


def test_only_the_end_of_a_huge_log_is_read_and_that_is_said(logged: Project, agent: Agent) -> None:
    """The sparse file is 64 GB long: whoever read it from its start would never come back."""
    path = logged.top / "harness-progress.txt"
    with path.open("r+b") as stream:
        stream.truncate(2**36)
        stream.seek(0, 2)
        stream.write(f"\n{STAMP} WARN at the end\n".encode())
    said = agent("log", "-n", "30")
    assert f"{STAMP} WARN at the end" in said.out.splitlines()
    assert "grep finds the rest" in said.err


def test_without_a_log_there_is_nothing_to_show(project: Project, agent: Agent) -> None:
    (project.top / "harness-progress.txt").unlink()
    assert agent.ok("log")["lines"] == []


def test_following_yields_what_is_added_and_fits(logged: Project) -> None:
    path = logged.top / "harness-progress.txt"

    class Writer(Clock):
        def __init__(self) -> None:
            self.lines: Iterator[str] = iter(("WARN no", "Starting [task-001] yes", "WARN [task-001] more"))

        def sleep(self, seconds: float) -> None:
            assert seconds > 0
            with path.open("a") as stream:
                stream.write(f"{STAMP} {next(self.lines)}\n")

    lines = log.follow(Context(env={}, cwd=logged.top, clock=Writer()), "1")
    assert [next(lines), next(lines)] == [f"{STAMP} Starting [task-001] yes", f"{STAMP} WARN [task-001] more"]


def test_a_wrong_option_is_a_usage_error(agent: Agent) -> None:
    for options in ("-n -3", "-n many", "-f"):
        agent.fails(2, "log", *options.split())

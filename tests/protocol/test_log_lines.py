"""The filters of the legacy protocol work on a log of ours with every type and every category."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import get_args

import pytest

from harness_lib.task import CATEGORIES, LogType
from tests.verbs import project as projects
from tests.verbs.project import Project

GRAMMAR = re.compile(
    r"\[(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\] \[SESSION-(?P<session>\d+)\] "
    r"(?P<type>INIT|Starting|Completed|ERROR|CHECKPOINT|ROLLBACK|RECOVERY|STATS|LOCK|WARN)"
    r"(?: \[(?P<task>task-\d+)\])?"
    r"(?: \[(?P<category>ENV_SETUP|CONFIG|TASK_EXEC|TEST_FAIL|TIMEOUT|DEPENDENCY|SESSION_TIMEOUT)\])?"
    r" (?P<message>\S.*)"
)
# What the legacy protocol lets people type, and what of a line must then be so.
FILTERS = [
    (("ERROR",), {"type": "ERROR"}),
    (("ERROR", "TASK_EXEC"), {"type": "ERROR", "category": "TASK_EXEC"}),
    (("SESSION-3",), {"session": "3"}),
    (("STATS",), {"type": "STATS"}),
    (("CHECKPOINT",), {"type": "CHECKPOINT"}),
    (("RECOVERY",), {"type": "RECOVERY"}),
]


# The lines that the legacy protocol shows, without stamp and session.
SHOWN = [
    r"INIT Harness initialized for project /\S+",
    r"INIT Environment health check: PASS",
    r"LOCK acquired \(pid=\d+\)",
    r"LOCK released",
    r"Starting \[task-001\] Passes \(base=[0-9a-f]{7,40}\)",
    r'CHECKPOINT \[task-001\] step=1/2 "half of it"',
    r"Completed \[task-001\] \(commit [0-9a-f]{7,40}\)",
    r"ERROR \[task-002\] \[TASK_EXEC\] the API has no such call",
    r"ROLLBACK \[task-002\] to [0-9a-f]{7,40}, .*",
    r"ERROR \[task-005\] \[CONFIG\] Missing validation\.command.*",
    r"ERROR \[task-006\] \[DEPENDENCY\] Circular dependency detected: task-006 -> task-007 -> task-006",
    r'RECOVERY \[task-005\] action=".+" reason="No progress detected"',
    r"STATS tasks_total=7 completed=1 failed=5 pending=1 blocked=0 attempts_total=4 checkpoints=[12]",
]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of a project in which everything has happened that can be logged."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("GIT_AUTHOR", "Test Person"), ("GIT_COMMITTER", "Test Person")):
            patch.setenv(f"{name}_NAME", value)
            patch.setenv(f"{name}_EMAIL", "test@example.invalid")
        project = projects.make(tmp_path_factory.mktemp("log") / "repo")
        try:
            _live(project)
        finally:
            project.close()
    return project.top / "harness-progress.txt"


def _live(project: Project) -> None:
    agent = project.agent()
    checks = {"Passes": "test -f one.txt", "Is given up": "true", "Fails": "false", "Never ends": "sleep 60"}
    for title, check in checks.items():
        agent.ok("add", title, "--validate", check, "--max-attempts", "1", "--timeout", "1")
    agent.ok("add", "Has no check")
    agent.ok("add", "Ring one", "--validate", "true")
    agent.ok("add", "Ring two", "--validate", "true", "--depends-on", "task-006")
    agent.ok("edit", "task-002", "--title", "Is given up at once")
    script = project.put("harness-init.sh", "exit 1\n")
    agent.trusts()
    agent.fails(7, "start")
    script.write_text("exit 0\n")
    agent.trusts()
    project.edit_task("task-006", depends_on=["task-007"])
    agent.ok("start")
    agent.ok("claim", "task-001")
    project.put("one.txt")
    agent.ok("checkpoint", "task-001", "1/2", "half of it")
    agent.ok("finish")
    agent.ok("claim", "task-002")
    agent.ok("fail", "task-002", "--message", "the API has no such call")
    agent.ok("claim", "task-003")
    agent.fails(1, "finish")
    agent.ok("claim", "task-004")
    agent.fails(1, "finish")
    agent.ok("claim", "task-005")
    agent.die()
    agent.wake()
    agent.ok("start")
    agent.ok("claim", "task-005")
    agent.fails(3, "finish")
    agent.ok("release")
    agent.ok("stop")
    agent.ok("start")
    agent.ok("claim")
    agent.ok("checkpoint", "task-005", "1/1", "looked around")
    agent.ok("release")
    agent.ok("stop")


def _grep(log: Path, words: tuple[str, ...]) -> list[str]:
    first, *rest = (f"grep {word!r}" for word in words)
    typed = " | ".join([f"{first} {log.name!r}", *rest])
    done = subprocess.run(["sh", "-c", typed], cwd=log.parent, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_each_filter_gives_exactly_the_promised_lines(log: Path) -> None:
    matches = [GRAMMAR.fullmatch(line) for line in log.read_text().splitlines()]
    for words, promise in FILTERS:
        fitting = (line for line in matches if line and promise.items() <= line.groupdict().items())
        promised = [line[0] for line in fitting]
        assert promised
        assert _grep(log, words) == promised


def test_every_line_is_in_the_grammar_and_every_type_and_category_occurs(log: Path) -> None:
    lines = log.read_text().splitlines()
    matches = [GRAMMAR.fullmatch(line) for line in lines]

    assert [line for line, match in zip(lines, matches, strict=True) if match is None] == []
    assert {match["type"] for match in matches if match} == set(get_args(LogType))
    assert {match["category"] for match in matches if match} == {None, *CATEGORIES}


def test_lines_about_a_session_name_no_task_and_errors_of_a_task_have_both_tags(log: Path) -> None:
    for line in log.read_text().splitlines():
        match = GRAMMAR.fullmatch(line)
        assert match
        if match["type"] in ("INIT", "LOCK", "STATS"):
            assert (match["task"], match["category"]) == (None, None), line
        elif match["type"] == "ERROR":
            assert match["category"], line
        elif match["type"] != "WARN":
            assert match["task"], line


def test_each_event_has_the_line_that_the_legacy_protocol_shows(log: Path) -> None:
    texts = [line.split("] ", 2)[2] for line in log.read_text().splitlines()]

    missing = [pattern for pattern in SHOWN if not any(re.fullmatch(pattern, text) for text in texts)]
    assert missing == []

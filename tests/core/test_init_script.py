"""The project's harness-init.sh runs at every session start, and where it fails there is no session."""

from __future__ import annotations

import pytest

from tests.verbs.project import Agent, Project

SCRIPT = "#!/bin/sh\necho run >> runs.txt\n"


@pytest.mark.parametrize(
    ("mode", "does", "runs"),
    [(0o755, "", 1), (0o644, "", 1), (0o644, 'test "$(wc -l < runs.txt)" -gt 1\n', 2)],
    ids=["executable", "not executable", "fails once and is run again"],
)
def test_the_init_script_runs_once_at_every_session_start(
    project: Project, agent: Agent, mode: int, does: str, runs: int
) -> None:
    project.put("harness-init.sh", SCRIPT + does).chmod(mode)
    agent.ok("add", "One", "--validate", "true")

    agent.ok("start")
    agent.ok("start")

    assert project.read("runs.txt") == "run\n" * runs
    assert len(project.grep("[SESSION-1] INIT Environment health check: PASS")) == 1


@pytest.mark.parametrize(
    ("does", "said"),
    [("echo no database; exit 1", "no database"), ("exit 3", "twice: it ended with 3 and printed nothing.")],
)
def test_a_script_that_fails_twice_is_env_setup_and_no_session(
    project: Project, agent: Agent, does: str, said: str
) -> None:
    project.put("harness-init.sh", f"{SCRIPT}{does}\n")
    agent.ok("add", "One", "--validate", "true")

    for verb in ("start", "claim"):
        error = agent.fails(7, verb)["error"]

        assert said in error["message"]
        assert "harness-init.log" in error["hint"]
    assert project.read("runs.txt") == "run\n" * 4
    assert project.state["sessions"] == []
    assert project.state["session_count"] == 0
    assert project.task()["attempts"] == 0
    assert len(project.grep("ERROR [ENV_SETUP] harness-init.sh failed twice")) == 2


def test_for_a_list_in_a_directory_too_it_runs_at_the_top_of_the_work_tree(project: Project) -> None:
    below = project.agent("below", project.put("below/harness-init.sh", SCRIPT).parent)
    below.ok("init", ".")
    below.ok("add", "One", "--validate", "true")

    below.ok("start")

    assert project.read("runs.txt") == "run\n"

"""`harness run`: inside an agent it is `start`; elsewhere it drives agents until the list is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.verbs.project import Agent, Project


def test_an_agent_that_types_it_starts_a_session_and_no_second_agent(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    said = agent.ok("run", CLAUDECODE="1")
    assert said["verb"] == "run"
    assert said["next"] == "harness claim"
    assert [session["worker"] for session in project.state["sessions"]] == ["agent"]
    assert agent.ok("run", CLAUDECODE="1")["session"] == said["session"]


def test_two_agents_at_once_are_a_mistake_of_who_typed_them(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    error = agent.fails(2, "run", "--agent", "codex", "--agent-command", "true")["error"]
    assert "--agent and --agent-command" in error["message"]
    assert not project.state["sessions"]


def test_where_there_is_no_agent_nothing_is_fetched_to_find_that_out(one: Agent, tmp_path: Path) -> None:
    """Ours was never used here and has no key: asking it would fetch its packages first."""
    home = tmp_path / "home of harness"
    home.mkdir(mode=0o700)

    error = one.fails(7, "run", HARNESS_HOME=str(home), PATH="/usr/bin:/bin")["error"]

    assert "give hs a key" in error["hint"]
    assert not list(home.glob("env-*"))


def test_a_git_too_old_begins_nothing(project: Project, agent: Agent, with_git: Callable[[str], str]) -> None:
    agent.ok("add", "One", "--validate", "true")
    error = agent.fails(7, "run", "--agent-command", "true", PATH=with_git("2.34.1"))["error"]
    assert "git version 2.34.1 is too old" in error["message"]
    assert "git 2.38" in error["message"]
    assert "every other verb works with 2.25 or newer" in error["hint"]
    assert not project.state["sessions"]


def test_a_time_in_which_no_agent_could_work_is_refused(agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    for typed in ("--silence=0", "--silence=nan", "--longest=-1", "--max-file=-1"):
        error = agent.fails(2, "run", "--agent-command", "true", typed)["error"]
        assert f"Argument {typed.partition('=')[0]}: " in error["message"]

"""`harness run`: when it is `start`, when it is refused, and what is told of it: lines, objects, a table."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_lib.core.context import Context
from harness_lib.rules import events
from harness_lib.rules.events import Event
from harness_lib.rules.run_state import RunState
from harness_lib.terminal.render import Screen
from harness_lib.verbs import run
from tests.terminal.pseudo_terminal import ESCAPE, read_to_end, read_until, typed
from tests.verbs import project as projects
from tests.verbs.project import Agent, Project

# 2025-07-01T10:00:00Z
AT = 1751364000.0


def event(name: str, worker: int | None = 1, **facts: Any) -> Event:
    return events.read({"event": name, "worker": worker, "at": AT, **facts})


EVENTS = [
    (event("claimed", task="t1", title="One\nline", attempt=2), "[1] t1 attempt 2: One line"),
    (event("ended", task="t1", status="completed", message=""), "[1] t1 completed"),
    (event("ended", task="t1", status="failed", message="[TEST_FAIL] no"), "[1] t1 failed: [TEST_FAIL] no"),
    (event("ended", task="t1", status="pending", message="conflict"), "[1] t1 goes back: conflict"),
    (
        event("step", step="limit", until=AT + 3600, message="used\x1b[31m up"),
        "[1] usage limit, goes on at 2025-07-01T11:00:00Z (in 1:00:00): used\ufffd[31m up",
    ),
    (
        event("step", step="pauses", until=AT + 5, message="503"),
        "[1] pauses, goes on at 2025-07-01T10:00:05Z (in 0:05): 503",
    ),
    (event("step", step="works"), None),
    (event("said", last="x", tokens=1, cost=0.1), None),
    (event("idle", why="waiting"), None),
    (event("gone", code=0, message=""), None),
    (event("gone", code=-9, message="killed"), "[1] the worker has died: killed"),
    (event("stuck", task=None, kind="CONFIG", message="see to it", hint=""), "[1] see to it"),
    (event("final", None, message="every check runs"), "every check runs"),
    (event("tick", None), None),
]


@pytest.mark.parametrize(("event", "sentence"), EVENTS, ids=lambda each: str(each)[:30])
def test_an_event_is_a_safe_line_or_none(event: Event, sentence: str | None) -> None:
    assert list(run.sentences(event)) == ([sentence] if sentence else [])


@pytest.mark.parametrize(("status", "label"), [("completed", "look at"), ("failed", "warning")])
def test_what_is_said_of_an_attempt_that_has_ended_is_shown(status: str, label: str) -> None:
    said = event(
        "ended",
        task="t1",
        status=status,
        warnings=["t1 changed a file that its check depends on: a.py", "x\ny"],
    )
    assert list(run.sentences(said)) == [
        f"[1] t1 {status}",
        f"[1] {label}: t1 changed a file that its check depends on: a.py",
        f"[1] {label}: x y",
    ]


def lines_of(*events: Event, as_json: bool = False) -> list[str]:
    screen = Screen(json=as_json, out=io.StringIO(), err=io.StringIO())
    ctx = Context(env={}, cwd=Path.cwd())
    with run.watching(ctx, screen) as watch:
        for each in events:
            watch(each, RunState())
    assert isinstance(screen.out, io.StringIO)
    return screen.out.getvalue().splitlines()


def test_a_piped_line_begins_with_its_time() -> None:
    assert lines_of(event("final", None, message="checks"), event("tick", None)) == [
        "2025-07-01T10:00:00Z checks"
    ]


def test_with_json_each_event_is_an_object_and_a_tick_is_none() -> None:
    said = event("said", last="x", tokens=1, cost=0.1)
    assert [json.loads(line) for line in lines_of(said, event("tick", None), as_json=True)] == [
        events.write(said)
    ]


def test_a_terminal_shows_a_table_that_goes_and_lines_that_stay(tmp_path: Path) -> None:
    project = projects.make(tmp_path / "repo")
    project.agents[0].ok("add", "One [red]not markup[/red]", "--validate", "test -f f")
    go = tmp_path / "go"
    agent = f"echo hard at work; while [ ! -e {shlex.quote(str(go))} ]; do sleep 0.1; done; touch f"
    argv = ("run", "--max-cost", "5", "--agent-command", agent)
    with typed(project.top, *argv, HARNESS_HOME=str(tmp_path / "home")) as (process, ours):
        seen = ESCAPE.sub("", read_until(ours, "hard at work"))
        assert "task-001 attempt 1: One [red]not markup[/red]" in seen
        assert "0 of 1 completed" in seen
        assert "cost: $0.00 of $5.00" in seen
        go.touch()
        rest = ESCAPE.sub("", read_to_end(ours))
        assert process.wait() == 0
    assert "[1] task-001 completed" in rest
    assert rest.rstrip().endswith("next: harness status")
    project.close()


# -- inside an agent it is `start`; elsewhere it drives agents until the list is done


def test_an_agent_that_types_it_starts_a_session_and_no_second_agent(project: Project, one: Agent) -> None:
    said = one.ok("run", CLAUDECODE="1")
    assert said["verb"] == "run"
    assert said["next"] == "harness claim"
    assert [session["worker"] for session in project.state["sessions"]] == ["agent"]
    assert one.ok("run", CLAUDECODE="1")["session"] == said["session"]


def test_two_agents_at_once_are_a_mistake_of_who_typed_them(project: Project, one: Agent) -> None:
    error = one.fails(2, "run", "--agent", "codex", "--agent-command", "true")["error"]
    assert "--agent and --agent-command" in error["message"]
    assert not project.state["sessions"]


def test_where_there_is_no_agent_nothing_is_fetched_to_find_that_out(one: Agent, tmp_path: Path) -> None:
    """Ours was never used here and has no key: asking it would fetch its packages first."""
    home = tmp_path / "home of harness"
    home.mkdir(mode=0o700)

    error = one.fails(7, "run", HARNESS_HOME=str(home), PATH="/usr/bin:/bin")["error"]

    assert "give hs a key" in error["hint"]
    assert not list(home.glob("env-*"))


def test_a_git_too_old_begins_nothing(project: Project, one: Agent, with_git: Callable[[str], str]) -> None:
    error = one.fails(7, "run", "--agent-command", "true", PATH=with_git("2.34.1"))["error"]
    assert "git version 2.34.1 is too old" in error["message"]
    assert "git 2.38" in error["message"]
    assert "every other verb works with 2.25 or newer" in error["hint"]
    assert not project.state["sessions"]


def test_a_time_in_which_no_agent_could_work_is_refused(one: Agent) -> None:
    for option in ("--silence=0", "--silence=nan", "--longest=-1", "--max-file=-1"):
        error = one.fails(2, "run", "--agent-command", "true", option)["error"]
        assert f"Argument {option.partition('=')[0]}: " in error["message"]

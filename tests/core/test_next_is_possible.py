"""What a reply names as the next command can be typed, and is not refused to whoever reads the reply."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from harness_lib.terminal import render
from tests.conftest import CHECKOUT, Harness, for_release
from tests.core.search_paths import without_harness
from tests.system.git.gitrepo import put
from tests.terminal.pseudo_terminal import shown
from tests.verbs.project import Agent, Project, begin

LOOKS = [
    ("status",),
    ("graph",),
    ("log",),
    ("rescue", "list"),
    ("check",),
    ("show", "task-001"),
    ("show", "task-002"),
]
CHANGES = [
    ("add", "Another", "--validate", "true"),
    ("stop",),
    *for_release(
        (("pause",),),
        (("edit", "task-001", "--priority", "P2"),),
        (("import", "plan.json"),),
        (("edit", "task-002", "--priority", "P2"),),
        (("edit", "--max-tasks-per-session", "9"),),
        (("retry", "task-002"),),
        (("trust",),),
        (("note", "task-001", "a trap"),),
    ),
]


def _typed(agent: Agent, command: str) -> None:
    """Type what was advised; `--watch` goes on until the list is finished, so its first look will do."""
    words = shlex.split(command.replace("COMMAND", "true"))
    assert words[0] == "harness"
    said = agent(*(word for word in words[1:] if word != "--watch"))
    assert said.code in (0, 9), f"{command}: {said.text}"


@pytest.fixture
def other(project: Project) -> Agent:
    return project.agent("other")


@pytest.fixture
def held(project: Project, agent: Agent) -> Agent:
    """Return an agent whose session holds the list, with one task in progress and one that waits."""
    begin(agent)
    agent.ok("add", "Two", "--validate", "true")
    (project.top / "plan.json").write_text('[{"title": "Of a plan", "check": "true"}]')
    return agent


@pytest.mark.parametrize("argv", CHANGES, ids=" ".join)
def test_while_another_session_holds_the_list(held: Agent, other: Agent, argv: tuple[str, ...]) -> None:
    for typed in (argv, *LOOKS):
        said = other(*typed)
        lines = [line for line in said.out.splitlines() if line.startswith("next: ")]

        assert lines, said.text
        _typed(other, lines[0].removeprefix("next: "))
        assert held.ok("status")["sessions"]


def test_an_agent_is_told_no_command_that_waits(held: Agent, project: Project) -> None:
    """`harness status --watch` would keep its call of the shell busy until the other session ends."""
    chat = project.agent("chat", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="chat")

    assert chat.ok("add", "Another", "--validate", "test -f one")["next"] == "harness status"
    assert chat.ok("show", "task-002")["next"] == "harness status"
    assert chat.ok("status")["next"] is None
    assert held.ok("status")["next"] == "harness finish"


def test_status_says_who_holds_the_list_and_what_others_may_do(held: Agent, other: Agent) -> None:
    (line,) = [line for line in other("status").out.splitlines() if line.startswith("open: ")]
    assert "session 1 of agent " in line
    assert "it holds the list: others can look, and add and edit tasks" in line
    assert "the user can end it: harness stop --session 1" in line
    assert "holds the list" not in held("status").out


def test_a_task_that_nobody_has_taken_is_given_its_check_by_whoever_types(held: Agent) -> None:
    held.ok("add", "Without a check")

    assert held.ok("show", "task-003")["next"] != "harness finish task-003"
    assert "ask the user" not in held("validate", "--all").text
    assert "it has no check: harness edit task-003 --validate" in held("show", "task-003").text
    held.ok("edit", "task-003", "--validate", "true")


def test_whose_command_switches_the_hooks_on_is_said_to_others(held: Agent, other: Agent) -> None:
    held.ok("pause")

    assert "harness start, typed by agent, who holds the list" in other("doctor").text
    assert "typed by" not in held("doctor").text


def test_after_its_own_session_has_ended_with_a_task_in_progress(held: Agent) -> None:
    held.ok("stop")
    for command in {held.ok(*argv)["next"] for argv in LOOKS}:
        assert command is not None
        _typed(held, command)


@pytest.mark.parametrize(
    ("category", "code", "command"),
    [
        ("CONFIG", 3, "harness stop"),
        *for_release(("TASK_EXEC", 0, "harness status"), ("ENV_SETUP", 7, "harness stop")),
    ],
)
def test_who_gives_up_is_told_what_to_type(agent: Agent, category: str, code: int, command: str) -> None:
    begin(agent, "false", "--max-attempts", "1")

    said = agent("fail", "task-001", "--category", category, "--message", "no", "--json")

    assert (said.code, said.json["next"]) == (code, command)
    _typed(agent, command)


LAUNCHER = shlex.quote(f"{CHECKOUT}/bin/harness")


def test_what_is_to_be_typed_in_its_place_is_our_launcher(harness: Harness) -> None:
    said = harness(env={"PATH": without_harness()}).out
    told = said.partition("`harness` is not on your PATH: type ")[2].partition(" in its place")[0]
    assert Path(shlex.split(told)[0]).samefile(Path(__file__).parents[2] / "bin/harness")


def test_on_a_terminal_each_command_that_is_shown_can_be_typed(repo: Path) -> None:
    """After `skills add` alone there is no `harness` on the PATH."""
    elsewhere = {"PATH": without_harness(), "HARNESS_WORKER_ID": "one"}

    assert f"next: {LAUNCHER} add " in shown(repo, "init", **elsewhere)
    said = shown(repo, "add", "One", **elsewhere)
    assert f"Give it one: {LAUNCHER} edit task-001 --validate 'COMMAND'" in said
    assert f"Did you mean: {LAUNCHER} status" in shown(repo, "statsu", **elsewhere)
    assert "next: harness start" in shown(repo, "add", "Two")


@pytest.mark.usefixtures("repo")
def test_what_an_agent_asks_of_its_user_can_be_typed(harness: Harness) -> None:
    for words in (("init",), ("add", "One"), ("claim",)):
        assert harness(*words, env={"HARNESS_WORKER_ID": "one"}).code == 0
    # Claude Code puts the skill's own directory on the PATH of its agent alone.
    for added in ("", f":{CHECKOUT}/bin"):
        env = {"PATH": f"{without_harness()}{added}", "HARNESS_WORKER_ID": "one"}

        said = harness("finish", env=env)

        assert f"in a terminal: {LAUNCHER} edit task-001" in said.err

        said = harness("start", env={**env, "HARNESS_WORKER_ID": "two"})

        assert f"the user can end it: {LAUNCHER} stop --session 1" in said.err


def test_where_it_is_found_nothing_is_said(tmp_path: Path) -> None:
    program = tmp_path / "harness"
    put(program, "#!/bin/sh\n", executable=True)
    assert render.advice(str(tmp_path)) is None

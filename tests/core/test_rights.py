"""An agent may not change what it is judged by: the user may, in a terminal."""

from __future__ import annotations

import os

import pytest

from harness_lib.attempts import dialogue
from harness_lib.core import add_tasks
from harness_lib.core.context import Context
from tests.attempts.forbidden_list import forbidden
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin

CLAUDE = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "chat"}


@pytest.fixture
def chat(project: Project) -> Agent:
    """Return an agent that its environment tells from the user."""
    made = project.agent("chat")
    made.env = {**CLAUDE, "HARNESS_WORKER_ID": None}
    return made


@pytest.fixture
def person(project: Project) -> Agent:
    return project.agent("somebody")


def _refused(project: Project, chat: Agent, *argv: str) -> None:
    before = project.file.read_bytes()
    error = chat.fails(8, *argv)["error"]
    assert "user" in error["hint"]
    assert project.file.read_bytes() == before


WAYS = [
    ("edit", "task-001", "--validate", "true"),
    ("edit", "task-001", "--timeout", "1"),
    ("edit", "task-001", "--max-attempts", "9"),
    ("edit", "task-001", "--protect", "x"),
    ("remove", "task-001"),
]


def test_what_it_handed_back_is_what_it_was_judged_by(project: Project, chat: Agent, person: Agent) -> None:
    """But words are not its judge."""
    begin(chat, "false")
    _refused(project, chat, "edit", "task-001", "--max-attempts", "9")
    chat.ok("release")
    chat.ok("edit", "task-001", "--title", "Another title", "--priority", "P0")
    for argv in WAYS:
        _refused(project, chat, *argv)
    chat.ok("stop")
    for argv in WAYS:
        _refused(project, chat, *argv)
    for argv in WAYS:
        person.ok(*argv)


def test_what_it_went_on_with_after_another_agent_is_its_own_work_too(project: Project, chat: Agent) -> None:
    earlier = project.agent("earlier")
    begin(earlier, "false")
    project.put("half.txt")
    earlier.die()
    chat.ok("start")
    assert project.task()["status"] == "in_progress"
    chat.ok("release")
    chat.ok("stop")
    for argv in WAYS:
        _refused(project, chat, *argv)


def test_a_task_that_it_never_had_it_may_correct(chat: Agent) -> None:
    chat.ok("add", "One", "--validate", "false")
    chat.ok("edit", "task-001", "--validate", "true", "--max-attempts", "5")
    chat.ok("remove", "task-001")


LIFTS = [
    ("retry", "task-001"),
    ("edit", "task-001", "--title", "Another"),
    ("edit", "task-001", "--validate", "true"),
    ("remove", "task-001"),
]


def test_a_halt_for_user_is_lifted_by_no_agent(project: Project, chat: Agent, person: Agent) -> None:
    begin(chat, "false")
    project.edit_task(validation={"command": "true"})
    chat.fails(1, "finish")
    assert "the user must say" in project.task()["halt"]
    other = project.agent("other-chat")
    other.env = {**CLAUDE, "CLAUDE_CODE_SESSION_ID": "other", "HARNESS_WORKER_ID": None}

    halted = project.file.read_bytes()
    for argv in LIFTS:
        project.file.write_bytes(halted)
        _refused(project, chat, *argv)
        _refused(project, other, *argv)
        person.ok(*argv)


def test_an_ordinary_failure_it_may_try_again(chat: Agent) -> None:
    begin(chat, "false", "--max-attempts", "1")
    chat.fails(1, "finish")
    chat.ok("retry", "task-001")


@pytest.mark.parametrize("is_known", [True, False])
def test_no_agent_is_advised_to_give_its_task_a_check(
    project: Project, chat: Agent, person: Agent, *, is_known: bool
) -> None:
    """It would be refused: the advice is to ask the user, and the command that lets it stop until then.

    Who is neither a known agent nor at a terminal may be an agent that we do not know.
    """
    who = chat if is_known else project.agent()
    who.ok("add", "Without a check")
    who.ok("start")
    claimed = who.ok("claim")
    replies = [who(*argv) for argv in (("show", "1"), ("check",), ("validate", "1"), ("claim",))]
    stuck = who.fails(3, claimed["next"].removeprefix("harness ").split()[0])

    ask = "ask the user to type, in a terminal: harness edit task-001 --validate 'COMMAND'"
    assert claimed["next"] == "harness finish"
    assert ask in claimed["message"]
    assert ask in stuck["error"]["hint"]
    for said in replies:
        assert "next: harness edit" not in said.text
        assert all(ask in line for line in said.text.splitlines() if "--validate" in line), said.text
    assert project.state["sessions"][0]["halt"].startswith("CONFIG")
    assert [who.ok(*argv)["next"] for argv in (("status",), ("show", "1"))] == ["harness stop"] * 2
    who.ok("stop")
    assert (who.ok("status")["next"], project.task()["status"]) == ("harness start", "in_progress")
    who.ok("start")
    assert person.ok("show", "task-001")["next"] == "harness edit task-001 --validate 'COMMAND'"
    begun = person("edit", "task-001", "--validate", "true")
    assert begun.code == 0, begun.text
    assert who.ok("finish")["task"]["status"] == "completed"


def test_an_agent_keeps_itself_shorter_and_no_longer(project: Project, chat: Agent, person: Agent) -> None:
    for limit in ("--max-sessions", "--max-tasks-per-session"):
        person.ok("edit", limit, "5")
        chat.ok("edit", limit, "4")
        for more in ("9", "0"):
            _refused(project, chat, "edit", limit, more)
        person.ok("edit", limit, "9")


def test_nobody_is_told_to_type_what_is_the_users_at_max_sessions(project: Project, chat: Agent) -> None:
    chat.ok("add", "One", "--validate", "true")
    project.edit(session_count=50)

    said = chat.fails(9, "start")

    assert said["next"] == "harness status"
    assert "The user can raise it: harness edit --max-sessions N" in said["message"]


# -- what it adds waits for the user, and runs nothing before one has accepted it


SUPERVISED = {"HARNESS_SUPERVISED": "task-001"}


@pytest.fixture
def held(agent: Agent) -> Agent:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("claim")
    return agent


def _propose(agent: Agent, title: str, *options: str) -> None:
    agent.ok("add", title, "--validate", f"touch {title}", *options, **SUPERVISED)


def test_a_proposal_is_no_task_until_the_user_accepts_it(project: Project, held: Agent) -> None:
    _propose(held, "Two", "--description", "why", "--depends-on", "task-001", "--priority", "P0")
    _propose(held, "Three")

    assert [task["id"] for task in project.state["tasks"]] == ["task-001"]
    assert "2 proposed by agents" in held("status").out
    (reported,) = [line for line in held("report").out.splitlines() if "2 proposed by agents" in line]
    words = "2 proposed by agents: Two, Three harness add --proposed"
    assert reported.split() == words.split()
    shown = held.ok("add", "--proposed")
    assert [each["number"] for each in shown["proposals"]] == [1, 2]
    assert "touch Two" in shown["message"]
    assert "task-001" in shown["message"]

    reply = held.ok("add", "--proposed", "1")

    task = project.task("task-002")
    assert reply["task"]["id"] == "task-002"
    assert (task["title"], task["description"], task["priority"]) == ("Two", "why", "P0")
    assert (task["depends_on"], task["validation"]["command"]) == (["task-001"], "touch Two")
    assert [each["number"] for each in held.ok("add", "--proposed")["proposals"]] == [2]
    assert project.grep("WARN", "[task-002]", "accepted", "proposed-1")
    held.ok("finish")
    assert held.ok("claim")["task"]["id"] == "task-002"


def test_a_dismissed_one_is_gone(project: Project, held: Agent) -> None:
    _propose(held, "Two")
    held.ok("add", "--proposed", "1", "--dismiss")
    assert "proposals" not in project.state
    assert "proposed by agents" not in held("status").out
    held.fails(2, "add", "--proposed", "1")


def test_no_agent_decides_it(project: Project, held: Agent) -> None:
    _propose(held, "Two")
    before = project.file.read_bytes()
    for env in (SUPERVISED, {"CLAUDECODE": "1"}):
        for more in ([], ["--dismiss"]):
            error = held.fails(8, "add", "--proposed", "1", *more, **env)["error"]
            assert "harness add --proposed 1" in error["hint"]
    assert project.file.read_bytes() == before


def test_the_same_twice_is_one(project: Project, held: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(add_tasks, "MOST_PROPOSALS", 2)
    for title in ("Two", "Two", "Three"):
        _propose(held, title)
    assert len(project.state["proposals"]) == 2
    held.fails(2, "add", "Four", **SUPERVISED)
    held.fails(2, "add", " ", **SUPERVISED)


def test_an_agent_that_may_not_write_the_list_proposes_by_letter(make_project: Make) -> None:
    shared = make_project(mode="concurrent")
    shared.agent("person").ok("add", "One", "--validate", "true")
    place = shared.top.parent / "tree"
    shared.git("worktree", "add", "-q", "-b", "tree", str(place))
    worker = shared.agent("worker", place)
    worker.ok("claim", "task-001")

    with forbidden(shared):
        worker.ok("add", "Two", "--validate", "true", "--protect", "a", "--red-first", **SUPERVISED)
    assert "proposals" not in shared.state
    ctx = Context(env={**os.environ, "HARNESS_WORKER_ID": worker.name}, cwd=worker.cwd)
    assert dialogue.open_all(ctx) == []

    proposal = shared.state["proposals"][0]
    assert (proposal["title"], proposal["validation"]["protect"]) == ("Two", ["a"])
    assert proposal["validation"]["red_first"] is True

"""An agent of a run works: what it is told, what it may type, and the letters that it leaves."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from harness_lib.attempts import inbox
from harness_lib.core import proposals, quoting, rights
from harness_lib.core.context import Context
from harness_lib.errors import NotAllowedError
from tests.attempts.forbidden_list import forbidden
from tests.conftest import CHECKOUT
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin

READ = {"status", "show", "log", "report", "graph", "check", "doctor", "budget"}
SUPERVISED = {"HARNESS_SUPERVISED": "task-001"}
REFUSED = [
    ["start"],
    ["claim"],
    ["finish"],
    ["fail", "task-001", "--message", "no"],
    ["release"],
    ["stop"],
    ["recover"],
    ["retry", "task-001"],
    ["accept", "task-001"],
    ["return", "task-001", "no"],
    ["remove", "task-001"],
    ["run"],
    ["run", "--agent-command", "true"],
    ["edit", "task-002", "--validate", "false"],
    ["edit", "--max-sessions", "1"],
    ["import", "tasks.md"],
    ["export", "--tick", "tasks.md"],
    ["pause"],
    ["init"],
    ["trust", "--yes"],
    ["hooks", "install"],
    ["check", "--repair"],
]


@pytest.fixture
def held(agent: Agent) -> Agent:
    """Return an agent that holds the first of two tasks."""
    for title in ("One", "Two"):
        agent.ok("add", title, "--validate", "true")
    agent.ok("claim")
    return agent


def test_what_ends_a_task_is_refused_and_changes_nothing(project: Project, held: Agent) -> None:
    before = project.file.read_bytes()
    for argv in REFUSED:
        error = held.fails(2, *argv, **SUPERVISED)["error"]
        assert (error["kind"], "End your turn" in error["hint"]) == ("USAGE", True), argv
        assert project.file.read_bytes() == before, argv


def test_what_helps_the_work_is_not(held: Agent) -> None:
    held.ok("show", "task-001", **SUPERVISED)
    held.ok("validate", "task-001", **SUPERVISED)
    for words in ("checkpoint task-001 1/2 half", "note task-001 trap"):
        assert held.ok(*words.split(), **SUPERVISED)["next"] is None
    held.ok("add", "A task that this one found", "--validate", "true", **SUPERVISED)


def test_what_is_not_for_it_is_never_named_as_the_next_command(agent: Agent) -> None:
    """Also where the list has a task that is free: to take it is the supervisor's."""
    for title in ("One", "Two"):
        agent.ok("add", title, "--validate", "true")
    for verb in ("status", "show task-002", "show task-002", "graph", "log", "rescue list"):
        command = agent.ok(*verb.split(), **SUPERVISED)["next"]
        assert command is None or command.split()[1] in rights.FOR_SUPERVISED, verb
        if command is not None:
            agent.ok(*command.split()[1:], **SUPERVISED)


def test_of_a_lost_list_the_repair_is_not_named_either(project: Project, held: Agent) -> None:
    project.file.unlink()
    assert held("check", "--json").json["next"] == "harness check --repair"
    assert held("check", "--json", **SUPERVISED).json["next"] is None


def test_earlier_work_may_be_brought_in_and_not_taken_away(project: Project, agent: Agent) -> None:
    begin(agent, "false")
    agent.finishes({"made": "x\n"}, code=1)
    agent.ok("claim")

    agent.fails(8, "rescue", "drop", "task-001/1", **SUPERVISED)
    agent.ok("rescue", "apply", "task-001/1", **SUPERVISED)

    assert project.read("made") == "x\n"


def test_the_page_names_what_an_agent_of_a_run_may_type() -> None:
    page = (CHECKOUT / "docs/unattended.md").read_text(encoding="utf-8")
    sentence = page.split("It may type ")[1].split(" and the verbs that only read")[0]
    named = {word.split()[0] for word in re.findall(r"`(.*?)`", sentence)}

    assert named == rights.FOR_SUPERVISED - READ - {"add", "beat"}


# -- an agent whose sandbox forbids the list leaves a letter in its work tree, and its worker opens it


@pytest.fixture
def shared(make_project: Make) -> Project:
    project = make_project(mode="concurrent")
    person = project.agent("person")
    for title in ("One", "Two"):
        person.ok("add", title, "--validate", "true")
    return project


@pytest.fixture
def worker(shared: Project) -> Agent:
    """Return a worker that holds the first task, in a work tree of its own."""
    place = shared.top.parent / "tree"
    shared.git("worktree", "add", "-q", "-b", "tree", str(place))
    made = shared.agent("worker", place)
    made.ok("claim", "task-001")
    return made


def opened(worker: Agent) -> list[str]:
    """Let the worker open its letters; return what was wrong with some."""
    ctx = Context(env={**os.environ, "HARNESS_WORKER_ID": worker.name}, cwd=worker.cwd)
    return inbox.open_all(ctx)


def left(worker: Agent) -> list[Path]:
    return sorted((worker.cwd / ".harness" / proposals.NAME).glob("*"))


@pytest.mark.parametrize("name", [".harness", f".harness/{proposals.NAME}"])
def test_no_letter_goes_where_a_link_of_a_commit_leads(shared: Project, worker: Agent, name: str) -> None:
    outside = shared.top.parent / "outside"
    outside.mkdir()
    (worker.cwd / name).parent.mkdir(exist_ok=True)
    (worker.cwd / name).symlink_to(outside)

    with forbidden(shared):
        worker.fails(7, "note", "task-001", "hello", **SUPERVISED)

    assert list(outside.iterdir()) == []


def test_notes_and_checkpoints_arrive_in_their_order(shared: Project, worker: Agent) -> None:
    (worker.cwd / "half").write_text("half\n", encoding="utf-8")
    with forbidden(shared):
        said = worker.ok("note", "task-001", "a trap", **SUPERVISED)
        worker.ok("checkpoint", "task-001", "1/2", "half", **SUPERVISED)
        worker.ok("note", "task-002", "for the other one", **SUPERVISED)
        assert opened(worker) == []
        assert len(left(worker)) == 3, "what cannot be recorded now stays"
    assert shared.git("-C", str(worker.cwd), "status", "--porcelain", "--untracked-files=all") == "?? half"
    assert "left for the run" in said["message"]
    assert "notes" not in shared.task()

    assert opened(worker) == []

    assert shared.task()["notes"] == ["a trap"]
    assert shared.task("task-002")["notes"] == ["for the other one"]
    (checkpoint,) = shared.task()["checkpoints"]
    assert (checkpoint["step"], checkpoint["description"]) == (1, "half")
    assert shared.git("show", f"{checkpoint['tree']}:half") == "half"
    assert left(worker) == []


def test_a_list_that_the_user_has_half_saved_is_waited_for(shared: Project, worker: Agent) -> None:
    with forbidden(shared):
        worker.ok("note", "task-001", "a trap", **SUPERVISED)
    whole = shared.file.read_bytes()
    shared.file.write_text('{"version": 2, "tasks": 7}', encoding="utf-8")

    assert opened(worker) == []

    shared.file.write_bytes(whole)
    assert opened(worker) == []
    assert shared.task()["notes"] == ["a trap"]


def test_recovery_opens_what_a_dead_worker_did_not(shared: Project, worker: Agent) -> None:
    with forbidden(shared):
        worker.ok("checkpoint", "task-001", "1/2", "half", **SUPERVISED)
    worker.die()
    worker.wake()

    worker.ok("start")

    assert [each["description"] for each in shared.task()["checkpoints"]] == ["half"]
    assert left(worker) == []


def test_a_mistake_is_told_at_once_and_without_a_run_every_error(shared: Project, worker: Agent) -> None:
    with forbidden(shared):
        worker.fails(2, "note", "task-009", "no such task", **SUPERVISED)
        worker.fails(2, "checkpoint", "task-001", "2/1", "no step", **SUPERVISED)
        error = worker.fails(7, "note", "task-001", "a trap")["error"]
    assert "cannot be written" in error["message"]
    assert left(worker) == []


NO_LETTERS = {
    "{": "cannot be read",
    "[]": "cannot be read",
    '{"verb": "finish", "task": "task-001", "words": []}': "cannot be read",
    '{"verb": "note", "task": "task-001", "words": []}': "takes 1 words",
    '{"verb": "note", "task": "task-009", "words": ["x"]}': "no task 'task-009'",
    '{"verb": "checkpoint", "task": "task-002", "words": ["1/2", "x"]}': "you hold task-001",
}


def test_what_is_no_letter_is_told_and_changes_nothing(shared: Project, worker: Agent) -> None:
    place = worker.cwd / ".harness" / proposals.NAME
    place.mkdir(parents=True)
    before = shared.file.read_bytes()
    for number, letter in enumerate(NO_LETTERS, 1):
        (place / f"{number}.json").write_text(letter, encoding="utf-8")

    problems = opened(worker)

    assert [words in problem for words, problem in zip(NO_LETTERS.values(), problems, strict=True)] == [
        True
    ] * len(NO_LETTERS)
    assert shared.file.read_bytes() == before
    assert left(worker) == []


def test_a_link_is_not_followed(shared: Project, worker: Agent, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    letter = {"verb": "note", "task": "task-001", "words": ["x"]}
    (elsewhere / "package.json").write_text(json.dumps(letter), encoding="utf-8")
    (worker.cwd / ".harness").mkdir()
    (worker.cwd / ".harness" / proposals.NAME).symlink_to(elsewhere)

    assert opened(worker) == []

    assert (elsewhere / "package.json").exists()
    assert "notes" not in shared.task()


def test_what_the_database_does_not_let_a_worker_do_holds_up_no_other_letter(
    shared: Project, worker: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forbidden(shared):
        worker.ok("add", "New", "--validate", "new", **SUPERVISED)
        worker.ok("note", "task-001", "a trap", **SUPERVISED)

    def refuse(*_: object) -> None:
        raise NotAllowedError("It does not let this user do that.")

    monkeypatch.setitem(inbox.VERBS, "add", (refuse, 1))

    (problem,) = opened(worker)

    assert problem.startswith(
        "What the agent left was not recorded (harness add): It does not let this user do that."
    )
    assert shared.task()["notes"] == ["a trap"]
    assert left(worker) == []


PYTEST = """\
cat <<'END'
=================================== FAILURES ===================================
____________________________ test_total_adds_tax _____________________________

>       assert total([10, 20]) == 33, "tax is missing"
E       AssertionError: tax is missing
E       assert 30 == 33

test_cart.py:11: AssertionError
=========================== short test summary info ============================
FAILED test_cart.py::test_total_adds_tax - AssertionError: tax is missing
!!!!!!!!!!!!!!!!!!!!!!!!!! stopping after 1 failures !!!!!!!!!!!!!!!!!!!!!!!!!!!
1 failed, 1 passed in 2.25s
END
exit 1"""


def claim(agent: Agent) -> list[str]:
    brief = agent.ok("claim")["brief"]
    assert isinstance(brief, str)
    return brief.splitlines()


def test_the_next_attempt_reads_what_failed_and_where_all_of_it_is(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", PYTEST)
    message = agent.works(code=1)["message"]

    brief = claim(agent)

    said = brief[brief.index("what the check said:") :]
    assert said[1] == "  | test_cart.py::test_total_adds_tax"
    assert "  | E       AssertionError: tax is missing" in said
    assert f"all that it said: {project.top}/.harness/logs/task-001/1.log" in said
    assert "\n".join(said[:3]) in message
    why = "test_cart.py::test_total_adds_tax: AssertionError: tax is missing"
    red = "Every test that fails was red before this attempt: test_cart.py::test_total_adds_tax."
    assert project.task()["error_log"] == [f"[TEST_FAIL] The check failed with exit code 1. {red} {why}"]
    assert len(project.grep("ERROR", "[task-001]", "tax is missing")) == 1


def test_what_an_earlier_check_said_is_not_shown_of_an_attempt_that_was_given_up(
    project: Project, agent: Agent
) -> None:
    agent.ok("add", "One", "--validate", "echo the reason; false")
    agent.works(code=1)
    agent.ok("claim")
    agent("fail", "--message", "no such call", "task-001")
    assert project.task()["attempts"] == 2

    assert not [line for line in claim(agent) if "| the reason" in line]


def test_a_description_is_quoted_line_by_line_and_whole(agent: Agent) -> None:
    rows = [
        "Build it:",
        "",
        "    def total(items):",
        "\t\treturn 0  # a \x1b[31mtab",
        *("x" * 100 for _ in range(150)),
    ]
    agent.ok("add", "One", "--description", "\n".join(rows), "--validate", "false")

    brief = claim(agent)

    at = brief.index("description:")
    assert brief[at + 1 : at + 4] == ["  | Build it:", "  |", "  |     def total(items):"]
    assert brief[at + 4] == "  |         return 0  # a \ufffd[31mtab"
    assert brief[at + 5 : at + 155] == ["  | " + "x" * 100] * 150
    assert brief[at + 155] == "check (max 300 s): false"


def test_of_what_nobody_can_hold_the_brief_says_where_the_rest_is() -> None:
    assert quoting.quoted("y" * 25_000, "harness show task-001") == [
        "  | " + "y" * quoting.QUOTED_LENGTH,
        "  … 5,000 more characters: harness show task-001",
    ]


def test_the_check_its_time_and_its_directory_are_told_apart(project: Project, agent: Agent) -> None:
    project.put("sub/dir/file")
    agent.ok("add", "One", "--validate", "make test", "--cwd", "sub/dir", "--timeout", "90")
    agent.ok("add", "Two", "--validate", "set -e\nmake a\nmake b\n")
    first = claim(agent)
    agent.ok("release")
    agent.ok("edit", "task-001", "--priority", "P2")

    second = claim(agent)

    at = first.index("check (max 90 s): make test")
    assert first[at + 1] == "the check runs in: sub/dir"
    at = second.index("check (max 300 s):")
    assert second[at + 1 : at + 4] == ["  | set -e", "  | make a", "  | make b"]

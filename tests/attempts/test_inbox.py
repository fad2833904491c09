"""An agent whose sandbox forbids the list leaves a letter in its work tree, and its worker opens it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness_lib.attempts import dialogue
from harness_lib.core.context import Context
from harness_lib.errors import NotAllowedError
from tests.attempts.forbidden_list import forbidden
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project

SUPERVISED = {"HARNESS_SUPERVISED": "task-001"}


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
    return dialogue.open_all(ctx)


def left(worker: Agent) -> list[Path]:
    return sorted((worker.cwd / ".harness" / dialogue.MAIL).glob("*"))


@pytest.mark.parametrize("name", [".harness", f".harness/{dialogue.MAIL}"])
def test_no_letter_goes_where_a_link_of_a_commit_leads(shared: Project, worker: Agent, name: str) -> None:
    outside = shared.top.parent / "outside"
    outside.mkdir()
    (worker.cwd / name).parent.mkdir(exist_ok=True)
    (worker.cwd / name).symlink_to(outside)

    with forbidden(shared):
        worker.fails(7, "note", "task-001", "hello", **SUPERVISED)

    assert list(outside.iterdir()) == []


def test_notes_and_checkpoints_arrive_in_their_order(shared: Project, worker: Agent) -> None:
    (worker.cwd / "half").write_text("half\n")
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
    shared.file.write_text('{"version": 2, "tasks": 7}')

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


DEEP = "[" * 5000
NO_LETTERS = {
    "{": "cannot be read",
    DEEP: "cannot be read",
    json.dumps({"verb": "add", "task": "task-001", "words": [DEEP]}): "Invalid proposal",
    "[]": "cannot be read",
    '{"verb": "finish", "task": "task-001", "words": []}': "cannot be read",
    '{"verb": "note", "task": "task-001", "words": []}': "takes 1 words",
    '{"verb": "note", "task": "task-009", "words": ["x"]}': "no task 'task-009'",
    '{"verb": "checkpoint", "task": "task-002", "words": ["1/2", "x"]}': "you hold task-001",
}


def test_what_is_no_letter_is_told_and_changes_nothing(shared: Project, worker: Agent) -> None:
    place = worker.cwd / ".harness" / dialogue.MAIL
    place.mkdir(parents=True)
    before = shared.file.read_bytes()
    for number, letter in enumerate(NO_LETTERS, 1):
        (place / f"{number}.json").write_text(letter)

    problems = opened(worker)

    for words, problem in zip(NO_LETTERS.values(), problems, strict=True):
        assert words in problem
    assert shared.file.read_bytes() == before
    assert left(worker) == []


def test_a_link_is_not_followed(shared: Project, worker: Agent, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    letter = {"verb": "note", "task": "task-001", "words": ["x"]}
    (elsewhere / "package.json").write_text(json.dumps(letter))
    (worker.cwd / ".harness").mkdir()
    (worker.cwd / ".harness" / dialogue.MAIL).symlink_to(elsewhere)

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

    monkeypatch.setitem(dialogue.VERBS, "add", (refuse, 1))

    (problem,) = opened(worker)

    assert problem.startswith(
        "What the agent left was not recorded (harness add): It does not let this user do that."
    )
    assert shared.task()["notes"] == ["a trap"]
    assert left(worker) == []

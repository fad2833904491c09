"""`harness trust`: what came with a clone runs once the user, and no agent, has said so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_lib.core.context import Context
from harness_lib.errors import HeldError
from harness_lib.verbs import trust
from tests.system.git.gitrepo import sh
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project

YES = ("trust", "--yes")


@pytest.fixture
def clone(make_project: Make, tmp_path: Path) -> Iterator[Project]:
    """Yield a clone of a project whose list is tracked, and whose check would leave a trace."""
    origin = make_project("origin")
    person = origin.agent("author")
    person.ok("add", "First", "--validate", "touch ran", "--cleanup", "touch cleaned")
    origin.git("add", "--force", "harness-tasks.json")
    origin.commit("Share the list")
    sh(tmp_path, "clone", "-q", str(origin.top), "clone")
    clone = Project(tmp_path / "clone")
    yield clone
    clone.close()


@pytest.fixture
def visitor(clone: Project) -> Agent:
    return clone.agent("visitor")


def refused(agent: Agent) -> str:
    """Return why the check of the task is not run."""
    return str(agent.fails(8, "validate", "task-001")["error"]["message"])


def test_a_list_that_came_with_a_clone_runs_nothing_untrusted(clone: Project, visitor: Agent) -> None:
    assert f"The commands in {clone.file} have not been trusted" in refused(visitor)
    assert "harness-init.sh" not in refused(visitor)
    said = visitor.fails(8, "trust")
    assert said["trusted"] is False
    assert said["next"] is None
    assert "touch ran" in said["message"]
    assert "touch cleaned" in said["message"]
    assert [visitor.ok(verb)["next"] for verb in ("status", "show")] == ["harness check"] * 2
    assert visitor.ok("check")["next"] == "harness trust"
    assert refused(visitor)
    assert not (clone.top / "ran").exists()
    assert visitor.ok(*YES, HARNESS_TRUST="1")["next"] == "harness start"
    visitor.ok("validate", "task-001")
    visitor.ok("add", "Second")
    assert clone.git("status", "--short", "--", "harness*") == "M harness-tasks.json"
    assert (clone.top / "ran").exists()
    assert "already" in visitor.ok("trust")["message"]


def test_nobody_is_asked_about_a_list_that_runs_nothing(clone: Project, visitor: Agent) -> None:
    clone.edit(tasks=[])
    said = visitor.ok("trust")
    assert (said["message"], said["trusted"]) == ("This list runs nothing yet.", False)


def test_who_takes_a_task_is_told_at_once_that_it_cannot_be_finished_yet(visitor: Agent) -> None:
    """And is sent to what works there, not to the command that would be refused."""
    opened = visitor.ok("start")
    taken = visitor.ok("claim")

    for reply in (opened, taken):
        assert any("harness finish will be refused" in each for each in reply["warnings"]), reply["warnings"]
    for reply in (taken, visitor.ok("start"), visitor.ok("checkpoint", taken["task"]["id"], "1/2", "half")):
        assert reply["next"] == "harness check"
    visitor.ok("check")
    for words in (("start",), ("add", "Another", "--validate", "test -f x")):
        inside = visitor.ok(*words, CLAUDECODE="1")
        assert any("Ask the user" in each for each in inside["warnings"]), inside["warnings"]
    visitor.ok(*YES, HARNESS_TRUST="1")
    assert visitor.ok("start")["next"] == "harness finish"
    assert not visitor.ok("start")["warnings"]


@pytest.mark.parametrize("brought", ["harness-tasks.json.bak", ".harness/generations/9999999999.json"])
def test_what_a_pull_brought_to_restore_is_not_trusted(project: Project, one: Agent, brought: str) -> None:
    """The list is theirs, and trusted; what a clone brings takes its place only once it is lost."""
    one.ok("validate", "task-001")
    tasks = [{"id": "task-001", "status": "pending", "validation": {"command": "touch ran"}}]
    (project.top / brought).unlink(missing_ok=True)
    project.put(brought, json.dumps({"version": 2, "tasks": tasks}))
    project.git("add", "--force", brought)
    project.commit_only("Pulled from somebody")
    for lost in project.generations:
        if str(lost.relative_to(project.top)) != brought:
            lost.unlink()
    project.file.write_text("{")

    assert "harness trust" in one.fails(8, "validate", "task-001")["error"]["hint"]

    one.works(code=8)
    assert not (project.top / "ran").exists()


def test_yes_needs_a_terminal_or_a_variable_that_the_user_sets(clone: Project, visitor: Agent) -> None:
    """An agent that nobody knows types what it is shown."""
    said = visitor.fails(8, *YES)["error"]
    assert "at a terminal" in said["message"]
    assert "--yes" not in str(said)
    assert "HARNESS_TRUST" not in str(said)
    visitor.fails(8, *YES, HARNESS_TRUST="0")
    assert refused(visitor)
    assert not (clone.top / "ran").exists()


def test_an_agent_cannot_say_yes(clone: Project) -> None:
    """Nor is it sent to say it: the user is."""
    agent = clone.agent("agent", CLAUDECODE="1")
    assert "user" in agent.fails(8, *YES, HARNESS_TRUST="1")["error"]["hint"]
    assert agent.fails(8, "trust")["next"] is None
    assert agent.ok("check")["next"] is None
    assert agent.fails(8, "validate", "task-001")["error"]["hint"] == (
        "Ask the user to look at them and, if they are theirs, to type in a terminal: harness trust"
    )


def test_adding_to_a_list_that_came_with_a_clone_does_not_trust_it(clone: Project, visitor: Agent) -> None:
    visitor.ok("retry", "task-001")
    assert clone.git("status", "--short") == ""
    said = visitor.ok("add", "Mine", "--validate", "true")
    assert clone.git("status", "--short") == "M harness-tasks.json"
    assert "trust" in " ".join(said["warnings"])
    visitor.ok("edit", "task-002", "--title", "Still mine")
    visitor.fails(8, "validate", "task-002")


def test_adding_to_an_empty_list_trusts_no_init_script_with_it(make_project: Make, tmp_path: Path) -> None:
    origin = make_project("origin")
    origin.put("harness-init.sh", "touch ran\n")
    origin.git("add", "--force", "harness-tasks.json", "harness-init.sh")
    origin.commit("Share the list")
    sh(tmp_path, "clone", "-q", str(origin.top), "clone")
    clone = Project(tmp_path / "clone")
    visitor = clone.agent("visitor")
    visitor.ok("add", "Mine", "--validate", "true")
    visitor.fails(8, "start")
    assert not (clone.top / "ran").exists()
    clone.close()


@pytest.mark.usefixtures("one")
def test_a_list_in_another_place_is_asked_about_again(project: Project) -> None:
    """Renamed by its person or unpacked from somebody's archive, `.git` and all: nobody can tell."""
    moved = Project(project.top.rename(project.top.with_name("renamed")))
    person = moved.agent("person")

    for said in (person.ok("claim")["warnings"][-1], person.fails(8, "finish")["error"]["message"]):
        assert said.startswith(f"This project has moved from {project.top} to {moved.top}: ")
    person.ok(*YES, HARNESS_TRUST="1")
    person.ok("finish")

    # Here it was trusted since: that is not why nothing runs after a pull.
    person.ok("add", "Second", "--validate", "echo mine")
    moved.git("add", "--force", "harness-tasks.json")
    moved.put("harness-tasks.json", moved.read("harness-tasks.json").replace("echo mine", "touch ran"))
    said = person.fails(8, "validate", "task-002")["error"]["message"]
    assert said.startswith(f"What {moved.top}/harness-tasks.json and harness-init.sh run has changed"), said
    moved.close()


def test_the_user_at_a_terminal_is_asked_and_no_means_no(clone: Project) -> None:
    ctx = Context(env={}, cwd=clone.top)
    asked: list[str] = []

    def answer(question: str) -> bool:
        asked.append(question)
        return len(asked) > 1

    refused, taken = (trust.run(ctx, ask=answer) for _ in range(2))
    assert (refused.exit, taken.exit) == (8, 0)
    assert "touch ran" in asked[0]
    # Who has just read the commands is not shown them once more.
    assert "touch ran" not in refused.message + taken.message
    assert trust.run(ctx, ask=answer).exit == 0
    assert len(asked) == 2


def test_what_changed_while_the_user_read_is_not_trusted(clone: Project) -> None:
    def answer(_question: str) -> bool:
        clone.edit_task(validation={"command": "touch other"})
        return True

    with pytest.raises(HeldError):
        trust.run(Context(env={}, cwd=clone.top), ask=answer)
    assert trust.run(Context(env={}, cwd=clone.top)).exit == 8


def test_a_long_list_is_shown_in_part_and_says_how_to_see_the_rest(clone: Project, visitor: Agent) -> None:
    task = clone.task()
    long = "echo " + "x" * 3000
    tasks = [{**task, "id": f"t{n}", "validation": {"command": f"check {n}"}} for n in range(50)]
    tasks += [{**task, "id": f"s{n}", "validation": {"command": long}} for n in range(50)]
    clone.edit(tasks=tasks)
    said = visitor.fails(8, "trust")
    assert said["count"] == 52
    assert "32 more: harness trust --all" in said["message"]
    whole = visitor.fails(8, "trust", "--all")
    assert long in whole["message"]
    assert json.dumps(whole).count("check 49") == 2


# -- what was never trusted, or has changed since, is named; tests/state has the notes that it is told by


def test_the_init_script_is_asked_about_where_it_alone_is_new(clone: Project, visitor: Agent) -> None:
    script = clone.put("harness-init.sh", "true\n")
    assert f"The commands in {clone.file} and the script {script} have not been trusted" in refused(visitor)
    script.unlink()
    visitor.ok(*YES, HARNESS_TRUST="1")
    changed = f"What {clone.file} and {script.name} run has changed since this list was trusted"
    for text in ("true\n", "false\n"):
        script.write_text(text)
        assert refused(visitor).startswith(changed)
        visitor.ok(*YES, HARNESS_TRUST="1")
        visitor.ok("validate", "task-001")
    script.unlink()
    assert refused(visitor).startswith(changed)

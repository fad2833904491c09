"""`harness edit`: what the user may correct, and what an agent may not, also while a check runs."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_lib.verbs import edit
from tests.system.git.gitrepo import put
from tests.verbs.project import FIELDS, TYPED, Agent, Project, begin, own_work_tree


@pytest.fixture
def person(project: Project) -> Agent:
    """Return the user with a list of two tasks, the second of which waits for the first."""
    made = project.agent("person")
    made.ok("add", "First", "--validate", "true")
    made.ok("add", "Second", "--depends-on", "task-001")
    return made


def test_each_field_can_be_changed_and_the_log_says_how_it_was(project: Project, person: Agent) -> None:
    said = person.ok("edit", "task-002", "--title", "Later", *TYPED)
    task = project.task("task-002")
    assert said["task"] == task
    assert {name: task[name] for name in FIELDS} == FIELDS
    assert project.grep("WARN [task-002] edited by hand:", 'title "Second" -> "Later"')

    empty = (word for name in ("description", "cwd", "protect", "cleanup") for word in (f"--{name}", ""))
    person.ok("edit", "task-002", *empty, "--depends-on", "", "--validate", "", "--no-red-first")
    task = project.task("task-002")
    assert "description" not in task
    assert task["depends_on"] == []
    assert task["validation"] == {"command": None, "timeout_seconds": 7}
    assert task["on_failure"] == {"cleanup": None}


def test_nothing_changed_is_said_and_nothing_is_written(project: Project, person: Agent) -> None:
    before = project.file.read_bytes(), project.log
    assert "nothing was changed" in person.ok("edit", "task-001", "--title", "First")["message"]
    assert (project.file.read_bytes(), project.log) == before


def test_changes_of_others_are_kept(project: Project, person: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    is_known = edit._has_seen

    def meanwhile(*asked: Any) -> bool:
        monkeypatch.setattr(edit, "_has_seen", is_known)
        project.agent("other").ok("edit", "task-001", "--title", "Else")
        return is_known(*asked)

    monkeypatch.setattr(edit, "_has_seen", meanwhile)
    person.ok("edit", "task-001", "--priority", "P0")

    assert (project.task("task-001")["title"], project.task("task-001")["priority"]) == ("Else", "P0")


WRONG = (
    "edit",
    "edit task-001",
    "edit --title x",
    "edit task-001 --mode concurrent",
    "edit task-404 --title x",
    "edit task-001 --cwd ..",
    "edit task-001 --timeout 0",
    "edit task-001 --max-attempts 0",
    f"edit task-001 --title {'x' * 1001}",
    "edit task-001 --depends-on task-404",
    "edit task-001 --depends-on task-002",
    "edit --max-sessions -1",
)


def test_a_wrong_command_changes_nothing_and_says_what_to_type(project: Project, person: Agent) -> None:
    before = project.file.read_bytes()
    for words in WRONG:
        assert person.fails(2, *words.split())["error"]["hint"], words
    person.fails(2, "edit", "task-001", "--title", " ")
    assert project.file.read_bytes() == before


def test_a_completed_task_is_not_edited_and_the_hint_says_retry(agent: Agent) -> None:
    begin(agent, "true")
    agent.ok("finish")
    said = agent.fails(8, "edit", "task-001", "--title", "Other")
    assert "harness retry task-001" in said["error"]["hint"]


def test_no_agent_changes_the_check_of_a_task_that_is_worked_on(project: Project, agent: Agent) -> None:
    begin(agent, "false")
    before = project.file.read_bytes()
    for option in ("--validate true", "--timeout 9", "--cwd sub", "--protect x", "--red-first"):
        assert agent.fails(8, "edit", "task-001", *option.split())["error"]["kind"] == "REFUSED"
    helper = project.agent("other", CLAUDECODE="1")
    assert "claude" in helper.fails(8, "edit", "task-001", "--validate", "true")["message"]
    assert project.file.read_bytes() == before
    agent.ok("edit", "task-001", "--description", "what I have found out")


def test_a_new_command_does_not_bless_changed_protected_files(project: Project, agent: Agent) -> None:
    project.commit(files={"exam.txt": "hard\n"})
    begin(agent, "false", "--protect", "exam.txt")
    project.put("exam.txt", "easy\n")
    project.agent("person").ok("edit", "task-001", "--validate", "true")
    assert "exam.txt" in agent.fails(1, "finish")["message"]


def test_what_is_protected_meanwhile_counts_as_it_stands_where_the_attempt_works(project: Project) -> None:
    worker = own_work_tree(project, "beside")
    project.configure(concurrency_mode="concurrent")
    begin(worker)
    put(worker.cwd / "tracked.txt", "changed\n")

    project.agent("person").ok("edit", "task-001", "--protect", "tracked.txt")

    worker.finishes({"done": "x\n"})


def test_editing_lifts_the_halt_of_a_session_without_a_check(project: Project, agent: Agent) -> None:
    """That of the task which it stands still for, and of no other one."""
    agent.ok("add", "First")
    agent.ok("add", "Second", "--validate", "true")
    agent.works(code=3)
    project.agent("person").ok("edit", "task-002", "--validate", "false")
    assert project.state["sessions"][0]["halt"].startswith("CONFIG")
    assert project.state["sessions"][0]["halt_task"] == "task-001"
    project.agent("person").ok("edit", "task-001", "--validate", "true")
    assert not project.state["sessions"][0].get("halt")
    agent.ok("finish")


def test_a_trusted_list_stays_trusted_with_its_new_command(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "false")
    project.git("add", "--force", "harness-tasks.json")
    project.commit("Track the list")
    agent.ok("edit", "task-001", "--validate", "true")
    project.commit("Track the new list")
    agent.ok("validate", "task-001")


def test_editing_leaves_a_paused_list_so_unless_it_had_no_work(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "false", "--max-attempts", "1")
    agent.ok("pause")
    agent.ok("edit", "task-001", "--title", "Still")
    assert not project.enable_flag
    agent.works(code=1)
    assert not project.enable_flag
    agent.ok("edit", "task-001", "--max-attempts", "2")
    assert project.enable_flag


def test_the_limits_of_the_list_change_and_let_a_spent_session_go_on(project: Project, agent: Agent) -> None:
    for title in ("First", "Second"):
        agent.ok("add", title, "--validate", "true")
    agent.ok("edit", "--max-tasks-per-session", "1", "--max-sessions", "7")
    agent.works()
    agent.fails(9, "claim")
    agent.ok("edit", "--max-tasks-per-session", "0")
    assert not project.state["sessions"][0].get("halt"), "and the Stop hook holds its agent again"
    assert project.state["session_config"]["max_sessions"] == 7
    agent.ok("claim")


def test_who_is_left_with_the_final_check_is_let_go_without_it(project: Project, one: Agent) -> None:
    one.works()
    assert project.state["sessions"][0]["final_check"]

    one.ok("edit", "--no-final-check")

    assert not project.state["sessions"][0].get("final_check")


def test_the_mode_changes_only_while_nobody_works(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    assert "harness stop --session 1" in agent.fails(5, "edit", "--mode", "concurrent")["error"]["hint"]
    agent.ok("stop")
    assert agent.fails(8, "edit", "--mode", "concurrent")["error"]["kind"] == "REFUSED"
    agent.works()
    agent.final_check()
    agent.ok("edit", "--mode", "concurrent")
    assert project.state["session_config"]["concurrency_mode"] == "concurrent"


def test_finished_work_that_waits_for_an_answer_waits_on(project: Project, person: Agent) -> None:
    """Without its halt the next agent, or a run without --review, would take it as work to be done."""
    for kind, changes in (("REVIEW", "--validate"), ("SECRET", "--title"), ("JUDGES", "--title")):
        project.edit_task(halt=f"{kind}: look", halt_kind=kind)

        said = person.ok("edit", "task-001", changes, f"echo {kind}")

        assert project.task()["halt_kind"] == kind
        assert "it still waits for you: harness show task-001" in said["message"]
    # Work that changed what judges it is judged anew by another check.
    assert "can go on" in person.ok("edit", "task-001", "--protect", "none")["message"]
    assert "halt" not in project.task()


# -- while a check runs: of an edited check the new one decides


def typed(*changes: str) -> str:
    """Return the command by which the user, in another terminal, edits the task."""
    known = (f"{name}={os.environ[name]}" for name in ("HOME", "PATH", "PYTHONPATH", "GIT_CONFIG_GLOBAL"))
    words = ("env", "-i", *known, sys.executable, "-m", "harness_lib", "edit", "task-001", *changes)
    return f"{shlex.join(words)} >&2"


def editing(place: Path, check: str, *changes: str) -> str:
    """Return a check that runs `check`, and lets the user edit the task meanwhile, but only once."""
    script, done = shlex.quote(str(place)), shlex.quote(f"{place}.done")
    once = f"[ -e {done} ] || {{ : >{done}; {typed(*changes)}; }}"
    put(place, f"#!/bin/sh\n{once}\n{check}\n", executable=True)
    return script


@pytest.mark.parametrize(
    ("made", "code", "comes_to"), [("one", 1, ("failed", 1)), ("two", 0, ("completed", 0))]
)
def test_one_that_passes_completes_nothing_and_one_that_fails_costs_no_attempt(
    project: Project, agent: Agent, tmp_path: Path, made: str, code: int, comes_to: tuple[str, int]
) -> None:
    begin(agent, editing(tmp_path / "check", "test -f one", "--validate", "test -f two"))

    agent.finishes({made: "x\n"}, code=code)

    task = project.task()
    assert task["validation"]["command"] == "test -f two"
    assert (task["status"], task["attempts"]) == comes_to


def test_a_check_runs_once_if_another_field_is_edited(project: Project, agent: Agent, tmp_path: Path) -> None:
    begin(agent, editing(tmp_path / "check", f"echo ran >>{tmp_path}/ran", "--title", "Two"))

    agent.finishes({"one": "x\n"})

    assert project.task()["title"] == "Two"
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_one_that_was_edited_in_the_second_check_runs_again(project: Project, agent: Agent) -> None:
    script = f"cd {shlex.quote(str(project.top))} && {typed('--validate', 'test -f two')}\n"
    project.commit(files={"check.sh": script})
    begin(agent, "sh check.sh")

    agent.finishes({"check.sh": "test -f one\n", "one": "x\n"}, code=1)

    assert project.task()["error_log"] == ["[TEST_FAIL] The check failed with exit code 1."]
    assert project.task()["validation"]["command"] == "test -f two"


@pytest.mark.usefixtures("holder")
def test_once_it_has_passed_it_is_too_late_to_edit_it(project: Project) -> None:
    oid = project.head
    project.edit_task(intent={"action": "commit", "at": "2026-11-29T09:00:00Z", "base": oid, "commit": oid})

    said = project.agent("person").fails(8, "edit", "task-001", "--validate", "true")

    assert "is being committed or merged" in said["error"]["message"]


@pytest.mark.usefixtures("holder")
def test_an_edit_after_a_killed_rollback_is_for_the_next_attempt(project: Project) -> None:
    project.edit_task(intent={"action": "rollback", "at": "2026-11-29T09:00:00Z", "base": project.head})

    said = project.agent("person").ok("edit", "task-001", "--validate", "true")

    assert "decides on its attempt" not in said["message"]

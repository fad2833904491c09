"""What is typed while a check runs: of an edited check the new one decides, as `harness edit` says."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project, begin


def typing(*words: str, **env: str) -> str:
    """Return the command by which the user, in another terminal, types a verb."""
    known = {name: os.environ[name] for name in ("HOME", "PATH", "PYTHONPATH", "GIT_CONFIG_GLOBAL")} | env
    variables = (f"{name}={value}" for name, value in known.items())
    return f"{shlex.join(('env', '-i', *variables, sys.executable, '-m', 'harness_lib', *words))} >&2"


def edit(*changes: str) -> str:
    return typing("edit", "task-001", *changes)


def once(place: Path, check: str, command: str) -> str:
    """Return a check that runs `command` before `check`, but only once."""
    script, done = shlex.quote(str(place)), shlex.quote(f"{place}.done")
    put(place, f"#!/bin/sh\n[ -e {done} ] || {{ : >{done}; {command}; }}\n{check}\n", executable=True)
    return script


def editing(place: Path, check: str, *changes: str) -> str:
    """Return a check that runs `check`, and lets the user edit the task meanwhile, but only once."""
    return once(place, check, edit(*changes))


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


def test_a_check_runs_once_if_something_else_was_edited(
    project: Project, agent: Agent, tmp_path: Path
) -> None:
    begin(agent, editing(tmp_path / "check", f"echo ran >>{tmp_path}/ran", "--title", "Two"))

    agent.finishes({"one": "x\n"})

    assert project.task()["title"] == "Two"
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_one_that_was_edited_in_the_second_check_runs_again(project: Project, agent: Agent) -> None:
    typed = f"cd {shlex.quote(str(project.top))} && {edit('--validate', 'test -f two')}"
    project.commit(files={"check.sh": f"{typed}\n"})
    begin(agent, "sh check.sh")

    agent.finishes({"check.sh": "test -f one\n", "one": "x\n"}, code=1)

    assert project.task()["error_log"] == ["[TEST_FAIL] The check failed with exit code 1."]
    assert project.task()["validation"]["command"] == "test -f two"


def test_once_it_has_passed_it_is_too_late_to_edit_it(project: Project, agent: Agent) -> None:
    begin(agent)
    oid = project.head
    project.edit_task(intent={"action": "commit", "at": "2026-11-29T09:00:00Z", "base": oid, "commit": oid})

    said = project.agent("person").fails(8, "edit", "task-001", "--validate", "true")

    assert "is being committed or merged" in said["error"]["message"]


def test_the_check_of_a_killed_rollback_may_be_edited_and_decides_on_the_next_attempt(
    project: Project, agent: Agent
) -> None:
    begin(agent)
    project.edit_task(intent={"action": "rollback", "at": "2026-11-29T09:00:00Z", "base": project.head})

    said = project.agent("person").ok("edit", "task-001", "--validate", "true")

    assert "decides on its attempt" not in said["message"]

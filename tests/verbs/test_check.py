"""`harness check`: every problem with its place, nothing written; `--repair` mends what it may."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from harness_lib.system.files import private_names
from tests.verbs.project import Agent, Project


def write(project: Project, *tasks: dict[str, Any], **fields: Any) -> None:
    project.file.write_text(
        json.dumps({"tasks": [{"status": "pending", **task} for task in tasks], **fields}), encoding="utf-8"
    )


def paths(said: dict[str, Any]) -> list[str]:
    return [problem["path"] for problem in said["problems"]]


CHECKED = {"validation": {"command": "true"}}


def test_a_person_puts_the_last_good_list_back_and_an_agent_may_not(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    project.file.write_text('{"tasks": [{"id": "task-001", "status": "dun"}]}', encoding="utf-8")
    person = project.agent("person")

    assert "harness check --restore" in person.fails(3, "status")["error"]["hint"]
    assert "a person" in agent.fails(8, "check", "--restore", CLAUDECODE="1")["error"]["message"]
    said = person.ok("check", "--restore", CLAUDE_PID="")

    assert "harness-tasks.json.broken-" in said["message"]
    assert project.task()["title"] == "One"
    assert "as it must be" in person.fails(8, "check", "--restore")["error"]["message"]


def test_a_good_list_is_fine(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    said = agent.ok("check")
    assert said["problems"] == said["doubts"] == []
    assert said["trusted"] is True
    assert said["next"] == "harness status"
    assert f"{project.file} keeps the contract (1 tasks)" in said["message"]


def test_all_problems_are_named_the_nearest_to_the_top_first(project: Project, agent: Agent) -> None:
    write(
        project,
        {"id": "a", "status": "penng", "attempts": "x", "validation": {"timeout_seconds": "long"}},
        {"id": "a", "depends_on": ["nobody"]},
        version=7,
    )
    said = agent.fails(1, "check")
    assert paths(said) == [
        "version",
        "tasks[0].status",
        "tasks[0].attempts",
        "tasks[1].id",
        "tasks[0].validation.timeout_seconds",
        "tasks[1].depends_on[0]",
    ]
    assert "tasks[0].status: is 'penng', must be one of pending" in said["message"]
    assert said["next"] == "harness check"
    assert "Correct the named fields in the file" in said["message"]
    assert "harness check --restore" in said["message"]


def test_a_cycle_is_a_problem(project: Project, agent: Agent) -> None:
    write(project, {"id": "a", "depends_on": ["b"], **CHECKED}, {"id": "b", "depends_on": ["a"], **CHECKED})
    said = agent.fails(1, "check")
    assert "cycle: a -> b -> a" in said["message"]
    assert said["next"] == "harness why a"


@pytest.mark.parametrize(
    ("validation", "doubt"),
    [
        ({}, "t has no check"),
        ({"command": "  "}, "t has no check"),
        ({"command": "no-such-program --now"}, "needs 'no-such-program', which is not on the PATH"),
        ({"command": "true", "cwd": "nowhere"}, "validation.cwd 'nowhere' is no directory"),
        ({"command": "true", "protect": ["tests/**"]}, "validation.protect 'tests/**' matches no file"),
    ],
)
def test_what_may_stop_the_work_is_a_warning(
    project: Project, agent: Agent, validation: dict[str, Any], doubt: str
) -> None:
    write(project, {"id": "t", "validation": validation})
    said = agent.ok("check")
    assert len(said["doubts"]) == 1
    assert doubt in said["doubts"][0]


def test_nothing_is_doubted_without_reason(project: Project, agent: Agent) -> None:
    """Completed tasks, shell words, the word `auto`, and globs as git reads them, also of untracked files."""
    project.put("tests/deep/test_x.py")
    write(
        project,
        {"id": "done", "status": "completed"},
        {"id": "shell", "validation": {"command": "cd tests && for f in *; do test -e $f; done"}},
        {"id": "glob", "validation": {"command": "true", "protect": ["tests/**", "tracked.txt"]}},
        {"id": "deep", "validation": {"command": "true", "cwd": "tests", "protect": ["deep/*.py"]}},
        {"id": "auto", "validation": {"command": "true", "protect": ["auto"]}},
    )
    assert agent.ok("check")["doubts"] == []


def test_the_commands_of_an_untrusted_list_are_shown_as_they_are(project: Project, agent: Agent) -> None:
    """What a person trusts must not hide behind line breaks, colours, or a cut that is not told."""
    (project.top / ".git" / "harness" / "trust.json").unlink(missing_ok=True)
    write(
        project,
        {
            "id": "a",
            "validation": {"command": "true\n\x1b[8m; curl evil"},
            "on_failure": {"cleanup": "x" * 999},
        },
    )
    project.put("harness-init.sh", "echo\n")
    said = agent("check")
    assert said.code == 0
    assert "  a check: true\\n\\x1b[8m; curl evil\n" in said.out
    assert "(699 characters more: harness check --all)" in said.out
    assert "x" * 999 in agent("check", "--all").out
    assert "harness-init.sh" in said.out
    assert "have not been trusted" in said.out
    assert said.out.endswith("next: harness trust\n")


@pytest.mark.parametrize("broken", [b'{"tasks": [', b"", b"\xff\xfe", None])
def test_a_lost_list_is_said_and_left_alone(project: Project, agent: Agent, broken: bytes | None) -> None:
    agent.ok("add", "One", "--validate", "true")
    project.file.unlink() if broken is None else project.file.write_bytes(broken)
    said = agent.fails(1, "check")
    assert "the newest good state is" in said["message"]
    assert said["next"] == "harness check --repair"
    assert not project.file.exists() if broken is None else project.file.read_bytes() == broken


@pytest.mark.parametrize("broken", [b'{"tasks": [', None])
def test_repair_restores_it_and_keeps_the_broken_file(
    project: Project, agent: Agent, broken: bytes | None
) -> None:
    agent.ok("add", "One", "--validate", "true")
    project.file.unlink() if broken is None else project.file.write_bytes(broken)
    said = agent.ok("check", "--repair")
    assert "restored from" in said["repaired"][0]
    assert project.task()["title"] == "One"
    kept = [path.read_bytes() for path in project.top.glob("harness-tasks.json.broken-*")]
    assert kept == ([] if broken is None else [broken])
    assert agent("check").code == 0


def test_repair_never_restores_over_a_persons_edit(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    project.edit_task(status="pnding")
    before = project.file.read_bytes()
    assert "tasks[0].status" in agent.fails(3, "check", "--repair")["message"]
    assert project.file.read_bytes() == before


def test_repair_without_anything_good_writes_nothing(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    for path in [*project.generations, project.top / "harness-tasks.json.bak"]:
        path.unlink()
    project.file.write_text("{", encoding="utf-8")
    agent.fails(4, "check", "--repair")
    assert project.file.read_text(encoding="utf-8") == "{"
    assert "no good earlier state is left" in agent.fails(1, "check")["message"]


def test_repair_ends_a_torn_log_line(project: Project, agent: Agent) -> None:
    log = project.top / "harness-progress.txt"
    with log.open("a", encoding="utf-8") as stream:
        stream.write("[2025-07-01T10:00:00Z] [SESSION-1] WA")
    assert "harness-progress.txt" in agent.ok("check", "--repair")["repaired"][0]
    assert project.log[-2].endswith("WA")
    assert "WARN" in project.log[-1]
    assert agent.ok("check", "--repair")["repaired"] == []


def test_repair_makes_anew_what_was_deleted(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    private = project.top / ".harness"
    for path in sorted(private.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    private.rmdir()
    assert agent.ok("check", "--repair")["repaired"]
    assert (private / ".gitignore").read_bytes() == private_names.RULES
    assert (private / "summary.json").exists()
    assert list((private / "generations").iterdir())
    assert agent.ok("check", "--repair")["repaired"] == []


def test_repair_sweeps_what_dead_writers_left_and_nothing_else(project: Project, agent: Agent) -> None:
    """A young file may have a living writer, and a name that is not ours is somebody's."""
    agent.ok("add", "One", "--validate", "true")
    stale = project.put(".harness-tasks.json.0011.tmp")
    private = project.put(".harness/.summary.json.0022.tmp")
    young = project.put(".harness-tasks.json.0033.tmp")
    theirs = [project.put(".notes.txt.0044.tmp"), project.put("harness-tasks.json.tmp")]
    for path in (stale, private, *theirs):
        _age(path, 7200)
    assert len(agent.ok("check", "--repair")["repaired"]) == 2
    assert not stale.exists()
    assert not private.exists()
    assert all(path.exists() for path in (young, *theirs))


def _age(path: Path, seconds: int) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))

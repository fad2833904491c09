"""`harness check`: every problem with its place, nothing written; `--repair` mends what it may."""

from __future__ import annotations

from typing import Any

import pytest

from tests.verbs.project import Agent, Project


def paths(said: dict[str, Any]) -> list[str]:
    return [problem["path"] for problem in said["problems"]]


CHECKED = {"validation": {"command": "true"}}


def test_the_user_puts_the_last_good_list_back_and_an_agent_may_not(project: Project, one: Agent) -> None:
    project.file.write_text('{"tasks": [{"id": "task-001", "status": "dun"}]}')
    before = project.file.read_bytes()
    person = project.agent("person")

    assert "harness check --restore" in person.fails(3, "status")["error"]["hint"]
    assert "the user" in one.fails(8, "check", "--restore", CLAUDECODE="1")["error"]["message"]
    assert "tasks[0].status" in one.fails(3, "check", "--repair")["message"]
    assert project.file.read_bytes() == before
    said = person.ok("check", "--restore", CLAUDE_PID="")

    assert "harness-tasks.json.broken-" in said["message"]
    assert project.task()["title"] == "One"
    assert "nothing to restore" in person.fails(8, "check", "--restore")["error"]["message"]


def test_of_a_list_of_a_newer_harness_nothing_is_to_be_corrected(project: Project, agent: Agent) -> None:
    """A halt that this one does not know may be of a newer one, or a mistake."""
    project.file.write_text('{"version": 3, "tasks": [{"id": "task-001", "status": "asleep"}]}')

    said = agent.fails(1, "check")

    assert "Update harness on this machine" in said["message"]
    assert ("Correct" in said["message"], said["next"]) == (False, None)
    project.file.write_text(
        '{"version": 2, "tasks": [{"id": "task-001", "status": "pending", "halt_kind": "NOVEL"}]}'
    )

    said = agent.fails(1, "check")

    assert "Correct the named fields" in said["message"]
    assert "update harness on this machine" in said["message"]


def test_a_list_that_git_has_set_back_comes_back_as_the_user_says(project: Project, agent: Agent) -> None:
    """Docs/ci.md puts the list into git, so a stash or a reset takes what has happened since out of it."""
    committed = project.file.read_bytes()
    agent.ok("add", "One", "--validate", "test -e one")
    project.file.write_bytes(committed)
    person = project.agent("person")

    for verb in ("status", "check"):
        (warning,) = person.ok(verb)["warnings"]
        assert "(gone: task-001)" in warning
        assert "harness check --restore" in warning
    person.ok("check", "--restore", CLAUDE_PID="")

    assert project.task()["title"] == "One"
    said = person.ok("check")
    assert said["warnings"] == said["problems"] == said["doubts"] == []
    assert (said["trusted"], said["next"]) == (True, "harness status")
    assert f"{project.file} is valid (1 task)" in said["message"]


def test_all_problems_are_named_the_nearest_to_the_top_first(project: Project, agent: Agent) -> None:
    project.write(
        {"id": "a", "status": "penng", "attempts": "x", "validation": {"timeout_seconds": "long"}},
        {"id": "a", "depends_on": ["nobody"]},
        version=1,
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


def test_the_work_of_a_task_in_progress_makes_its_check_no_doubt(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "grep -q done work")
    agent.ok("start")
    agent.ok("claim")
    project.put("work", "done\n")

    assert agent.ok("check")["doubts"] == []


def test_a_cycle_is_a_problem(project: Project, agent: Agent) -> None:
    project.write({"id": "a", "depends_on": ["b"], **CHECKED}, {"id": "b", "depends_on": ["a"], **CHECKED})
    said = agent.fails(1, "check")
    assert "cycle: a -> b -> a" in said["message"]
    assert said["next"] == "harness show a"


DOUBTS: list[tuple[dict[str, Any], str]] = [
    ({}, "t has no check"),
    ({"command": "  "}, "t has no check"),
    ({"command": "no-such-program --now"}, "needs 'no-such-program', which is not on the PATH"),
    ({"command": "true", "cwd": "nowhere"}, "validation.cwd 'nowhere' is not a directory"),
    ({"command": "test -e x", "protect": ["tests/**"]}, "validation.protect 'tests/**' matches no file"),
    ({"command": "test -e x || true"}, "its check cannot fail: it ends with `true`, which never fails"),
]


def test_what_may_stop_the_work_is_a_warning(project: Project, agent: Agent) -> None:
    for validation, doubt in DOUBTS:
        project.write({"id": "t", "validation": validation})
        (said,) = agent.ok("check")["doubts"]
        assert doubt in said


def test_nothing_is_doubted_without_reason(project: Project, agent: Agent) -> None:
    """Completed tasks, shell words, the word `auto`, and globs as git reads them, also of untracked files."""
    project.put("tests/deep/test_x.py")
    project.write(
        {"id": "done", "status": "completed"},
        {"id": "shell", "validation": {"command": "cd tests && for f in *; do test -e $f; done"}},
        {"id": "glob", "validation": {"command": "test -e x", "protect": ["tests/**", "tracked.txt"]}},
        {"id": "deep", "validation": {"command": "test -e x", "cwd": "tests", "protect": ["deep/*.py"]}},
        {"id": "auto", "validation": {"command": "test -e y", "protect": ["auto"]}},
    )
    assert agent.ok("check")["doubts"] == []


def test_the_commands_of_an_untrusted_list_are_shown_as_they_are(project: Project, agent: Agent) -> None:
    """What the user trusts must not hide behind line breaks, colours, or a cut that is not told."""
    (project.top / ".git/harness/trust.json").unlink(missing_ok=True)
    check, cleanup = {"command": "true\n\x1b[8m; curl\u200b evil", "cwd": "x\x1b[2J\nb"}, "x" * 999
    project.write({"id": "a", "validation": check, "on_failure": {"cleanup": cleanup}})
    project.put("harness-init.sh", "echo\n")
    said = agent("check")
    assert said.code == 0
    assert "  check in x\\x1b[2J\\nb of a: true\\n\\x1b[8m; curl\ufffd evil\n" in said.out
    assert "(699 characters more: harness check --all)" in said.out
    assert cleanup in agent("check", "--all").out
    assert "harness-init.sh" in said.out
    assert "have not been trusted" in said.out
    assert said.out.endswith("next: harness trust\n")


@pytest.mark.parametrize("broken", [b'{"tasks": [', b"", b"\xff\xfe", None])
def test_a_lost_list_waits_for_its_repair(project: Project, one: Agent, broken: bytes | None) -> None:
    project.file.unlink() if broken is None else project.file.write_bytes(broken)

    said = one.fails(1, "check")

    assert "the newest good state is" in said["message"]
    assert said["next"] == "harness check --repair"
    assert not project.file.exists() if broken is None else project.file.read_bytes() == broken
    said = one.ok("check", "--repair")
    assert "restored from" in said["repaired"][0]
    assert said["warnings"] == []
    assert project.task()["title"] == "One"
    kept = [path.read_bytes() for path in project.top.glob("harness-tasks.json.broken-*")]
    assert kept == ([] if broken is None else [broken])
    assert one("check").code == 0

"""`harness show`: everything about one task; what keeps it waiting, and what helps."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lib.system.git import repository
from tests.verbs.project import Agent, Project, begin


def test_everything_about_a_task_is_shown(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "true")
    agent.ok(
        *("add", "Second", "--description", "line one\nline two", "--validate", "echo FAILED a.py::b; false"),
        *("--protect", "exam.txt", "--cleanup", "true", "--priority", "P0"),
    )
    agent.ok("claim", "task-002")
    held = agent.ok("show", "task-002")
    assert (f"claimed by {agent.name}" in held["message"], held["next"]) == (True, "harness finish")
    agent.ok("checkpoint", "task-002", "1/2", "half of it")
    agent.finishes({"made.txt": "x\n"}, code=1)
    before = project.file.read_bytes(), project.log
    said = agent.ok("show", "task-002")
    assert said["task"] == project.task("task-002")
    assert said["rescues"] == ["refs/harness/rescue/task-002/1"]
    assert said["check_log"].endswith("task-002/1.log")
    for text in (
        "line one",
        "line two",
        "echo FAILED a.py::b",
        "1/2 half of it",
        "TEST_FAIL",
        "exam.txt",
        "P0",
    ):
        assert text in said["message"]
    assert said["next"] == "harness claim task-002"
    assert agent.ok("show", "2")["task"] == agent.ok("show", "task-2")["task"] == said["task"]
    assert "There is no task" in agent.fails(2, "show", "9" * 5000)["error"]["message"]
    assert (project.file.read_bytes(), project.log) == before


def test_a_completed_task_tells_its_commit_files_and_undoing(project: Project, holder: Agent) -> None:
    holder.finishes({"done": "x\n"})

    reply = holder.ok("show", "1")

    commit = project.head[:12]
    assert reply["task"]["id"] == "task-001"
    assert "done" in reply["files"]
    for words in (f"git show {commit}", f"git revert {commit}", "harness retry task-001"):
        assert words in reply["message"]
    project.git(*reply["undo"].split()[1:], "--no-edit")
    assert not (project.top / "done").exists()


def test_commits_of_its_own_are_undone_together_and_no_others(project: Project, agent: Agent) -> None:
    begin(agent, "test -f One")
    agent.finishes({"One": "x\n"})
    begin(agent, "test -f Two")
    project.commit("A part of it", files={"part": "x\n"})
    agent.finishes({"Two": "x\n"})

    reply = agent.ok("show", "task-002")

    assert sorted(reply["files"]) == ["Two", "part"]
    assert len(reply["commits"]) == 2
    project.git(*reply["undo"].split()[1:], "--no-edit")
    assert sorted(project.files) == ["One", "tracked.txt"]


@pytest.mark.parametrize("began", ["on it", "before it"])
def test_a_commit_stays_its_tasks_if_a_later_has_none(project: Project, agent: Agent, began: str) -> None:
    """A worker of a run begins before the commit of another one, and names that one as its own at the end."""
    base = project.head
    begin(agent)
    agent.finishes({"done": "x\n"})
    begin(agent, "true")
    agent.ok("finish")
    if began == "before it":
        project.without_proofs()
        project.edit_task("task-002", started_at_commit=base)
        project.edit(tasks=project.state["tasks"][::-1])

    first, second = agent.ok("show", "1"), agent.ok("show", "2")

    assert first["undo"] == f"git revert {project.head[:12]}"
    assert "committed nothing" in second["message"]
    assert second["undo"] is None


def test_a_lost_commit_is_told(project: Project, holder: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    holder.finishes({"done": "x\n"})
    lost = project.head
    project.git("reset", "-q", "--hard", "HEAD^")
    project.git("reflog", "expire", "--expire=now", "--all")
    for ref in project.refs("refs/"):
        if not ref.startswith("refs/heads/"):
            project.git("update-ref", "-d", ref)
    project.git("gc", "-q", "--prune=now")
    # The next command is another process, which has made no commit.
    monkeypatch.setattr(repository, "_commits", set())
    project.edit_task(look_at=["x" * 1000])
    said = holder.ok("show", "1")["message"]
    assert f"its commit {lost[:12]} is not here any more" in said
    assert f"look at: {'x' * 1000}" in said


def test_the_number_of_a_task_is_its_name_everywhere(one: Agent) -> None:
    for verb in (
        ("edit", "1", "--title", "Other"),
        ("claim", "1"),
        ("finish", "1"),
        ("retry", "1"),
        ("remove", "1"),
    ):
        one.ok(*verb)
        one.fails(2, "show", "7")


# -- why a task waits

CHECKED = {"validation": {"command": "true"}}
LEASED = {**CHECKED, "claimed_by": "w", "lease_expires_at": "2025-07-01T10:00:00Z"}
CASES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "completed": ([{"status": "completed"}], "harness status"),
    "next": ([{}], "harness claim a"),
    "waits": ([{"depends_on": ["b"]}, {}], "harness show b"),
    "used up": ([{"status": "failed", "attempts": 3}], "harness retry a"),
    "blocked": (
        [
            {"status": "failed", "depends_on": ["b"], "error_log": ["[DEPENDENCY] Blocked by b"]},
            {"status": "failed", "depends_on": ["c"], "error_log": ["[DEPENDENCY] Blocked by c"]},
            {"status": "failed", "attempts": 3},
        ],
        "harness retry c",
    ),
    "blocked by what is done by now": (
        [
            {"status": "failed", "depends_on": ["b"], "error_log": ["[DEPENDENCY] Blocked by b"]},
            {"status": "completed"},
        ],
        "harness retry a",
    ),
    "cycle": ([{"depends_on": ["b"]}, {"depends_on": ["a"]}], "harness edit a --depends-on ID"),
    "behind a recorded cycle": (
        [
            {"depends_on": ["b"]},
            {"depends_on": ["b"], "status": "failed", "error_log": ["[DEPENDENCY] Circular"]},
        ],
        "harness show b",
    ),
    "halted without a check": ([{"halt": "CONFIG: no check"}], "harness edit a --validate 'COMMAND'"),
    "halted": ([{"halt": "ENV_SETUP: no npm", "validation": {"command": "npm test"}}], "harness retry a"),
    "claimed by nobody": ([{"status": "in_progress", **CHECKED}], "harness start"),
    "lease ended": ([{"status": "in_progress", **LEASED}], "harness recover"),
    "held by another": ([{"status": "in_progress", "claimed_by": "w", **CHECKED}], "harness status"),
}


def test_the_reason_and_the_command_that_helps(project: Project, agent: Agent) -> None:
    """Of the first of the tasks a, b and c; the rules are those of tests/rules."""
    for name, (tasks, command) in CASES.items():
        project.write(*({"id": task_id, **task} for task_id, task in zip("abc", tasks, strict=False)))
        said = agent.ok("show", "a")
        assert said["reasons"][0] in said["message"], name
        assert said["next"] == command, name
        assert (said["task"]["id"], "None" in said["message"]) == ("a", False)


def test_a_thousand_reasons_are_a_number(project: Project, agent: Agent) -> None:
    ids = [f"t{n}" for n in range(1000)]
    project.write(*({"id": name} for name in ids), {"id": "a", "depends_on": ids})
    said = agent("show", "a")
    assert len(said.out.splitlines()) < 20
    assert "… and 990 more" in said.out


def test_without_an_id_it_explains_what_comes_next_and_what_waits(project: Project, agent: Agent) -> None:
    assert "The list has no tasks yet" in agent.ok("show")["message"]
    tasks: list[dict[str, Any]] = [
        {"id": "done", "status": "completed"},
        {"id": "first", "title": "Begin", "status": "pending"},
        {"id": "second", "status": "pending"},
        {"id": "waiting", "status": "pending", "depends_on": ["first"]},
        {"id": "spent", "status": "failed", "attempts": 3},
        {"id": "behind", "status": "pending", "depends_on": ["spent"]},
    ]
    project.edit(tasks=tasks)
    project.without_proofs()

    said = agent.ok("show")

    assert said["message"].splitlines()[0] == "goes next: [pending] first: Begin (0/3)"
    assert said["message"].count("first: Begin") == 1
    assert [each["id"] for each in said["tasks"]] == ["spent", "first", "behind", "waiting"]
    assert "waits for first (pending)" in said["message"]
    assert "depends on spent, which has failed for good" in said["message"]
    assert "second" not in said["message"]
    assert said["next"] == "harness start"


def test_without_an_id_of_a_long_list_only_some_are_explained(project: Project, agent: Agent) -> None:
    tasks = [{"id": f"t-{n}", "status": "pending", "depends_on": ["t-0"] if n else []} for n in range(50)]
    project.edit(tasks=tasks)

    said = agent.ok("show")

    assert "… and 40 more that may not be claimed now" in said["message"]
    assert len(said["message"].splitlines()) < 30


def test_the_verb_of_earlier_versions_is_read_and_says_the_new_one(project: Project, agent: Agent) -> None:
    project.write({"id": "a"})
    said = agent("why", "a")
    assert said.code == 0
    assert said.err.splitlines()[0] == "harness: harness why is now: harness show"
    assert said.out == agent("show", "a").out

"""`harness fail` and `harness release` end an attempt without its check; what went wrong is undone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness_lib.system import mkdir_lock
from tests.run_to_end import run_to_end
from tests.verbs.project import Agent, Project, begin, lose


@pytest.fixture
def begun(project: Project, agent: Agent) -> Agent:
    """Return an agent in the middle of the first of two tasks."""
    agent.ok("add", "One", "--validate", "test -f done", "--cleanup", "touch cleaned")
    agent.ok("add", "Two", "--validate", "true")
    agent.ok("claim")
    project.put("tracked.txt", "half\n")
    project.put("new.txt", "half\n")
    return agent


# What each category costs and stops is pure: tests/rules/test_failures.py.
@pytest.mark.parametrize(("category", "code"), [("CONFIG", 3), ("ENV_SETUP", 7), ("TEST_FAIL", 0)])
def test_each_category_follows_its_strategy(project: Project, begun: Agent, category: str, code: int) -> None:
    """docs/protocol.md, "Error Handling": who retries, who stops, what costs an attempt."""
    said = begun("fail", "task-001", "--category", category, "--message", "no\nluck", "--json")

    assert said.code == code, said.text
    task = project.task()
    assert task["status"] == "failed"
    assert task["attempts"] == int(not code)
    assert task["error_log"] == [f"[{category}] no luck"]
    assert sorted(project.files) == ["cleaned", "tracked.txt"]
    assert project.read("tracked.txt") == "one\n"
    assert project.git("show", "refs/harness/rescue/task-001/1:new.txt") == "half"
    assert project.grep(f"ERROR [task-001] [{category}] no luck")
    assert project.grep("ROLLBACK [task-001]")
    halt = project.state["sessions"][0].get("halt") or ""
    assert (halt.startswith(f"{category}: "), bool(task.get("halt"))) == (code > 0, category == "CONFIG")


def test_without_the_task_nothing_keeps_its_session_waiting(project: Project, begun: Agent) -> None:
    begun.fails(3, "fail", "--category", "CONFIG", "--message", "no such API")

    project.agent("person").ok("remove", "task-001")

    assert project.state["sessions"][0]["halt"] is None


def test_whoever_holds_one_task_need_not_name_it_to_fail_it(project: Project, begun: Agent) -> None:
    begun.ok("fail", "--message", "the API has no such call")

    assert project.task()["error_log"][-1] == "[TASK_EXEC] the API has no such call"
    assert "harness claim" in begun.fails(2, "fail", "--message", "again")["error"]["hint"]
    begun.ok("claim")
    begun.ok("finish")
    assert "the API has no such call" in begun.ok("claim")["brief"]


def test_without_a_reason_nothing_happens(project: Project, begun: Agent) -> None:
    for message in ("", " \n\t "):
        begun.fails(2, "fail", "task-001", "--message", message)

    assert project.task()["status"] == "in_progress"
    assert project.read("new.txt") == "half\n"


def test_a_task_that_nobody_holds_cannot_fail(project: Project, one: Agent) -> None:
    one.fails(2, "fail", "task-001", "--message", "x")
    one.fails(2, "release", "task-001")
    one.fails(2, "release")

    assert project.task()["status"] == "pending"


def test_release_counts_nothing_and_keeps_the_work_of_each_time(project: Project, begun: Agent) -> None:
    first = begun.ok("release")["rescue"]

    task = project.task()
    assert (task["status"], task["attempts"], task["error_log"]) == ("pending", 0, [])
    assert task.get("claimed_by") is None
    assert project.read("tracked.txt") == "one\n"
    assert project.state["sessions"][0]["finished_attempts"] == 0
    assert begun.ok("claim")["task"]["id"] == "task-001"
    project.put("new.txt", "other\n")
    second = begun.ok("release")["rescue"]
    assert [project.git("show", f"{ref}:new.txt") for ref in (first, second)] == ["half", "other"]


def test_a_release_without_any_work_keeps_nothing(project: Project, holder: Agent) -> None:
    assert holder.ok("release")["rescue"] is None
    assert project.refs() == project.refs("refs/harness/before/") == []


def test_a_claim_without_a_base_fails_and_its_work_is_left_alone(project: Project, begun: Agent) -> None:
    """A legacy agent may forget the commit; there is nothing to go back to then."""
    project.edit_task("task-001", started_at_commit=None)

    said = begun.ok("fail", "task-001", "--category", "TASK_EXEC", "--message", "cannot be done")

    assert project.read("new.txt") == "half\n"
    task = project.task()
    assert (task["status"], task["attempts"]) == ("failed", task["max_attempts"])
    assert any("base commit" in warning for warning in said["warnings"])
    assert "left as it is" in said["message"]
    assert "rolled back" not in said["message"]


# -- what the page says to type when something is wrong does what it says


_PAGE = Path(__file__).resolve().parents[2] / "docs/when-something-is-wrong.md"


def _block(title: str) -> str:
    """Return the commands below the bold `title`."""
    section = _PAGE.read_text().split(f"**{title}")[1]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return block[1]


def test_a_completed_task_is_undone_and_can_be_done_again(project: Project, agent: Agent) -> None:
    begin(agent, "test -f made.txt")
    agent.finishes({"made.txt": "x\n"})
    show, revert, retry = _block("Undo a completed task").splitlines()
    shown = agent.ok(*show.split("#")[0].split()[1:])["message"]
    commit = project.task()["completed_commit"]
    assert commit[:7] in shown

    run_to_end(["sh", "-c", revert.replace("COMMIT", commit)], cwd=project.top, check=True)
    agent.ok(*retry.split()[1:])

    assert not (project.top / "made.txt").exists()
    assert project.task()["status"] == "pending"


def test_failed_work_is_got_back_as_shown(project: Project, agent: Agent) -> None:
    text = _PAGE.read_text().split("**Get failed work back**")[1].split("\n\n")[0]
    lose(agent, "made.txt")
    assert not (project.top / "made.txt").exists()

    for command in re.findall(r"`harness ([a-z][^`]*)`", text):
        agent.ok(*command.split())

    assert project.read("made.txt") == "x\n"


def test_everything_can_be_removed_from_a_project(bare: Project) -> None:
    """But for what the page names: the lines that git ignores our files by."""
    agent = bare.agent()
    agent.ok("init")
    lose(agent, "made.txt")
    assert bare.git("for-each-ref", "refs/harness")
    bare.put("mine.txt")
    lock = mkdir_lock.path_for(bare.top)
    assert lock.is_dir()

    stop, _, rest = _block("Remove everything").partition("\n")
    agent.ok(*stop.split("#")[0].split()[1:])
    run_to_end(["sh", "-eu", "-c", rest], cwd=bare.top, check=True)

    assert not lock.exists()
    assert bare.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert not [path for path in (bare.top / ".git").rglob("*harness*") if path.is_file()]
    ignored = bare.read(".git/info/exclude").splitlines()
    assert all(line.startswith(("/harness-", "/.harness")) for line in ignored), ignored
    left = {path.name for path in bare.top.iterdir()}
    assert not {name for name in left if name.startswith((".harness", "harness-"))}
    assert "mine.txt" in left

"""`harness validate` runs checks and records nothing; with `--all --committed` it is a list's final check."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from harness_lib.attempts import committed
from harness_lib.core.context import Context
from tests.attempts.rechecking import break_one, context, done, found
from tests.system.git.gitrepo import sh
from tests.verbs.project import Agent, Project, Stepping

FINAL = "harness validate --all --committed"


def test_a_check_is_run_and_nothing_is_recorded(project: Project, agent: Agent) -> None:
    """What it changed in the work tree is told, and left so."""
    agent.ok("add", "First", "--validate", "echo changed > tracked.txt; echo new > made.txt")
    agent.ok("add", "Second", "--validate", "echo the reason; false")
    before = project.file.read_bytes(), project.log, project.head
    passed = agent.ok("validate", "task-001")
    assert passed["task"]["status"] == "pending"
    assert passed["changed"] == ["tracked.txt"]
    assert "tracked.txt" in passed["warnings"][0]
    assert project.read("tracked.txt") == "changed\n"
    said = agent.fails(1, "validate", "task-002")
    assert "the reason" in said["message"]
    assert said["ok"] is False
    assert (project.file.read_bytes(), project.log, project.head) == before


def test_all_checks_are_run_and_those_that_do_not_pass_are_told(agent: Agent) -> None:
    """A single one that cannot run says whose fault it is."""
    assert agent.ok("validate", "--all")["passed"] == 0
    agent.ok("add", "Good", "--validate", "true")
    assert agent.ok("validate", "--all")["passed"] == 1
    agent.ok("add", "Bad", "--validate", "echo why; false")
    agent.ok("add", "None")
    agent.ok("add", "Nowhere", "--validate", "true", "--cwd", "no/such/place")
    agent.ok("add", "Absent", "--validate", "no-such-command-anywhere --x")
    said = agent.fails(1, "validate", "--all")
    verdicts = {each["id"]: each["verdict"] for each in said["results"]}
    assert verdicts == {
        "task-002": "TEST_FAIL",
        "task-003": "no check",
        "task-004": "CONFIG",
        "task-005": "ENV_SETUP",
    }
    assert (said["passed"], said["not_passed"]) == (1, 4)
    assert "why" in said["message"]
    agent.fails(3, "validate", "task-003")
    agent.fails(7, "validate", "task-005")


def test_a_hundred_failures_are_a_few_lines_and_one_check_runs_once(project: Project, agent: Agent) -> None:
    ran = project.top.parent / "ran"
    agent.ok("add", "First", "--validate", f"echo >> {ran}; false")
    task = project.task()
    project.edit(tasks=[{**task, "id": f"t{n}"} for n in range(100)])
    said = agent.fails(1, "validate", "--all")
    assert said["not_passed"] == 100
    assert len(said["message"].splitlines()) < 30
    assert len(said["results"]) == 20
    assert ran.read_text() == "\n"


def test_what_is_meant_must_be_said_whole(one: Agent) -> None:
    one.fails(2, "validate")
    one.fails(2, "validate", "task-001", "--all")
    for words in ("--committed", "task-001 --committed", "--range A..B"):
        assert FINAL in one.fails(2, "validate", *words.split())["error"]["hint"]


# -- the final check of a list


RIGHT, WRONG = {"lib.py": "VALUE = 1\n"}, {"lib.py": "VALUE = 2\n"}
CHECK = f"{shlex.quote(sys.executable)} -B -c 'import lib; assert lib.VALUE == 1'"


@pytest.fixture
def begun(project: Project, agent: Agent) -> Project:
    """Begin a list of two tasks, the first of which is done."""
    agent.ok("add", "Library", "--validate", CHECK)
    agent.ok("add", "User", "--validate", "test -f user")
    agent.works(RIGHT)
    agent.ok("claim")
    project.put("user")
    return project


def test_after_the_last_finish_it_is_what_to_type_and_then_all_is_done(begun: Project, agent: Agent) -> None:
    finish = agent.ok("finish")
    assert (finish["stop"], finish["next"]) == (None, FINAL)
    assert begun.enable_flag

    reply = agent.ok("validate", "--all", "--committed")

    assert reply["stop"] == {"reason": "done"}
    passed = f"2 of 2 checks of completed tasks pass on a clean checkout of {begun.head[:12]}"
    assert passed in reply["message"]
    assert [task["recheck"]["passed"] for task in begun.state["tasks"]] == [True, True]
    assert begun.state["sessions"] == []
    assert not begun.enable_flag
    assert len(begun.git("worktree", "list").splitlines()) == 1


@pytest.mark.release
@pytest.mark.usefixtures("begun")
def test_the_checkout_of_a_slice_outlives_another_one_beside_it(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its set-up may take as long as a slice; the second check uses a checkout of its own, too."""
    agent.ok("finish")
    monkeypatch.setattr(committed, "SLICE_SECONDS", 1.5)
    agent.clock = Stepping()
    agent.env = {**agent.env, "HARNESS_HOME": str(tmp_path / "home")}
    agent.ok("validate", "--all", "--committed")
    (made,) = tmp_path.rglob(committed.MADE)
    checkout = (made.parent / "0").stat().st_ino

    agent.ok("validate", "--committed", "--range", "HEAD~1..HEAD")

    assert (made.parent / "0").stat().st_ino == checkout
    assert not (made.parent / "1").exists()
    agent.ok("validate", "--all", "--committed")
    assert not made.parent.exists()


def test_what_a_later_task_broke_is_red_and_is_done_again(begun: Project, agent: Agent) -> None:
    agent.finishes(WRONG)

    red = agent.fails(1, "validate", "--all", "--committed")

    assert (red["stop"], red["next"]) == (None, "harness retry task-001")
    assert begun.enable_flag
    agent.ok("retry", "task-001")
    agent.ok("claim")
    assert agent.finishes(RIGHT)["next"] == FINAL
    assert agent.final_check()["stop"] == {"reason": "done"}


def test_hooks_can_see_that_it_runs(project: Project, agent: Agent) -> None:
    """GitHub Copilot CLI and Kimi Code wake an agent at its end, and do not tell their hooks that it runs."""
    lock = project.top / ".harness/logs/finish.lock"
    code = f"import fcntl; fcntl.flock(open({str(lock)!r}, 'a'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    taken = f"! {shlex.join([sys.executable, '-c', code])}"
    agent.ok("add", "One", "--validate", f'test "$PWD" = {shlex.quote(str(project.top))} || {taken}')
    agent.works()

    assert "1 of 1 checks" in agent.ok("validate", "--all", "--committed")["message"]


@pytest.mark.release
def test_a_list_without_it_is_done_with_its_last_task(begun: Project, agent: Agent) -> None:
    agent.ok("init", "--no-final-check")
    assert agent.ok("finish")["stop"] == {"reason": "done"}
    assert not begun.enable_flag
    agent.ok("edit", "--final-check")
    assert "final_check" not in begun.state["session_config"]


def test_in_ci_a_range_is_checked_and_nothing_recorded(begun: Project, agent: Agent, tmp_path: Path) -> None:
    before_last = begun.head
    agent.finishes(WRONG)
    begun.git("add", "--force", "harness-tasks.json")
    begun.commit_only("the list")
    sh(tmp_path, "clone", "-q", str(begun.top), "ci")
    robot = begun.agent("ci", tmp_path / "ci", CI="true", HARNESS_WORKER_ID=None)
    ranged = ("validate", "--committed", "--range")
    assert "harness trust" in robot.fails(8, *ranged, "HEAD~3..")["error"]["hint"]
    robot.trusts()
    listed = (tmp_path / "ci/harness-tasks.json").read_bytes()

    last = robot.ok(*ranged, f"{before_last}..HEAD")
    whole = robot.fails(1, *ranged, "HEAD~3..")

    assert [each["id"] for each in last["results"]] == ["task-002"]
    assert [each["id"] for each in whole["results"]] == ["task-001"]
    assert (tmp_path / "ci/harness-tasks.json").read_bytes() == listed
    assert len(sh(tmp_path / "ci", "worktree", "list").splitlines()) == 1
    assert sh(tmp_path / "ci", "status", "--porcelain") == ""
    for span in ("HEAD", "..HEAD", "nothing..HEAD", "--all..HEAD", "HEAD...HEAD"):
        robot.fails(2, "validate", "--committed", f"--range={span}")


def test_the_checkout_is_set_up_once_as_that_of_a_run_is(
    project: Project, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`harness-init.sh` runs in it, and the ignored files that a run copies are there."""
    project.put(".gitignore", ".env\n")
    project.put(".env", "KEY=1\n")
    project.put("harness-init.sh", f'echo "$PWD" >> "{tmp_path}/set-up"\n').chmod(0o755)
    project.commit()
    project.agent("person", CLAUDE_PID=None).trusts()
    for name in ("One", "Two"):
        agent.ok("add", name, "--validate", f"grep -q KEY .env && echo {name}")
        agent.works()
    (tmp_path / "set-up").unlink()
    # No time is left for a check after the set-up.
    monkeypatch.setattr(committed, "SLICE_SECONDS", 0.0)
    assert agent.ok("validate", "--all", "--committed")["left"] == 2

    monkeypatch.setattr(committed, "SLICE_SECONDS", 90.0)
    assert agent.final_check()["stop"] == {"reason": "done"}

    (place,) = (tmp_path / "set-up").read_text().splitlines()
    assert not place.startswith(str(project.top))
    assert not Path(place).exists()


# -- what a re-check has found stands in the list, and every verb goes by it, and hooks (tests/hookio)


AGAIN = "harness validate --all --committed"


@pytest.fixture
def ctx(project: Project, tmp_path: Path) -> Context:
    return context(project, tmp_path / "home")


@pytest.fixture
def red(project: Project, agent: Agent, ctx: Context) -> str:
    """Let task-001 be completed and red; return the commit at which it was found so."""
    return break_one(project, agent, ctx)[:12]


def test_a_red_task_is_named_everywhere_with_what_to_type(agent: Agent, red: str) -> None:
    named = f"red: task-001 One: its check fails at {red}, on a clean checkout: The check failed with exit"

    status = agent.ok("status")
    assert "0 %: 1 of 1 completed, 1 of them red" in status["message"]
    assert f"{named} code 1; then: harness retry task-001" in status["message"]
    check = agent.fails(1, "check")
    assert check["red"] == ["task-001"]
    start = agent.fails(9, "start")
    assert start["stop"] == {"reason": "recheck_failed"}
    assert "its check fails at" in start["message"]
    show = agent.ok("show", "task-001")
    for reply in (show, check):
        assert named in reply["message"]
    assert {reply["next"] for reply in (status, show, check, start)} == {"harness retry task-001"}

    agent.ok("retry", "task-001")
    assert agent.ok("start")["next"] == "harness claim"
    assert "red:" not in agent.ok("status")["message"]
    agent.ok("check")


def test_an_open_session_is_told_to_retry_it_and_not_to_wait_for_others(agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "test -f f")
    agent.ok("add", "Two", "--validate", "test ! -f f")
    agent.ok("start")
    agent.works({"f": "x\n"})
    agent.ok("claim")
    (agent.cwd / "f").unlink()
    agent.ok("finish")
    agent.fails(1, "validate", "--all", "--committed")

    said = agent.ok("start")

    assert said["next"] == "harness retry task-001"
    assert "others hold" not in said["message"]


@pytest.mark.usefixtures("red")
def test_a_session_with_other_work_is_told_of_a_red_task_and_does_not_end_with_its_own(agent: Agent) -> None:
    agent.ok("add", "Two", "--validate", "true")

    started = agent.ok("start")

    assert "red: " in started["message"]
    assert started["task"]["id"] == "task-002"
    finished = agent.works()
    assert (finished["stop"], finished["next"]) == ({"reason": "recheck_failed"}, "harness retry task-001")


def test_a_later_commit_of_the_user_makes_a_red_task_one_that_was_checked_before(
    project: Project, agent: Agent, ctx: Context, red: str
) -> None:
    project.commit("put it back by hand", files={"a": "x\n"})

    status = agent.ok("status")

    assert f"checked: task-001 One: its check fails at {red}" in status["message"]
    assert "there are later commits, so check again" in status["message"]
    assert "red:" not in status["message"]
    assert status["next"] == AGAIN
    agent.ok("check")
    assert agent.fails(9, "start")["next"] == AGAIN
    found(ctx)
    assert "checked:" not in agent.ok("status")["message"]
    assert not project.enable_flag


def test_a_later_commit_makes_a_checked_task_no_worse(project: Project, agent: Agent, ctx: Context) -> None:
    done(project, agent, "test -f a", "a")
    commit = project.head[:12]
    found(ctx)
    project.commit("by hand", files={"tracked.txt": "two\n"})

    assert f"re-check: checked at {commit}" in agent.ok("show", "task-001")["message"]
    assert "100 %" in agent.ok("status")["message"]
    agent.ok("check")


def test_what_was_completed_before_re_checks_is_neither_red_nor_held(project: Project, agent: Agent) -> None:
    """And nobody at work is told of it."""
    done(project, agent, "test -f a", "a")

    missing = "not re-checked: 1 completed task. Run the checks on a clean checkout of what is committed: "
    assert f"{missing}{AGAIN}" in agent.ok("status")["message"]
    assert f"not re-checked on a clean checkout; run: {AGAIN}" in agent.ok("show", "task-001")["message"]
    agent.ok("check")
    assert agent.fails(9, "start")["stop"] == {"reason": "done"}
    agent.ok("add", "Two", "--validate", "true")
    agent.ok("start")
    assert "not re-checked" not in agent.ok("status")["message"]


def test_hooks_come_back_for_a_red_task_and_go_with_it(project: Project, agent: Agent, ctx: Context) -> None:
    done(project, agent, "test -f a", "a")
    project.git("rm", "-q", "a")
    project.commit("by hand")
    assert not project.enable_flag

    found(ctx)
    assert project.enable_flag
    agent.ok("pause")
    found(ctx)
    assert not project.enable_flag, "the user has switched them off"

    project.commit("by hand", files={"a": "x\n"})
    agent.ok("add", "Two", "--validate", "true")
    agent.works()
    assert project.enable_flag
    found(ctx)
    assert not project.enable_flag


@pytest.mark.release
@pytest.mark.usefixtures("red")
def test_a_repair_that_is_finished_in_a_chat_makes_red_tasks_unknown(project: Project, agent: Agent) -> None:
    agent.ok("add", "Repair", "--validate", "test -f a")
    project.edit_task("task-002", repairs="task-001")
    agent.ok("claim")
    project.put("a")

    assert agent.ok("finish")["stop"] == {"reason": "done"}

    assert "recheck" not in project.task("task-001")

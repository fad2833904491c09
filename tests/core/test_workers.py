"""Concurrent mode: leases, take-overs, late workers, and a work tree for each."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from harness_lib.core import ownership
from harness_lib.core.context import Context
from tests.conftest import for_release
from tests.system.git.gitrepo import sh
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project
from tests.verbs.project import own_work_tree as worker


@pytest.fixture
def shared(make_project: Make) -> Project:
    project = make_project(mode="concurrent")
    person = project.agent("person")
    for title in ("One", "Two", "Three"):
        person.ok("add", title, "--validate", "test -f done")
    return project


def put(agent: Agent, name: str, text: str = "x\n") -> Path:
    (agent.cwd / name).write_text(text)
    return agent.cwd / name


@pytest.mark.parametrize("is_tracked", [False, True])
def test_each_gets_another_task_and_a_lease(shared: Project, *, is_tracked: bool) -> None:
    """Although git may have put the list into every work tree: docs/ci.md has it committed."""
    if is_tracked:
        shared.git("add", "-f", "harness-tasks.json")
        shared.git("commit", "-q", "-m", "For CI")
    a, b = worker(shared, "a"), worker(shared, "b")

    taken = [agent.ok("claim")["task"]["id"] for agent in (a, b)]

    assert taken == ["task-001", "task-002"]
    assert shared.task("task-001")["lease_expires_at"]
    assert [(s["number"], s["worker"]) for s in shared.state["sessions"]] == [(1, "a"), (2, "b")]
    put(b, "done")
    if is_tracked:
        put(b, "harness-tasks.json", "{}")
    b.ok("finish")
    assert shared.git("show", "--format=", "--name-only", "b") == "done"
    assert shared.task("task-002")["status"] == "completed"
    a.ok("stop")
    assert [s["worker"] for s in shared.state["sessions"]] == ["b"]


def test_what_the_final_check_says_is_about_the_work_tree_where_it_was_typed(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    for title in ("a", "b"):
        project.agent("person").ok("add", title, "--validate", f"test -f {title}")
    a, b = worker(project, "a"), worker(project, "b")
    for agent, name in ((a, "a"), (b, "b")):
        agent.ok("claim")
        put(agent, name)
        agent.ok("finish")

    said = b.ok("validate", "--all", "--committed")["message"]

    assert "1 of 2 checks" in said
    assert "finished elsewhere: task-001" in said
    assert "HEAD does not have" not in said
    assert "HEAD does not have" in project.agent("person").ok("status")["message"]
    assert "finished elsewhere" in b.ok("status")["message"]


def test_one_worktree_has_one_worker(shared: Project) -> None:
    """The other one that is advised can be made."""
    a = worker(shared, "worker-2")
    a.ok("claim")
    put(a, "work.txt")
    intruder = shared.agent("intruder", a.cwd)

    error = intruder.fails(5, "claim")["error"]

    assert "worker-2 works on task-001" in error["message"]
    assert (a.cwd / "work.txt").exists()
    assert shared.task("task-002")["status"] == "pending"
    command = error["hint"].partition("(")[2].partition(")")[0]
    sh(a.cwd, *shlex.split(command)[1:])
    assert (shared.top.parent / "worker-3").is_dir()


@pytest.mark.parametrize("mode", ["concurrent", *for_release("exclusive")])
def test_a_task_is_ended_in_the_work_tree_that_it_was_claimed_in(make_project: Make, mode: str) -> None:
    """An agent that has changed its directory would have the user's checkout checked and rolled back."""
    project = make_project(mode=mode)
    project.agent("person").ok("add", "One", "--validate", "test -f done")
    agent = worker(project, "a")
    agent.ok("claim")
    put(agent, "done")
    project.put("tracked.txt", "the user's\n")
    elsewhere = project.agent("a", project.top)
    before = project.file.read_bytes()

    for words in (("finish",), ("checkpoint", "1/2", "x"), ("fail", "--message", "x"), ("release",)):
        error = elsewhere.fails(2, *words)["error"]
        assert error["hint"] == f"Type it there: cd {agent.cwd}"
    assert project.file.read_bytes() == before
    for going_on in ("start", "claim"):
        assert elsewhere.ok(going_on)["next"] == f"cd {agent.cwd}"

    # Both renew the lease of the claim.
    lease = rb'"lease_expires_at": "[^"]*"'
    assert re.sub(lease, b"", project.file.read_bytes()) == re.sub(lease, b"", before)
    assert (project.git("branch", "--show-current"), project.read("tracked.txt")) == ("main", "the user's\n")
    assert agent.ok("finish")["task"]["status"] == "completed"


def test_a_work_tree_that_was_moved_ends_its_task_and_one_that_is_gone_does_not(shared: Project) -> None:
    a, b = worker(shared, "a"), worker(shared, "b")
    for agent in (a, b):
        agent.ok("claim")
        put(agent, "done")
    shared.git("worktree", "move", str(a.cwd), str(a.cwd) + "-moved")
    shared.git("worktree", "remove", "--force", str(b.cwd))
    elsewhere = shared.agent("b", shared.top)

    assert shared.agent("a", a.cwd.with_name("a-moved")).ok("finish")["task"]["status"] == "completed"
    assert "is gone" in elsewhere.fails(2, "release")["error"]["message"]
    for verb in ("start", "claim"):
        reply = elsewhere.ok(verb)
        assert ("is gone" in reply["message"], reply["next"]) == (True, "harness stop")
    assert shared.git("branch", "--show-current") == "main"
    assert "task-002 stays in progress; the next session recovers it." in elsewhere.ok("stop")["message"]
    assert "mark failed" in elsewhere.ok("start")["recovered"][0]


def test_a_late_worker_changes_nothing(shared: Project) -> None:
    """Its lease ran out, another one took the task over: every verb is exit 6, its files stay its own."""
    late = worker(shared, "late")
    late.ok("claim", "task-001")
    put(late, "work.txt", "precious\n")
    shared.clock.pass_(hours=1)
    taker = worker(shared, "taker")
    taker.ok("start")
    taker.ok("claim", "task-001")
    before = shared.file.read_bytes()

    for verb in (
        ("finish", "task-001"),
        ("checkpoint", "task-001", "1/2", "x"),
        ("fail", "task-001", "--message", "x"),
        ("release", "task-001"),
        # Without a name it is the task that was its own: the loop of the skill names none at a checkpoint.
        ("finish",),
        ("checkpoint", "1/2", "x"),
    ):
        assert late.fails(6, *verb)["error"]["kind"] == "LEASE_LOST"

    assert shared.file.read_bytes() == before
    assert (late.cwd / "work.txt").read_text() == "precious\n"
    put(taker, "done")
    taker.ok("finish")
    late.fails(6, "finish", "task-001")


def test_the_task_that_a_worker_has_lost_is_none_that_it_has_failed(shared: Project) -> None:
    """Else its work would be kept as that of another task."""
    late, taker = worker(shared, "late"), worker(shared, "taker")
    late.ok("claim", "task-001")
    late.ok("fail", "--message", "x")
    taker.ok("claim", "task-001")
    assert late.fails(2, "finish")["error"]["message"] == "You hold no task."
    late.ok("claim", "task-002")
    shared.clock.pass_(hours=1)
    taker.ok("checkpoint", "1/2", "x")
    other = worker(shared, "other")
    other.ok("start")
    other.ok("claim", "task-002")

    assert "Task task-002 is held by other" in late.fails(6, "finish")["error"]["message"]


def test_of_a_worker_that_lives_the_files_are_left_and_its_work_is_kept(shared: Project) -> None:
    late = worker(shared, "late")
    late.ok("claim", "task-001")
    put(late, "work.txt", "precious\n")
    put(late, "tracked.txt", "precious too\n")
    shared.clock.pass_(hours=1)

    line = worker(shared, "taker").ok("start")["recovered"][0]

    assert "leave the work tree to its worker" in line
    assert (late.cwd / "work.txt").exists()
    assert (late.cwd / "tracked.txt").read_text() == "precious too\n"
    assert shared.git("show", "refs/harness/rescue/task-001/1:work.txt") == "precious"
    assert shared.task()["attempts"] == 1


def test_a_claim_without_a_lease_time_is_never_stale(shared: Project) -> None:
    a, b = worker(shared, "a"), worker(shared, "b")
    a.ok("claim", "task-001")
    shared.edit_task("task-001", lease_expires_at=None)
    shared.clock.pass_(days=1)

    b.ok("start")
    b.fails(6, "release", "task-001")

    assert shared.task()["claimed_by"] == "a"


@pytest.mark.parametrize(("who", "lease"), [(None, None), ("legacy", "2035-01-01T00:00:00Z")])
def test_the_user_ends_a_claim_without_a_session(shared: Project, who: str | None, lease: str | None) -> None:
    b = worker(shared, "b")
    b.ok("claim", "task-001")
    put(b, "work.txt")
    shared.edit_task("task-001", claimed_by=who, lease_expires_at=lease)
    assert b.ok("start")["recovered"] == []
    b.fails(6, "release", "task-001")

    assert shared.agent("person").ok("release", "task-001")["next"] == "harness start"
    assert f"the lease of {who or 'nobody'} ran out" in worker(shared, "c").ok("start")["recovered"][0]
    assert (b.cwd / "work.txt").exists()


@pytest.mark.parametrize("words", [("claim", "--wait", "600"), *for_release((("claim",),))])
def test_who_waits_takes_over_what_a_silent_worker_holds(shared: Project, words: tuple[str, ...]) -> None:
    """Also in a session that is open: it was opened before the lease ran out."""
    a, late = worker(shared, "a"), worker(shared, "late")
    late.ok("claim", "task-002")
    put(late, "work.txt", "precious\n")
    put(a, "done")
    for _ in range(2):
        a.ok("claim")
        a.ok("finish")
    waits = a.fails(9, "claim")
    assert (waits["stop"], waits["next"]) == ({"reason": "waiting"}, "harness claim --wait 600")
    shared.clock.pass_(hours=1)

    reply = a.ok(*words)

    assert reply["task"]["id"] == "task-002"
    assert "the lease of late ran out" in reply["recovered"][0]
    assert shared.git("show", "refs/harness/rescue/task-002/1:work.txt") == "precious"


def test_the_commit_of_a_dependency_must_be_there(shared: Project) -> None:
    after = {"id": "after", "status": "pending", "priority": "P0", "depends_on": ["task-001"]}
    shared.edit(tasks=[*shared.state["tasks"], {**after, "validation": {"command": "true"}}])
    a, b = worker(shared, "a"), worker(shared, "b")
    a.ok("claim", "task-001")
    put(a, "done")
    a.ok("finish")
    commit = shared.task()["completed_commit"]

    error = b.fails(8, "claim", "after")["error"]

    assert commit[:12] in error["message"]
    assert f"git merge {commit[:12]}" in error["hint"]
    assert shared.task("after")["status"] == "pending"
    shared.git("-C", str(b.cwd), "merge", "-q", commit)
    b.ok("claim", "after")


def test_stop_hands_what_it_holds_to_the_others_at_once(shared: Project) -> None:
    a, b = worker(shared, "a"), worker(shared, "b")
    a.ok("claim", "task-001")
    put(a, "work.txt")
    a.ok("stop")

    b.ok("start")

    assert (shared.task()["status"], shared.task()["attempts"]) == ("pending", 0)
    assert shared.git("show", "refs/harness/rescue/task-001/1:work.txt") == "x"
    assert not (a.cwd / "work.txt").exists()
    b.ok("claim", "task-001")
    assert (b.cwd / "work.txt").exists()


def test_a_state_root_outside_of_every_repository(make_project: Make, tmp_path: Path) -> None:
    """The protocol allows any directory: HARNESS_STATE_ROOT=/abs/path/to/state-root."""
    project = make_project(bare=True)
    root = tmp_path / "list of tasks"
    root.mkdir()
    task = '{"id": "a", "status": "pending", "validation": {"command": "test -f done"}}'
    (root / "harness-tasks.json").write_text(f'{{"tasks": [{task}]}}')
    agent = project.agent(HARNESS_STATE_ROOT=str(root))
    agent.trusts()

    agent.ok("claim")
    project.put("done")
    agent.ok("finish")

    assert project.in_commit() == ["done", "tracked.txt"]


def test_the_user_without_work_is_told_who_holds_a_task_and_until_when(shared: Project) -> None:
    a = worker(shared, "a")
    a.ok("claim", "task-001")
    until = shared.task()["lease_expires_at"]

    error = shared.agent("person").fails(6, "finish", "task-001")["error"]

    assert f"held by a since {shared.task()['claimed_at']}, leased until {until}" in error["message"]
    assert "You hold no task here" in error["message"]
    assert "Drop" not in error["hint"]
    assert "harness stop --session 1" in error["hint"]
    b = worker(shared, "b")
    b.ok("claim")
    # Its own work is in the work tree, which is not to be cleaned.
    assert b.fails(6, "finish", "task-001")["error"]["hint"] == "You hold task-002: harness finish task-002"


def test_whoever_is_late_and_has_changed_nothing_leaves_no_work(project: Project) -> None:
    ctx = Context(env={}, cwd=project.top)
    late = "refs/harness/rescue/task-001/late-1"

    assert (ownership._keep(ctx, late), ctx.git.ref(late)) == ("Your work tree has no changes.", None)
    project.put("new", "x\n")
    assert "harness rescue show task-001/late-1" in ownership._keep(ctx, late)

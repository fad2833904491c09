"""An interrupted attempt is not a failed one: its work stays for whoever comes back to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.system.git.gitrepo import put
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin


def conversation(project: Project) -> Agent:
    """Return an agent that its host's session id names; `--resume` keeps the id."""
    return project.agent("abc-1", HARNESS_WORKER_ID=None, CLAUDE_CODE_SESSION_ID="abc-1")


def test_what_the_check_of_the_recovery_has_changed_is_undone_and_kept(project: Project) -> None:
    """Whoever goes on finds the work as it was left, not as a check has left it."""
    agent = project.agent()
    begin(agent, "echo of the check >> tracked.txt; echo of the check > half.txt; false")
    project.put("half.txt", "half\n")
    project.put("tracked.txt", "two\n")
    agent.die()

    project.agent("next").ok("start")

    assert (project.read("half.txt"), project.read("tracked.txt")) == ("half\n", "two\n")
    kept = next(ref for ref in project.refs() if ref.endswith("-check"))
    assert project.git("show", f"{kept}:tracked.txt") == "two\nof the check"


def test_three_rounds_of_work_checkpoint_stop_and_start_lose_nothing(project: Project) -> None:
    begin(project.agent("round-0"))
    worker = project.agents[-1]
    for number in range(1, 4):
        project.put(f"part-{number}.txt")
        worker.ok("checkpoint", "task-001", f"{number}/4", "one more part")
        worker.ok("stop")
        worker = project.agent(f"round-{number}")
        assert worker.ok("start")["task"]["id"] == "task-001"

    task = project.task()
    assert (task["status"], task["attempts"]) == ("in_progress", 0)
    project.put("done")
    worker.ok("finish")
    assert {"part-1.txt", "part-2.txt", "part-3.txt", "done"} <= set(project.in_commit())


def test_from_a_checkpoint_work_goes_on_and_no_check_is_asked(project: Project, agent: Agent) -> None:
    begin(agent, "touch asked; test -f done")
    agent.ok("checkpoint", "task-001", "2/4", "half")
    project.put("half.txt", "half\n")

    agent.ok("stop")

    last = project.task()["checkpoints"][-1]
    assert (last["step"], last["total"]) == (2, 4)
    assert "half.txt" in project.in_commit(last["tree"])
    assert project.grep("CHECKPOINT [task-001] step=2/4", "harness stop")
    following = project.agent("next")
    assert "resume from last step" in following.ok("start")["recovered"][0]
    project.put("more.txt")
    following.ok("checkpoint", "task-001", "3/4", "more")
    following.die()
    assert "resume from last step" in project.agent("last").ok("start")["recovered"][0]
    assert (project.read("half.txt"), project.read("more.txt")) == ("half\n", "x\n")
    assert not (project.top / "asked").exists()
    assert project.task()["attempts"] == 0


def test_stop_ends_the_session_where_no_checkpoint_can_be_taken(project: Project, agent: Agent) -> None:
    """It works at any moment, also in a repository that git itself cannot read."""
    begin(agent)
    (project.top / ".git/index").write_bytes(b"no index")

    said = agent("stop", "--json")

    assert said.code == 0, said.text
    assert project.state["sessions"] == []
    assert any("checkpoint" in warning for warning in said.json["warnings"])


@pytest.mark.parametrize("check", [*for_release("test -f done"), "date +%N > left-by-check; test -f done"])
def test_the_third_interruption_without_progress_is_a_failed_attempt(project: Project, check: str) -> None:
    """What a check leaves behind is none."""
    worker = project.agent("w0")
    begin(worker, check)
    project.put("half.txt", "half\n")
    for number in (1, 2):
        worker.die()
        worker = project.agent(f"w{number}")
        worker.ok("start")
        assert project.task()["interruptions"] == number
        assert project.task()["attempts"] == 0
    worker.die()

    assert "mark failed" in project.agent("w3").ok("start")["recovered"][0]

    task = project.task()
    assert (task["status"], task["attempts"]) == ("failed", 1)
    assert task["error_log"][0].startswith("[SESSION_TIMEOUT]")
    assert not (project.top / "half.txt").exists()
    assert project.git("show", "refs/harness/rescue/task-001/1:half.txt") == "half"


@pytest.mark.parametrize("progress", ["the tree", *for_release("a checkpoint")])
def test_progress_between_interruptions_begins_the_count_anew(project: Project, progress: str) -> None:
    worker = project.agent("w0")
    begin(worker)
    project.put("half.txt", "half\n")
    for number in range(1, 6):
        if progress == "the tree":
            project.put("half.txt", f"{number}\n")
        elif number > 1:
            worker.ok("checkpoint", "task-001", f"{number}/9", "thought about it")
        worker.die()
        worker = project.agent(f"w{number}")
        worker.ok("start")

    assert (project.task()["attempts"], project.task()["interruptions"]) == (0, 5)


# -- who comes back to an attempt: the conversation that held it, another one of its name, its living owner


OTHERS = for_release(("start", "concurrent"), ("claim", "exclusive"))


@pytest.mark.parametrize(("verb", "mode"), [("start", "exclusive"), ("claim", "concurrent"), *OTHERS])
def test_the_same_conversation_holds_its_task_again(make_project: Make, mode: str, verb: str) -> None:
    project = make_project(mode=mode)
    agent = conversation(project)
    begin(agent, "touch asked; test -f done")
    project.put("half.txt", "half\n")
    before = project.task()
    agent.die()
    agent.wake()

    reply = agent.ok(verb)

    after = project.task()
    renewed = {"lease_expires_at": after.get("lease_expires_at")}
    assert {**before, **renewed} == {**after, **renewed}
    assert (reply["task"]["id"], reply["session"]) == ("task-001", 1)
    # With a lease it may be somebody else's before it is finished.
    assert reply["next"] == ("harness finish task-001" if mode == "concurrent" else "harness finish")
    assert project.read("half.txt") == "half\n"
    assert not (project.top / "asked").exists()
    assert not project.grep("RECOVERY")
    # The process that stands for it now is the new one: nobody takes it for dead.
    assert [s["pid"] for s in project.state["sessions"]] == [agent.process.pid]
    if mode == "exclusive":
        project.agent("other").fails(5, "start")


def test_the_same_conversation_goes_on_after_its_own_stop(project: Project) -> None:
    agent = conversation(project)
    begin(agent)
    project.put("half.txt", "half\n")
    agent.ok("stop")
    project.put("half.txt", "three quarters\n")
    agent.die()
    agent.wake()

    reply = agent.ok("start")

    assert reply["task"]["id"] == "task-001"
    assert reply["recovered"] == []
    assert (project.task()["attempts"], project.read("half.txt")) == (0, "three quarters\n")


def test_another_conversation_of_the_same_worker_name_recovers_what_was_left(project: Project) -> None:
    """HARNESS_WORKER_ID may stand in a shell's profile: the name alone proves nothing."""
    first = project.agent("me", CLAUDE_CODE_SESSION_ID="abc-1")
    begin(first)
    project.put("half.txt", "half\n")
    # As git-annex guards what it keeps.
    (guarded := project.top / ".git/annex").mkdir(0o555)
    first.die()

    second = project.agent("me", CLAUDE_CODE_SESSION_ID="abc-2")

    assert "resume" in second.ok("start")["recovered"][0]
    assert project.task()["interruptions"] == 1
    assert guarded.stat().st_mode & 0o777 == 0o555


def test_a_live_owner_whose_finish_was_killed_has_it_settled_by_start(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    project.put("done")
    base = project.head
    tree_commit = _commit_that_finish_prepared(project)
    at = project.task()["claimed_at"]
    intent = {"action": "commit", "at": at, "base": base, "head": base, "commit": tree_commit}
    project.edit_task(intent=intent)
    # A merge of the user's comes first.
    project.put(".git/MERGE_HEAD", f"{base}\n")
    for verb in ("start", "finish"):
        assert "A merge is under way" in agent.fails(8, verb)["error"]["message"]
    (project.top / ".git/MERGE_HEAD").unlink()

    reply = agent.fails(9, "start")

    assert "finish the interrupted commit" in reply["message"]
    assert project.task()["status"] == "completed"
    assert project.head == tree_commit


def _commit_that_finish_prepared(project: Project) -> str:
    index = {"GIT_INDEX_FILE": str(project.top / ".git/private")}
    project.git("read-tree", "HEAD", env=index)
    project.git("add", "done", env=index)
    tree = project.git("write-tree", env=index)
    return project.git("commit-tree", tree, "-p", "HEAD", "-m", "[task-001] One")


# -- work that cannot stay: rescued, and put back later, with no files of the user


def elsewhere(make_project: Make) -> tuple[Project, Path]:
    """Return a project with a dead worker's half-done work in a work tree of its own."""
    project = make_project(mode="concurrent")
    project.git("worktree", "add", "-q", "-b", "side", "../side")
    place = project.top.parent / "side"
    put(place / "private.txt", "mine\n")
    worker = project.agent("worker", place)
    begin(worker)
    put(place / "half.txt", "half\n")
    put(place / "tracked.txt", "two\n")
    worker.die()
    return project, place


def test_work_in_another_work_tree_is_rescued_and_put_back_into_the_next_attempt(make_project: Make) -> None:
    """What was untracked before is the user's, and goes nowhere with the work."""
    project, place = elsewhere(make_project)
    other = project.agent("other")

    other.ok("start")

    task = project.task()
    assert (task["status"], task["attempts"], task["interruptions"]) == ("pending", 0, 1)
    assert not (place / "half.txt").exists()
    assert project.read("tracked.txt") == "one\n"
    reply = other.ok("claim")
    assert (project.read("half.txt"), project.read("tracked.txt")) == ("half\n", "two\n")
    assert "stands in this work tree" in reply["message"]
    assert (place / "private.txt").read_text() == "mine\n"
    assert not (project.top / "private.txt").exists()
    project.put("done")
    other.ok("finish")
    assert {"half.txt", "done"} <= set(project.in_commit())


def test_work_that_was_not_yet_put_back_when_the_next_one_died_is_put_back_later(make_project: Make) -> None:
    project, _ = elsewhere(make_project)
    other = project.agent("other")
    other.ok("start")
    other.ok("claim")
    (project.top / "half.txt").unlink()
    project.git("checkout", "-q", "tracked.txt")
    other.die()

    third = project.agent("third")
    third.ok("start")

    assert project.task()["attempts"] == 0
    assert (project.read("half.txt"), project.read("tracked.txt")) == ("half\n", "two\n")


def test_on_another_branch_work_goes_with_the_task_and_not_into_that_branch(project: Project) -> None:
    agent = project.agent()
    begin(agent)
    project.put("half.txt", "half\n")
    agent.die()
    project.git("checkout", "-q", "-b", "hotfix")

    other = project.agent("other")
    other.ok("start")

    task = project.task()
    assert (task["status"], task["attempts"], task["interruptions"]) == ("pending", 0, 1)
    assert ".." not in task["handback"]["reason"]
    other.ok("claim")
    assert project.read("half.txt") == "half\n"

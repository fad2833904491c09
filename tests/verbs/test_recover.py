"""What an interrupted attempt left is finished, gone on with or failed, and nothing of it is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.system.git.gitrepo import commit_all, put, sh
from tests.verbs.project import Agent, Project, begin, own_work_tree


def recover(project: Project, agent: Agent, mode: str = "exclusive") -> str:
    """Let the agent die and another one start; in concurrent mode the lease has to end first."""
    agent.die()
    if mode == "concurrent":
        project.clock.pass_(hours=1)
    reply = project.agent("next")("start", "--json").json
    lines = reply.get("recovered", [])
    assert len(lines) == 1, reply
    assert len(project.grep("RECOVERY [task-001] action=", "reason=")) == 1
    # What is not committed is told as recovery has left it.
    assert reply["git"]["diff_stat"] == project.git("diff", "--stat").strip(), reply
    if project.task()["status"] == "in_progress":
        assert reply["next"].startswith("harness finish")
        assert "interrupted" in reply["message"]
    return str(lines[0])


def test_no_change_no_commit_no_checkpoint_fails(project: Project, agent: Agent) -> None:
    """What was untracked before is no change."""
    project.put("mine.txt", "mine\n")
    begin(agent)

    assert "No progress detected" in recover(project, agent)

    task = project.task()
    assert (task["status"], task["attempts"]) == ("failed", 1)
    assert task["error_log"] == ["[SESSION_TIMEOUT] No progress detected"]
    assert project.read("mine.txt") == "mine\n"
    assert len(project.grep("[SESSION-1] WARN", "gone without")) == 1
    assert [each["worker"] for each in project.state["sessions"]] == ["next"]


def test_checkpoints_that_the_files_reflect_are_resumed(project: Project, holder: Agent) -> None:
    """The work was ignored by git or committed elsewhere: no change to see, but the content is the same."""
    holder.ok("checkpoint", "task-001", "1/2", "looked around, wrote nothing")

    assert "resume from last step" in recover(project, holder)

    task = project.task()
    assert (task["status"], task["attempts"], task["claimed_by"]) == ("in_progress", 0, "next")
    assert len(task["checkpoints"]) == 1


def test_commits_under_another_message_are_work_as_changes_are(project: Project, holder: Agent) -> None:
    """The check decides about them, whatever they say; what is as at the last checkpoint goes on unasked."""
    half = project.commit("about [task-0011] and task-001x", files={"half.txt": "half\n"})

    assert ": resume (" in recover(project, holder)

    task = project.task()
    assert (task["status"], task["attempts"], project.head) == ("in_progress", 0, half)
    following = next(each for each in project.agents if each.name == "next")
    following.ok("checkpoint", "1/2", "half")
    following.die()
    assert "resume from last step" in project.agent("third").ok("start")["recovered"][0]
    project.commit("All of it", files={"done": "x\n"})
    project.agents[-1].die()
    assert "mark completed" in project.agent("last").fails(9, "start")["recovered"][0]
    assert project.task()["status"] == "completed"
    assert project.in_commit("HEAD~1") == ["half.txt", "tracked.txt"]


def test_checkpoints_whose_work_is_gone_fail(project: Project, holder: Agent) -> None:
    project.put("tracked.txt", "half\n")
    holder.ok("checkpoint", "task-001", "1/2", "half")
    project.git("checkout", "tracked.txt")

    assert "work was lost" in recover(project, holder)

    assert project.task()["status"] == "failed"
    assert project.task()["error_log"][0].startswith("[SESSION_TIMEOUT]")


def test_a_checkpoint_without_a_tree_is_no_evidence(project: Project, holder: Agent) -> None:
    project.edit_task(checkpoints=[{"step": 1, "total": 2, "description": "believe me"}])

    assert "mark failed" in recover(project, holder)


@pytest.mark.parametrize(
    ("left", "mode", "passes"),
    [
        ("both", "concurrent", True),
        ("both", "concurrent", False),
        ("changes", "exclusive", False),
        *for_release(
            ("changes", "exclusive", True), ("commits", "exclusive", True), ("commits", "exclusive", False)
        ),
    ],
)
def test_what_is_there_is_judged_by_the_check(
    project: Project, agent: Agent, mode: str, left: str, passes: bool
) -> None:
    project.configure(concurrency_mode=mode)
    begin(agent, "test -f done" if passes else "false")
    base = project.head
    if left != "changes":
        project.commit("[task-001] part one", files={"committed.txt": "c\n"})
    project.put("done")
    if left == "commits":
        project.commit("[task-001] part two")
    else:
        project.put("tracked.txt", "two\n")

    line = recover(project, agent, mode)

    task = project.task()
    if passes:
        assert "mark completed" in line
        assert task["status"] == "completed"
        assert project.git("show", "HEAD:done") == "x"
        assert project.git("status", "--porcelain") == ""
        return
    assert ": resume (" in line
    assert (task["status"], task["attempts"], task["interruptions"]) == ("in_progress", 0, 1)
    assert (project.head == base) == (left == "changes")
    assert project.read("done") == "x\n"
    assert ("committed.txt" in project.files) == (left != "changes")


def test_nobody_waits_for_the_lease_of_a_worker_that_is_proven_dead(project: Project, agent: Agent) -> None:
    project.configure(concurrency_mode="concurrent")
    begin(agent)
    project.put("work.txt", "work\n")
    agent.die()
    project.edit_task(lease_expires_at="2999-01-01T00:00:00Z")

    project.agent("other").ok("start")

    assert (project.task()["claimed_by"], project.task()["attempts"]) == ("other", 0)
    assert project.read("work.txt") == "work\n"


def test_recovery_by_a_check_that_nobody_trusts_touches_nothing(project: Project, holder: Agent) -> None:
    project.put("work.txt", "work\n")
    shutil.rmtree(project.top / ".git/harness")
    holder.die()
    other = project.agent("other")

    assert "harness trust" in other.fails(8, "start")["error"]["hint"]

    assert project.read("work.txt") == "work\n"
    assert (project.task()["status"], project.task()["attempts"]) == ("in_progress", 0)
    other.trusts()
    assert other("start").code == 0
    assert (project.task()["status"], project.task()["claimed_by"]) == ("in_progress", "other")
    assert project.read("work.txt") == "work\n"


def test_recovery_without_a_check_is_config_and_touches_nothing(project: Project, agent: Agent) -> None:
    agent.ok("add", "One")
    agent.ok("claim")
    project.put("work.txt", "work\n")
    agent.die()

    project.agent("next").fails(3, "start")

    assert project.read("work.txt") == "work\n"
    assert project.state["sessions"][0]["halt"].startswith("CONFIG")


@pytest.mark.parametrize("verb", ["finish", "start"])
def test_a_lost_base_rolls_nothing_back_and_ends_attempts(project: Project, agent: Agent, verb: str) -> None:
    begin(agent, "false")
    project.put("work.txt", "work\n")
    project.edit_task(started_at_commit="0" * 40)
    before = project.files

    if verb == "start":
        recover(project, agent)
    else:
        reply = agent.fails(1, "finish")
        assert "gone" in " ".join(reply["warnings"])
        assert project.grep("ROLLBACK", "not possible", "is gone")
        assert project.git("show", f"{reply['rescue']}:work.txt") == "work"

    assert project.files == before
    assert project.task()["attempts"] == project.task()["max_attempts"] == 3


@pytest.mark.parametrize("verb", ["finish", "start"])
def test_work_whose_base_is_gone_is_completed_if_it_passes(project: Project, agent: Agent, verb: str) -> None:
    begin(agent, "true")
    project.put("work.txt", "work\n")
    project.edit_task(started_at_commit="0" * 40)
    if verb == "start":
        assert "mark completed" in recover(project, agent)
        assert project.git("show", "HEAD:work.txt") == "work"
        return

    project.put(".env", "KEY=1\n")
    assert "harness accept task-001 --path .env" in agent.fails(8, "finish")["error"]["message"]
    (project.top / ".env").unlink()

    task = agent.ok("finish")["task"]

    gone = "task-001: the commit that it began with is gone, so what it has changed is not known"
    assert (task["status"], task["look_at"]) == ("completed", [gone])
    assert project.git("show", "HEAD:work.txt") == "work"


def test_recover_is_a_verb_too_and_says_when_there_is_nothing(project: Project, one: Agent) -> None:
    one.ok("start")

    assert "Nothing was interrupted" in one.ok("recover")["message"]
    one.ok("claim")
    assert one.ok("recover")["recovered"] == []
    assert project.task()["status"] == "in_progress"


# -- an attempt that was made in another place


def cloned(project: Project) -> tuple[Project, Agent]:
    """Return a clone of a project, and a worker in it, whose list is in the project."""
    project.git("clone", "-q", ".", "../clone")
    clone = Project(project.top.parent / "clone", project.clock)
    worker = project.agent("worker", clone.top, HARNESS_STATE_ROOT=str(project.top))
    worker.ok("add", "One", "--validate", "false")
    return clone, worker


@pytest.mark.parametrize("steps", ["commit", "checkpoint", "checkpoint commit", "commit checkpoint"])
def test_work_outlives_its_work_tree_where_git_has_it(shared: Project, steps: str) -> None:
    """The last of it goes to the next attempt at no cost, like all work that was interrupted elsewhere."""
    worker = own_work_tree(shared, "side")
    put(worker.cwd / "mine.txt", "untracked before the claim\n")
    begin(worker, "test -f work.txt && test -f more.txt")
    *_, last = steps.split()
    for step in steps.split():
        put(worker.cwd / "work.txt", f"{step}\n")
        if step == "commit":
            sh(worker.cwd, "add", "work.txt")
            now = {"GIT_COMMITTER_DATE": shared.clock.now().isoformat()}
            sh(worker.cwd, "commit", "-qm", "Its own words", env=now)
        else:
            worker.ok("checkpoint", "1/2", "half of it")
        shared.clock.pass_(seconds=2)
    worker.die()
    shared.git("worktree", "remove", "--force", "../side")
    other = shared.agent("other")

    (line,) = other.ok("start")["recovered"]

    assert "keep the work for the next attempt" in line
    assert (shared.task()["status"], shared.task()["attempts"]) == ("pending", 0)
    assert "that work stands in this work tree" in other.ok("claim")["message"]
    assert shared.read("work.txt") == f"{last}\n"
    assert not (shared.top / "mine.txt").exists()
    other.finishes({"more.txt": "x\n"})


@pytest.mark.parametrize("action", ["commit", "merge"])
def test_checked_work_of_a_lost_work_tree_goes_to_the_next_attempt(shared: Project, action: str) -> None:
    """Its worker was killed before it had merged it."""
    worker = own_work_tree(shared, "worker")
    begin(worker, "test -f work.txt")
    put(worker.cwd / "work.txt", "work\n")
    commit_all(worker.cwd, "Its own words")
    commit = shared.git("-C", str(worker.cwd), "rev-parse", "HEAD")
    gate = {**shared.task()["gate"], "target": "refs/heads/main"}
    begun = {"action": action, "at": "2026-01-01T00:00:00Z", "base": shared.head, "commit": commit}
    shared.edit_task(gate=gate, intent=begun)
    worker.die()
    shared.git("worktree", "remove", "--force", str(worker.cwd))

    (line,) = shared.agent("other").ok("start")["recovered"]

    assert "keep the work for the next attempt" in line
    task = shared.task()
    assert (task["status"], task["attempts"]) == ("pending", 0)
    assert shared.git("rev-parse", task["handback"]["rescue"]) == commit


def test_commits_of_others_are_no_work_of_a_legacy_claim_of_an_unknown_place(shared: Project) -> None:
    """It does not record its branch, so what is on the branch here since then tells nothing."""
    shared.agent("one").ok("add", "One", "--validate", "test -f one.txt")
    claim = {"claimed_at": "2020-01-01T00:00:00Z", "lease_expires_at": "2020-01-01T01:00:00Z"}
    shared.edit_task(status="in_progress", claimed_by="old", started_at_commit=shared.head[:7], **claim)
    shared.commit(files={"of-somebody-else.txt": "x\n"})

    (line,) = shared.agent("two").ok("start")["recovered"]

    assert "mark failed" in line
    assert (shared.task()["attempts"], shared.refs()) == (1, [])


def test_a_worktree_that_is_gone_does_not_cost_somebody_elses_changes(shared: Project) -> None:
    """The dead worker's linked worktree was removed: what stands in ours is not its attempt."""
    worker = own_work_tree(shared, "side")
    begin(worker, "false")
    worker.die()
    shared.git("worktree", "remove", "--force", "../side")
    shared.put("later.txt")
    head = shared.commit("A commit after the claim")
    shared.put("tracked.txt", "my own edit\n")
    shared.put("mine.txt", "mine\n")
    before = shared.files

    reply = shared.agent("other").ok("start")

    assert "not in this repository any more" in reply["recovered"][0]
    assert (shared.files, shared.head) == (before, head)
    assert (shared.task()["status"], shared.task()["attempts"]) == ("failed", 1)


def test_a_task_of_a_clone_is_recovered_there_and_not_rolled_back_in_another_one(
    shared: Project,
) -> None:
    """HARNESS_STATE_ROOT may serve several clones; each has a work tree and a history of its own."""
    clone, worker = cloned(shared)
    shared.agent("person", clone.top, **worker.env).trusts()
    clone.commit("their base", files={"theirs.txt": "t\n"})
    worker.ok("claim")
    clone.put("work.txt", "work\n")
    worker.die()
    shared.put("tracked.txt", "my own edit\n")
    before = shared.files, clone.files
    worker.wake()

    worker.ok("start")

    assert (shared.task()["claimed_by"], shared.task()["attempts"]) == ("worker", 0)
    worker.die()
    shared.agent("other").ok("start")
    assert (shared.files, clone.files) == before
    assert shared.task()["attempts"] == 1


@pytest.mark.parametrize("verb", ["finish", "start"])
def test_work_in_a_clone_is_not_looked_for_in_the_project(project: Project, verb: str) -> None:
    """Both have the same branch, as a project and its copy have; but a clone has no list of its own."""
    _, worker = cloned(project)
    worker.ok("claim")
    project.put("tracked.txt", "my own edit\n")
    if verb == "start":
        worker.die()

    said = project.agent("worker" if verb == "finish" else "other")(verb).text

    told = "claimed in another work tree" if verb == "finish" else "not in this repository any more"
    assert told in said
    assert project.read("tracked.txt") == "my own edit\n"


def test_a_project_that_was_renamed_is_recovered(project: Project, agent: Agent, tmp_path: Path) -> None:
    begin(agent, "false")
    project.put("work.txt", "work\n")
    agent.die()
    project.top.rename(tmp_path / "renamed")
    moved = Project(tmp_path / "renamed", project.clock)
    other = project.agent("other", moved.top)
    other.trusts()

    other.ok("start")

    assert (moved.task()["status"], moved.task()["worktree"]) == ("in_progress", str(moved.top))
    assert moved.read("work.txt") == "work\n"
    assert moved.read("tracked.txt") == "one\n"
    moved.close()


@pytest.mark.parametrize("verb", ["finish", "start"])
def test_a_copied_project_goes_on(project: Project, holder: Agent, tmp_path: Path, verb: str) -> None:
    project.put("done")
    shutil.copytree(project.top, tmp_path / "copy", symlinks=True)
    copy = Project(tmp_path / "copy", project.clock)
    other = copy.agent(holder.name)
    other.trusts()
    if verb == "start":
        # The session that was copied is over.
        holder.die()

    assert "completed" in other(verb).text
    assert (copy.task()["status"], copy.in_commit()) == ("completed", ["done", "tracked.txt"])
    assert (project.task()["status"], project.in_commit()) == ("in_progress", ["tracked.txt"])
    copy.close()

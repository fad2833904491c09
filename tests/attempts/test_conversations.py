"""Who comes back to an attempt: the conversation that held it, another one of its name, its living owner."""

from __future__ import annotations

import os

import pytest

from tests.attempts.interrupting import NEVER, conversation, restart
from tests.conftest import for_release
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin

# -- the same conversation comes back


@pytest.mark.parametrize(
    ("verb", "mode"),
    [
        ("start", "exclusive"),
        ("claim", "concurrent"),
        *for_release(("start", "concurrent"), ("claim", "exclusive")),
    ],
)
def test_the_same_conversation_holds_its_task_again_and_nothing_is_changed(
    make_project: Make, mode: str, verb: str
) -> None:
    project = make_project(mode=mode)
    agent = conversation(project)
    begin(agent, "touch asked; test -f done")
    project.put("half.txt", "half\n")
    before = project.task()
    restart(agent)

    reply = agent.ok(verb)

    after = project.task()
    times = ("lease_expires_at",)
    assert {k: v for k, v in after.items() if k not in times} == {
        k: v for k, v in before.items() if k not in times
    }
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
    begin(agent, NEVER)
    project.put("half.txt", "half\n")
    agent.ok("stop")
    project.put("half.txt", "three quarters\n")
    restart(agent)

    reply = agent.ok("start")

    assert reply["task"]["id"] == "task-001"
    assert reply["recovered"] == []
    assert (project.task()["attempts"], project.read("half.txt")) == (0, "three quarters\n")


def test_another_conversation_of_the_same_worker_name_recovers_what_was_left(project: Project) -> None:
    """HARNESS_WORKER_ID may stand in a shell's profile: the name alone proves nothing."""
    first = project.agent("me", CLAUDE_CODE_SESSION_ID="abc-1")
    begin(first, NEVER)
    project.put("half.txt", "half\n")
    first.die()

    second = project.agent("me", CLAUDE_CODE_SESSION_ID="abc-2")

    assert "resume" in second.ok("start")["recovered"][0]
    assert project.task()["interruptions"] == 1


def test_a_live_owner_whose_finish_was_killed_has_it_settled_by_start(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    project.put("done")
    base = project.head
    tree_commit = _commit_that_finish_prepared(project)
    project.edit_task(
        intent={
            "action": "commit",
            "at": project.task()["claimed_at"],
            "base": base,
            "head": base,
            "commit": tree_commit,
        }
    )
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
    index = {"GIT_INDEX_FILE": os.fspath(project.top / ".git" / "private")}
    old = {name: os.environ.get(name) for name in index}
    os.environ.update(index)
    try:
        project.git("read-tree", "HEAD")
        project.git("add", "done")
        tree = project.git("write-tree")
    finally:
        for name, value in old.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    return project.git("commit-tree", tree, "-p", "HEAD", "-m", "[task-001] One")

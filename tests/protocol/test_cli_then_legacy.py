"""A list that we have made and half worked is gone on with by a legacy agent, and then by us again."""

from __future__ import annotations

import shlex
import sys

import pytest

from tests.protocol.conftest import LegacyIn
from tests.protocol.documented import require_documented, seed_task
from tests.protocol.legacy_agent import LegacyAgent
from tests.verbs.conftest import Make
from tests.verbs.project import LINE, Agent, Project


def test_after_every_command_the_legacy_protocol_can_read_it(agent: Agent, legacy: LegacyAgent) -> None:
    """Documented fields, documented types, whatever state a task is in."""
    agent.ok("add", "First", "--validate", "test -f one.txt")
    agent.ok("add", "Second", "--validate", "false", "--cleanup", "true", "--depends-on", "task-001")
    agent.ok("add", "Third", "--description", "No check yet", "--priority", "P2")
    legacy.read()
    for command in (("start",), ("claim",), ("checkpoint", "task-001", "1/2", "half")):
        agent.ok(*command)
        legacy.read()
    agent.finishes({"one.txt": "x\n"})
    legacy.read()
    agent.works(code=1)
    legacy.read()
    agent.ok("claim", "task-003")
    agent.fails(3, "finish")
    legacy.read()
    agent.ok("release")
    agent.ok("stop")

    tasks = legacy.read()["tasks"]
    assert [task["status"] for task in tasks] == ["completed", "failed", "pending"]
    assert tasks[1]["error_log"][0].startswith("[TEST_FAIL] ")
    assert legacy.read()["last_session"]


def test_half_a_list_is_gone_on_with_by_both(project: Project, agent: Agent, legacy: LegacyAgent) -> None:
    """Our agent dies in its second task; a legacy agent recovers it and fails in a third; we do the rest."""
    for number in (1, 2, 3):
        agent.ok("add", f"Task {number}", "--validate", f"test -f {number}.txt")
    project.edit(x_board={"column": "now"})
    project.edit_task("task-002", x_ticket=[1, {"two": None}])
    agent.ok("start")
    agent.works({"1.txt": "x\n"})
    agent.ok("claim")
    project.put("2.txt", "of our agent\n")
    agent.ok("checkpoint", "task-002", "1/1", "written")
    agent.die()
    fields = set(project.task("task-002"))

    legacy.start()
    assert legacy.task("task-002")["status"] == "completed"
    assert project.git("show", "HEAD:2.txt") == "of our agent"
    task = legacy.pick()
    assert task is not None
    assert task["id"] == "task-003"
    legacy.claim("task-003")
    project.put("wrong.txt")
    assert not legacy.finish("task-003")
    legacy.end()
    assert set(project.task("task-002")) == fields
    assert set(project.in_commit()) == {"tracked.txt", "1.txt", "2.txt"}

    agent.wake()
    reply = agent.ok("start")
    assert reply["session"] == 3
    # What we had claimed and the legacy protocol has ended is not done until its check has said so.
    assert ["task-002: run validation; mark completed" in line for line in reply["recovered"]] == [True]
    agent.works({"3.txt": "x\n"})
    agent.final_check()

    after = require_documented(project.state)
    assert [task["status"] for task in after["tasks"]] == ["completed"] * 3
    assert [task["attempts"] for task in after["tasks"]] == [0, 0, 1]
    assert after["x_board"] == {"column": "now"}
    assert after["tasks"][1]["x_ticket"] == [1, {"two": None}]
    assert after["sessions"] == []
    assert all(LINE.match(line) for line in project.log)


def test_its_rollback_spares_our_files(project: Project, agent: Agent, legacy: LegacyAgent) -> None:
    """The legacy resets and cleans; list, log, enable flag and generations are ignored by git and stay."""
    agent.ok("add", "Something", "--validate", "false")
    legacy.start()
    legacy.claim("task-001")
    project.put("junk.txt")
    assert not legacy.finish("task-001")
    legacy.end()

    assert not (project.top / "junk.txt").exists()
    assert project.enable_flag
    assert project.grep("ERROR", "[task-001] [TEST_FAIL]")
    assert list((project.top / ".harness/generations").iterdir())
    assert project.task()["attempts"] == 1


@pytest.mark.parametrize("status", ["failed", "completed", "pending"])
def test_what_was_under_way_is_over(project: Project, agent: Agent, legacy: LegacyAgent, status: str) -> None:
    """Killed inside a rollback, we leave an `intent`; a legacy agent does not know it and leaves it."""
    agent.ok("add", "Something", "--validate", "test -f work.txt")
    agent.ok("claim")
    under_way = {"action": "rollback", "at": "2025-07-01T10:00:00Z", "base": project.head, "rescue": None}
    project.edit_task(intent={**under_way, "category": "TEST_FAIL", "outcome": "failed"})
    agent.die()
    legacy.start()
    done = {"completed_at": "2025-07-01T11:00:00Z"} if status == "completed" else {"completed_at": None}
    legacy.edit("task-001", status=status, **done)
    legacy.end()

    agent.wake()
    agent.ok("start")
    assert project.task()["status"] == ("failed" if status == "failed" else "pending")
    agent.works({"work.txt": "x\n"})
    assert agent.final_check()["stop"] == {"reason": "done"}
    assert "intent" not in project.task()


def test_an_id_of_four_digits_does_not_confuse_either(agent: Agent, legacy: LegacyAgent) -> None:
    """The legacy sorts ids as text, we as numbers; each reads what the other wrote."""
    legacy.lock()
    document = legacy.read()
    document["tasks"] = [seed_task("task-1000"), seed_task("task-999")]
    legacy.write(document)
    legacy.unlock()

    first = legacy.pick()
    assert first is not None
    assert first["id"] == "task-1000"
    assert agent.ok("claim", "--dry-run")["task"]["id"] == "task-999"
    assert agent.ok("add", "Next")["task"]["id"] == "task-1001"
    assert [task["id"] for task in legacy.read()["tasks"]] == ["task-1000", "task-999", "task-1001"]


TAKE_OVER = """
from pathlib import Path
from tests.protocol.legacy_agent import LegacyAgent
legacy = LegacyAgent(Path.cwd())
legacy.lock()
legacy.claim("task-001", claimed_by="legacy", lease_expires_at="2035-01-01T00:00:00Z")
legacy.unlock()
"""


def test_a_claim_that_the_legacy_protocol_has_taken_over_while_our_check_ran_is_lost(
    make_project: Make,
) -> None:
    """It raises no fence, so the name decides: exit 6, nothing is committed, the work stays where it is."""
    project = make_project(mode="concurrent")
    agent = project.agent()
    project.put("take_over.py", TAKE_OVER)
    agent.ok("add", "Something", "--validate", f"{shlex.quote(sys.executable)} take_over.py")
    agent.ok("claim")
    project.put("work.txt")
    base = project.head

    assert "legacy has it" in agent.fails(6, "finish")["error"]["message"]

    task = project.task()
    assert (task["claimed_by"], task["status"], project.head) == ("legacy", "in_progress", base)
    agent.fails(6, "finish")
    agent.ok("rescue", "save", "task-001")


@pytest.mark.parametrize("check", ["true", "false"])
def test_a_list_that_git_sees_stays_uncommitted(make_project: Make, legacy_in: LegacyIn, check: str) -> None:
    """The user said no to .gitignore, and a legacy agent died while it wrote."""
    project = make_project(bare=True)
    legacy = legacy_in(project.top)
    legacy.init(seed_task("task-001", command=check))
    project.git("rm", "-q", ".gitignore")
    project.git("commit", "-q", "-m", "Hide nothing")
    project.put("harness-tasks.json.tmp", "{")
    agent = project.agent()
    agent.trusts()
    agent.ok("claim")
    project.put("work.txt")
    names = {path.name for path in project.top.glob("harness-*")}

    agent("finish")

    assert set(project.in_commit()) == {"tracked.txt"} | ({"work.txt"} if check == "true" else set())
    assert {path.name for path in project.top.glob("harness-*")} >= names
    assert project.task()["status"] == ("completed" if check == "true" else "failed")
    for ref in project.refs():
        assert project.in_commit(ref) == ["tracked.txt", "work.txt"]

"""A list that a legacy agent has made and half worked is taken over, worked on and finished by us."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import TYPED
from tests.conftest import for_release
from tests.protocol.conftest import LegacyIn, user
from tests.protocol.documented import require_documented, seed_task
from tests.protocol.legacy_agent import LegacyAgent
from tests.verbs.project import LINE, Project

FOREIGN = {"owner": "team-a", "estimate": {"hours": 3}}
WORK = "test -f work.txt"


@pytest.fixture
def legacy(bare: Project, legacy_in: LegacyIn) -> LegacyAgent:
    return legacy_in(bare.top)


def interrupted(legacy: LegacyAgent, command: str = WORK, **fields: Any) -> str:
    """Let a session of the legacy protocol die right after its claim; return the commit it started from."""
    legacy.init(seed_task("task-001", "Do the work", command, **fields))
    legacy.start()
    legacy.claim("task-001")
    legacy.crash()
    return legacy.head


def test_half_a_list_is_finished_and_nothing_of_it_is_lost(bare: Project, legacy: LegacyAgent) -> None:
    """One task done, one interrupted with checkpoints and work in the tree, two waiting; foreign keys."""
    legacy.init(
        seed_task("task-001", "First", "test -f one.txt", priority="P0", **FOREIGN),
        seed_task("task-002", "Second", "test -f two.txt", **FOREIGN),
        seed_task("task-003", "Third", "test -f three.txt", depends_on=["task-001", "task-002"]),
    )
    legacy.start()
    legacy.claim("task-001")
    bare.put("one.txt")
    assert legacy.finish("task-001")
    legacy.claim("task-002")
    legacy.checkpoint("task-002", 1, 2, "half of it")
    bare.put("two.txt")
    legacy.crash()
    before, old_log = legacy.read(), bare.log

    agent = user(bare)
    reply = agent.ok("start")

    assert "task-002" in reply["recovered"][0]
    assert bare.task("task-002")["status"] == "completed"
    assert "two.txt" in bare.in_commit()
    assert reply["task"]["id"] == "task-003"
    agent.ok("claim")
    bare.put("three.txt")
    agent.ok("finish")
    assert agent.final_check()["stop"] == {"reason": "done"}
    after = require_documented(bare.state)
    assert [task["status"] for task in after["tasks"]] == ["completed"] * 3
    assert all(task[key] == value for task in after["tasks"][:2] for key, value in FOREIGN.items())
    assert after["tasks"][0].pop("proof")
    assert after["tasks"][0].pop("recheck")["passed"]
    assert after["tasks"][0] == before["tasks"][0]
    assert after["created"] == before["created"]
    assert bare.log[: len(old_log)] == old_log
    assert all(LINE.match(line) for line in bare.log)
    assert after["session_count"] == 2
    assert not bare.enable_flag


# What was left, the check, and the status, with why it failed.
ROWS = [
    ("", "true", "failed: No progress detected"),
    ("checkpoint", "true", "failed: work was lost"),
    ("commits", WORK, "completed"),
    ("commits, checkpoint", "false", "in_progress"),
    ("changes", WORK, "completed"),
    ("changes, checkpoint", "false", "in_progress"),
    ("changes, commits", WORK, "completed"),
    ("changes, commits, checkpoint", "false", "in_progress"),
]
# An agent is answered as whoever types in a shell is: one row each for what fails, is done and goes on.
SHOWN, REPEATED = (0, 2, 7), (1, 3, 4, 5, 6)


@pytest.mark.parametrize(
    ("stand", "left", "command", "end"),
    [
        *(("shell", *row) for row in ROWS),
        *(("agent", *ROWS[n]) for n in SHOWN),
        *for_release(*(("agent", *ROWS[n]) for n in REPEATED)),
    ],
)
def test_each_row_of_the_decision_matrix(
    bare: Project, legacy: LegacyAgent, stand: str, left: str, command: str, end: str
) -> None:
    """A claim of the legacy protocol has no gate, no fence and no tree: the rows hold for it all the same.

    But for one thing: work that nobody has handed in, and whose check fails, stays and goes on.
    """
    base = interrupted(legacy, command)
    if "checkpoint" in left:
        legacy.checkpoint("task-001", 1, 2, "half")
    if "commits" in left:
        bare.commit("task-001: some work", files={"work.txt": "x\n"})
    if "changes" in left:
        bare.put("tracked.txt", "two\n")
        bare.put("work.txt", "more\n")

    agent = user(bare, stand)
    agent("start")

    task = bare.task()
    status, _, why = end.partition(": ")
    assert task["status"] == status
    assert task["fence"] == 1
    assert (status == "in_progress") == bool(task.get("gate"))
    assert bare.grep("RECOVERY", "[task-001]", 'action="', 'reason="')
    assert bare.git("branch", "--show-current") == "main"
    if status == "failed":
        assert task["attempts"] == 1
        assert why in task["error_log"][-1]
        assert (bare.head, bare.git("status", "--porcelain")) == (base, "")
        return
    assert (task["attempts"], task["error_log"]) == (0, [])
    assert (bare.git("status", "--porcelain") == "") == (status == "completed" or "changes" not in left)
    assert bare.read("work.txt") == ("more\n" if "changes" in left else "x\n")
    assert ("work.txt" in bare.in_commit()) == (status == "completed" or "commits" in left)


def test_once_failed_by_us_and_claimed_by_the_legacy_protocol_it_is_recovered(
    bare: Project, legacy: LegacyAgent
) -> None:
    """The fence of our attempt is still there, the gate is not: that is no attempt to cheat."""
    legacy.init(seed_task("task-001", "Do the work", WORK))
    agent = user(bare)
    agent.works(code=1)
    agent.ok("stop")

    legacy.start()
    legacy.claim("task-001")
    bare.put("work.txt")
    legacy.crash()
    agent("start")

    assert bare.task()["status"] == "completed", bare.task()["error_log"]
    assert "work.txt" in bare.in_commit()


@pytest.mark.parametrize("verb", ["start", "claim", "recover"])
@pytest.mark.parametrize(
    ("name", "code", "then"), [(None, 2, "harness start"), ("other", 6, "harness claim")]
)
def test_what_is_in_progress_for_nobody_is_recovered_at_once(
    bare: Project, legacy: LegacyAgent, name: str | None, code: int, then: str, verb: str
) -> None:
    """A task without a fence and a gate, under no name or one that no session of an exclusive list has."""
    interrupted(legacy)
    agent = user(bare)
    agent.ok("start")
    bare.edit_task(status="in_progress", claimed_by=name, fence=0, gate=None)
    bare.put("work.txt")
    refused = agent.fails(code, "finish", "task-001")
    assert refused["error"]["hint"].endswith(f": {then}")

    agent(verb)

    assert bare.task()["status"] == "completed", agent("status").text


def test_what_nobody_holds_waits_while_the_caller_has_a_task(bare: Project, legacy: LegacyAgent) -> None:
    """The work tree has the files of both: to undo the one would take the commit of the other away."""
    legacy.init(seed_task("task-001", "Ours", "false"), seed_task("task-002", "Theirs", WORK))
    agent = user(bare)
    agent.ok("claim")
    theirs = {"status": "in_progress", "claimed_by": "other", "started_at_commit": legacy.head}
    bare.edit_task("task-002", **theirs)
    bare.put("work.txt")

    assert agent.ok("claim")["recovered"] == agent.ok("start")["recovered"] == []
    agent("finish")
    assert "task-002" in agent.ok("claim")["recovered"][0]
    assert bare.task("task-002")["status"] == "failed"


def test_only_start_and_claim_end_the_hold_of_the_legacy_protocol(bare: Project, legacy: LegacyAgent) -> None:
    """Its hooks hold whoever works on a list without `sessions`: no other verb may write that key."""
    interrupted(legacy)
    failed = {"status": "failed", "attempts": 3, "error_log": ["[TEST_FAIL] The check failed."]}
    waits = seed_task("task-003", "Waits", depends_on=["task-002"])
    bare.edit(tasks=[bare.task(), {**seed_task("task-002"), **failed}, waits])
    user(bare)
    before = bare.file.read_bytes()
    cases = [("task-001", "shell"), ("task-002", "agent"), ("task-003", "shell")]
    for name, argv in TYPED.items():
        for task, stand in cases if name not in ("start", "claim", "run") else ():
            bare.file.write_bytes(before)
            words = [task if word.startswith("task-0") else word for word in argv]
            said = user(bare, stand, trusts=False)(*words)
            assert "sessions" not in bare.state, (words, stand, said.text)


class TestConcurrent:
    """Claims of the legacy protocol in concurrent mode: who may take them over."""

    @pytest.fixture
    def claimed(self, bare: Project, legacy: LegacyAgent) -> Project:
        """Return a project in which worker-1, of the legacy protocol, holds the task until 2035."""
        legacy.init(seed_task("task-001", "Do the work", WORK), concurrency_mode="concurrent")
        legacy.lock()
        legacy.claim("task-001", claimed_by="worker-1", lease_expires_at="2035-01-01T00:00:00Z")
        legacy.unlock()
        user(bare)
        return bare

    def test_a_valid_lease_of_another_is_left_alone(self, claimed: Project) -> None:
        before = claimed.task()

        reply = claimed.agent("worker-2").fails(9, "claim")

        assert reply["stop"] == {"reason": "waiting"}
        assert claimed.task() == before

    def test_an_ended_lease_is_taken_over(self, claimed: Project) -> None:
        """It worked in a place that we do not know: what stands in ours is not its work, and stays."""
        claimed.edit_task(lease_expires_at="2025-01-01T00:00:00Z")
        claimed.commit("Somebody's own work")
        claimed.put("work.txt")
        claimed.put("tracked.txt", "changed by the user\n")
        base, files = claimed.head, claimed.files

        claimed.agent("worker-2").ok("start")

        task = claimed.task()
        assert (task["status"], task["attempts"]) == ("failed", 1)
        assert task["error_log"][0].startswith("[SESSION_TIMEOUT] the lease of worker-1 ran out")
        assert (claimed.head, claimed.files) == (base, files)
        assert claimed.grep("RECOVERY [task-001]")

    def test_a_claim_of_ones_own_name_is_recovered(self, claimed: Project) -> None:
        claimed.put("work.txt")

        claimed.agent("worker-1")("start")

        assert claimed.task()["status"] == "completed"

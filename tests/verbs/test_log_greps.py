"""Each grep that the protocol speaks of finds in the log what it promises."""

from __future__ import annotations

import os
from typing import Any

from tests.verbs.project import LINE, Agent, Project


def grep_table(project: Project) -> dict[str, Any]:
    return {
        "errors": project.grep("ERROR"),
        "execution": project.grep("ERROR", "TASK_EXEC"),
        "session": project.grep("SESSION-1"),
        "summaries": project.grep("STATS"),
        "checkpoints": project.grep("CHECKPOINT"),
        "recoveries": project.grep("RECOVERY"),
    }


def test_each_grep_of_the_seed_finds_what_it_promises(project: Project, agent: Agent) -> None:
    agent.ok("add", "One ERROR in STATS [TASK_EXEC]", "--validate", "test -f done", "--max-attempts", "4")
    agent.ok("claim")
    agent.ok("checkpoint", "task-001", "1/2", 'said "hello"\nand went on')
    agent.fails(1, "finish")
    agent.ok("claim")
    agent.ok("fail", "task-001", "--message", "gave up\nsadly")
    agent.ok("claim")
    agent.die()
    agent.wake()
    agent.ok("start")
    agent.ok("claim")
    project.put("done")
    agent.ok("finish")
    agent.final_check()

    assert all(LINE.match(line) for line in project.log), project.log
    printed = grep_table(project)
    real = [line for line in printed["errors"] if " ERROR [task-001] [" in line]
    assert [line.split("] ")[3].strip("[]") for line in real] == ["TEST_FAIL", "TASK_EXEC", "SESSION_TIMEOUT"]
    assert [line for line in printed["execution"] if line in real] == [real[1]]
    assert len([line for line in printed["summaries"] if " STATS tasks_total=" in line]) == 2
    assert printed["checkpoints"] == project.grep(
        """CHECKPOINT [task-001] step=1/2 "said 'hello' and went on\""""
    )
    assert len(printed["recoveries"]) == 1
    assert len(printed["session"]) > 5
    assert os.linesep not in "".join(project.log)

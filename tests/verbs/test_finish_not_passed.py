"""`harness finish` of an attempt that fails its check or cheats, and of one that nobody can judge yet."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from harness_lib.attempts import baseline
from harness_lib.checks import fingerprint
from harness_lib.core.context import Context
from harness_lib.task import Task, Validation
from tests.conftest import for_release
from tests.verbs.project import Agent, Project, begin

# -- it has failed: rescue, rollback, cleanup


def test_a_failed_check_is_rescued_and_rolled_back(project: Project, agent: Agent) -> None:
    project.put("mine.txt", "mine\n")
    project.put(".gitignore", "*.log\n")
    project.git("add", ".gitignore")
    project.commit_only("Ignore")
    project.put("build.log", "ignored\n")
    base, before = project.head, project.files
    begin(agent, "echo it broke; exit 3")
    project.put("tracked.txt", "broken\n")
    project.put("new/file.txt", "new\n")
    project.put("mine.txt", "spoilt\n")
    project.git("rm", "-q", "--cached", "tracked.txt")
    project.commit_only("agent's own commit")
    reply = agent.finishes({"late.txt": "late\n"}, code=1)

    task = project.task()
    assert (task["status"], task["attempts"]) == ("failed", 1)
    assert task["error_log"] == ["[TEST_FAIL] The check failed with exit code 3. it broke"]
    assert (project.head, project.files) == (base, before)
    assert project.git("status", "--porcelain") == "?? mine.txt"
    rescue = reply["rescue"]
    assert rescue == "refs/harness/rescue/task-001/1"
    kept = {"tracked.txt": "broken", "new/file.txt": "new", "mine.txt": "spoilt", "late.txt": "late"}
    assert {name: project.git("show", f"{rescue}:{name}") for name in kept} == kept
    assert project.grep("ERROR", "[task-001]", "[TEST_FAIL]", "it broke")
    assert project.grep("ROLLBACK", "[task-001]", rescue)
    assert reply["next"] == "harness claim"
    assert "it broke" in reply["tail"]


def test_each_attempt_has_a_rescue_of_its_own_and_the_last_one_blocks(project: Project, agent: Agent) -> None:
    begin(agent, "false", "--max-attempts", "2")
    agent.ok("add", "After", "--depends-on", "task-001", "--validate", "true")
    project.put("try", "1\n")
    assert agent.fails(1, "finish")["stop"] is None
    agent.ok("claim")
    project.put("try", "2\n")

    assert agent.fails(1, "finish")["stop"] == {"reason": "blocked"}

    assert [project.git("show", f"{ref}:try") for ref in project.refs()] == ["1", "2"]
    assert project.task("task-002")["error_log"] == ["[DEPENDENCY] Blocked by failed task-001"]
    assert not project.enable_flag


def test_a_check_that_takes_too_long_is_timeout(project: Project, agent: Agent) -> None:
    begin(agent, "echo begun; exec sleep 60", "--timeout", "1", "--cleanup", "echo cleaned > cleaned.txt")

    reply = agent.fails(1, "finish")

    assert reply["verdict"] == "TIMEOUT"
    assert project.task()["error_log"] == ["[TIMEOUT] The check did not end within 1 s. begun"]
    assert project.grep("ERROR", "TIMEOUT")
    assert project.read("cleaned.txt") == "cleaned\n"


def test_the_cleanup_runs_in_the_rolled_back_tree_and_only_warns(project: Project, agent: Agent) -> None:
    begin(agent, "false", "--cleanup", "cat tracked.txt; exit 9")
    reply = agent.finishes({"tracked.txt": "broken\n"}, code=1)

    assert "ended with 9" in reply["warnings"][0]
    assert project.grep("WARN", "[task-001]", "cleanup")
    assert project.read(".harness/logs/task-001/1-cleanup.log") == "one\n"
    assert project.task()["status"] == "failed"


# -- it has changed its own gate


def test_the_check_edited_in_the_file_is_a_failure_that_names_it(project: Project, agent: Agent) -> None:
    """The list is not rolled back, so the weak check would be the next attempt's gate: the user must say."""
    begin(agent, "false")
    project.edit_task(validation={"command": "touch ran"})

    reply = agent.fails(1, "finish")

    assert "validation.command" in reply["message"]
    assert project.task()["error_log"][0].startswith("[TEST_FAIL] The attempt changed its own gate")
    assert "ran" not in project.files
    assert agent.fails(9, "claim")["stop"] == {"reason": "waiting"}
    assert "validation.command was changed" in project.task()["halt"]
    assert "harness edit task-001" in agent.fails(9, "claim", "task-001")["message"]


def test_a_protection_of_the_run_that_the_list_has_lost_is_noticed(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    ctx = Context(env=dict(os.environ), cwd=project.top)
    task = ctx.store.ask().search()[0]
    assert task.gate is not None
    protected = task._replace(gate=task.gate._replace(kept="1" * 40, protect=("LICENSE",)))

    assert baseline.differs(ctx, protected)
    baseline.keep(ctx, protected)
    assert not baseline.differs(ctx, protected)
    assert baseline.differs(ctx, task)


@pytest.mark.parametrize("is_lost", [False, True])
def test_without_its_copy_of_the_gate_it_is_believed(project: Project, agent: Agent, is_lost: bool) -> None:
    """An older harness has kept another one, or it is gone."""
    begin(agent, "true")
    (copy,) = project.top.glob(".harness/gates/task-001*")
    base = project.task()["started_at_commit"]
    copy.write_text(json.dumps({"attempt": [base, 0], "gate": ["other"], "protect": None}))
    if is_lost:
        shutil.rmtree(project.top / ".harness")
    agent.ok("finish")


TRUE = {"command": "true"}


@pytest.mark.parametrize(
    ("edited", "named"),
    [
        (lambda _: {"gate": {}}, ""),
        (lambda _: {"validation": {"command": "test -f tracked.txt", "cwd": "sub"}}, "validation.cwd"),
        (
            lambda gate: {
                "validation": TRUE,
                "gate": gate | {"command": fingerprint(Task("t", "t", validation=Validation("true")))},
            },
            "gate",
        ),
        # Where a run keeps what it protects.
        (lambda gate: {"validation": TRUE, "gate": gate | {"kept": "1" * 40}}, "validation.command"),
        *for_release((lambda _: {"gate": None}, ""), (lambda _: {"gate": {"command": "sha256:0"}}, "")),
    ],
)
def test_a_gate_that_was_changed_with_its_check_or_without_it_is_a_failure(
    project: Project, agent: Agent, edited: Callable[[dict[str, Any]], dict[str, Any]], named: str
) -> None:
    project.commit(files={"sub/tracked.txt": "x\n"})
    begin(agent, "test -f tracked.txt")
    project.edit_task(**edited(project.task()["gate"]))
    agent.ok("checkpoint", "task-001", "1/2", "which writes the list anew")

    assert named in agent.fails(1, "finish")["message"]
    assert project.task()["status"] == "failed"
    assert "the user must say" in project.task()["halt"]


def test_a_protected_file_that_changed_is_a_failure_that_names_it(project: Project, agent: Agent) -> None:
    """A new one is a change too, and a committed one."""
    project.commit(files={"tests/a.py": "assert False\n"})
    begin(agent, "true", "--protect", "tests/**")
    project.commit("hidden in a commit", files={"tests/conftest.py": "skip everything\n"})
    reply = agent.finishes({"tests/a.py": "assert True\n"}, code=1)

    assert "tests/a.py" in reply["message"]
    assert "tests/conftest.py" in reply["message"]
    assert project.read("tests/a.py") == "assert False\n"
    assert agent.ok("claim")["task"]["attempts"] == 1
    agent.ok("finish")


def test_a_failure_says_which_tests_were_red_before(project: Project, agent: Agent) -> None:
    tests = "".join(f"test -f {name} || echo FAILED tests/{name}.py::test\n" for name in "abc")
    project.put("check.sh", f"echo === short test summary info ===\n{tests}test -f a -a -f b -a -f c\n")
    project.put("c")
    project.commit()
    begin(agent, "sh check.sh")
    project.put("a")
    (project.top / "c").unlink()

    said = agent.fails(1, "finish")

    red = "Of 2 failing tests, 1 had been red before this attempt: tests/b.py::test."
    assert red in said["message"]
    assert red in project.task()["error_log"][-1]
    agent.ok("claim")
    assert "Every test that fails was red before" in agent.fails(1, "finish")["message"]


# -- nobody can say yet whether it passes


@pytest.mark.parametrize(
    ("check", "code", "kind"),
    [
        (None, 3, "CONFIG"),
        *((check, 7, "ENV_SETUP") for check in ("no-such-tool --flag", "true && no-such-tool", "exit 127")),
    ],
)
def test_a_check_that_cannot_run_halts_and_costs_no_attempt(
    project: Project, agent: Agent, check: str | None, code: int, kind: str
) -> None:
    agent.ok("add", "One", *(("--validate", check) if check else ()))
    agent.ok("claim")
    project.put("work.txt", "work\n")

    error = agent.fails(code, "finish")["error"]

    assert error["kind"] == kind
    assert (project.task()["status"], project.task()["attempts"]) == ("in_progress", 0)
    assert project.read("work.txt") == "work\n"
    halt = project.state["sessions"][0]["halt"]
    assert halt.startswith(f"{kind}: ")
    assert agent.ok("show", "1")["reasons"][1:] == [f"halted until the user has acted: {halt}"]
    assert project.grep(f"ERROR [task-001] [{kind}] {'' if check else 'Missing validation.command'}")
    if check:
        assert "harness finish task-001" in error["hint"]
        # The name may be misspelt, and then nothing can be installed.
        assert "harness edit task-001 --validate 'COMMAND'" in error["hint"]
    else:
        assert "tasks[0]" in error["message"]


@pytest.mark.parametrize("cwd", ["no/such", "tracked.txt", "way-out"])
def test_a_working_directory_that_is_none_halts_as_config(project: Project, agent: Agent, cwd: str) -> None:
    begin(agent, "true", "--cwd", cwd)
    (project.top / "way-out").symlink_to(project.top.parent)

    assert cwd in agent.fails(3, "finish")["error"]["message"]
    assert project.task()["attempts"] == 0
    assert project.state["sessions"][0]["halt"].startswith("CONFIG: ")


def test_the_init_script_gets_one_more_chance_to_install_it(project: Project, agent: Agent) -> None:
    """When the machine is mended `finish` goes on, and one is mended by the script."""
    project.git("config", "core.excludesFile", str(project.put(".git/ignored", "tool\n")))
    begin(agent, "./tool")
    agent.fails(7, "finish")
    install = 'echo run >> runs.txt; echo "#!/bin/sh" > tool; chmod +x tool\n'
    project.put("harness-init.sh", f"#!/bin/sh\n{install}")

    agent.ok("finish")

    assert project.read("runs.txt") == "run\n"
    assert project.task()["status"] == "completed"


def test_a_list_that_is_not_trusted_runs_neither_check_nor_cleanup(project: Project, agent: Agent) -> None:
    """A tracked list is asked about again when its commands change outside of the command line."""
    project.git("add", "-f", "harness-tasks.json")
    project.git("commit", "-qm", "list")
    begin(agent, "touch ran", "--cleanup", "touch cleaned")
    project.edit_task(on_failure={"cleanup": "touch evil"})

    error = agent.fails(8, "finish")["error"]

    assert "harness trust" in error["hint"]
    assert project.task()["attempts"] == 0
    assert project.state["sessions"][0]["halt"].startswith("REFUSED: ")
    reply = agent.ok("fail", "task-001", "--message", "given up")
    assert "not run" in reply["warnings"][0]
    assert sorted(project.files) == ["tracked.txt"]
    project.agent("person").trusts()
    agent.works()

"""`harness finish`: the check decides, a commit holds exactly what it saw, and a failure loses nothing."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.ops.project import LINE, Agent, Project
from tests.system.gitrepo import NASTY


def begin(agent: Agent, check: str = "test -f done", *options: str) -> None:
    """Add a task with this check and take it."""
    agent.ok("add", "One", "--validate", check, *options)
    agent.ok("claim")


# -- it passes


def test_a_passed_check_is_committed_and_recorded(project: Project, agent: Agent) -> None:
    begin(agent)
    base = project.head
    project.put("done")
    project.put("tracked.txt", "two\n")

    reply = agent.ok("finish", "task-001")

    task = project.task()
    assert task["status"] == "completed"
    assert task["attempts"] == 0
    assert task["completed_commit"] == project.head
    assert project.git("log", "-1", "--format=%s %P") == f"[task-001] One {base}"
    assert project.in_commit() == ["done", "tracked.txt"]
    assert project.git("status", "--porcelain") == ""
    assert reply["stop"] == {"reason": "done"}
    assert project.grep(f"[SESSION-1] Completed [task-001] (commit {project.head[:12]})")
    assert project.grep("[SESSION-1] STATS tasks_total=1 completed=1 failed=0 pending=0 blocked=0")
    assert not project.marker
    assert project.state["sessions"] == []


def test_the_stop_comes_only_when_nothing_is_left(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    agent.ok("add", "Two", "--validate", "true")

    reply = agent.ok("finish")

    assert reply["stop"] is None
    assert reply["next"] == "harness claim"
    assert project.marker
    assert len(project.state["sessions"]) == 1


def test_what_was_untracked_before_is_never_committed(project: Project, agent: Agent) -> None:
    for name in NASTY:
        project.put(name, "mine\n")
    begin(agent)
    project.put("done")
    project.put(NASTY[0], "mine, edited meanwhile\n")
    before = project.files

    agent.ok("finish")

    assert project.in_commit() == ["done", "tracked.txt"]
    assert project.files == before


def test_unless_the_attempt_commits_it_itself(project: Project, agent: Agent) -> None:
    project.put("draft", "draft\n")
    begin(agent)
    project.git("add", "draft")
    project.git("commit", "-qm", "Take the draft")
    project.put("done")

    agent.ok("finish")

    assert project.in_commit() == ["done", "draft", "tracked.txt"]


def test_the_harness_files_never_enter_a_commit_tracked_or_not(project: Project, agent: Agent) -> None:
    project.git("add", "-f", "harness-progress.txt")
    project.commit("Somebody tracks the log")
    logged = project.git("show", "HEAD:harness-progress.txt")
    begin(agent)
    project.git("add", "-f", "harness-tasks.json", ".harness-active")
    project.put("done")

    agent.ok("finish")

    assert project.in_commit() == ["done", "harness-progress.txt", "tracked.txt"]
    assert project.git("show", "HEAD:harness-progress.txt") == logged
    assert project.file.exists()
    assert len(project.log) > 3


def test_there_is_no_empty_commit_if_the_agent_committed_everything(project: Project, agent: Agent) -> None:
    begin(agent)
    project.put("done")
    mine = project.commit("[task-001] all of it")

    agent.ok("finish")

    assert project.head == mine
    assert project.task()["completed_commit"] == mine


def test_a_task_without_any_change_needs_no_commit(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    base = project.head

    agent.ok("finish")

    assert project.head == base


def test_a_merge_under_way_keeps_both_parents(project: Project, agent: Agent) -> None:
    project.git("checkout", "-q", "-b", "side")
    project.put("side.txt")
    side = project.commit("Side")
    project.git("checkout", "-q", "main")
    base = project.head
    begin(agent)
    project.git("merge", "-q", "--no-ff", "--no-commit", "side")
    project.put("done")

    agent.ok("finish")

    assert project.git("log", "-1", "--format=%P").split() == [base, side]
    assert project.in_commit() == ["done", "side.txt", "tracked.txt"]
    assert not (project.top / ".git" / "MERGE_HEAD").exists()


def test_modes_links_and_odd_names_arrive_in_the_commit(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    project.put("tool.sh", "#!/bin/sh\n").chmod(0o755)
    (project.top / "link").symlink_to("tool.sh")
    for name in NASTY:
        project.put(name)

    agent.ok("finish")

    listing = project.git("ls-tree", "-r", "-z", "HEAD")
    assert "100755 blob" in listing
    assert "120000 blob" in listing
    assert listing.count("\0") == len(NASTY) + 3
    assert project.git("status", "--porcelain") == ""


def test_what_the_check_changed_in_tracked_files_is_undone_and_kept(project: Project, agent: Agent) -> None:
    begin(agent, "echo by the check > tracked.txt; rm other.txt")
    project.put("tracked.txt", "by the attempt\n")
    project.put("other.txt", "other\n")

    reply = agent.ok("finish")

    assert project.git("show", "HEAD:tracked.txt") == "by the attempt"
    assert project.read("tracked.txt") == "by the attempt\n"
    assert project.read("other.txt") == "other\n"
    ref = "refs/harness/rescue/task-001/1-check"
    assert ref in reply["warnings"][0]
    assert project.git("show", f"{ref}:tracked.txt") == "by the check"


def test_no_hook_and_no_signature_stands_between_the_check_and_the_commit(
    project: Project, agent: Agent
) -> None:
    hook = project.top / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    project.git("config", "commit.gpgSign", "true")
    begin(agent)
    project.put("done")

    agent.ok("finish")


# -- it fails


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
    project.put("late.txt", "late\n")

    reply = agent.fails(1, "finish")

    task = project.task()
    assert (task["status"], task["attempts"]) == ("failed", 1)
    assert task["error_log"] == ["[TEST_FAIL] The check failed with exit code 3. it broke"]
    assert project.head == base
    assert project.files == before
    assert project.git("status", "--porcelain") == "?? mine.txt"
    rescue = reply["rescue"]
    assert rescue == "refs/harness/rescue/task-001/1"
    kept = {name: project.git("show", f"{rescue}:{name}") for name in project.in_commit(rescue)}
    assert kept["tracked.txt"] == "broken"
    assert kept["new/file.txt"] == "new"
    assert kept["mine.txt"] == "spoilt"
    assert kept["late.txt"] == "late"
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

    reply = agent.fails(1, "finish")

    assert reply["stop"] == {"reason": "blocked"}
    refs = project.refs()
    assert [project.git("show", f"{ref}:try") for ref in refs] == ["1", "2"]
    assert project.task("task-002")["error_log"] == ["[DEPENDENCY] Blocked by failed task-001"]
    assert not project.marker


def test_a_check_that_takes_too_long_is_timeout(project: Project, agent: Agent) -> None:
    begin(agent, "echo begun; exec sleep 60", "--timeout", "1", "--cleanup", "echo cleaned > cleaned.txt")

    reply = agent.fails(1, "finish")

    assert reply["verdict"] == "TIMEOUT"
    assert project.task()["error_log"] == ["[TIMEOUT] The check did not end within 1 s. begun"]
    assert project.grep("ERROR", "TIMEOUT")
    assert project.read("cleaned.txt") == "cleaned\n"


def test_the_cleanup_runs_in_the_rolled_back_tree_and_its_failure_is_a_warning(
    project: Project, agent: Agent
) -> None:
    begin(agent, "false", "--cleanup", "cat tracked.txt; exit 9")
    project.put("tracked.txt", "broken\n")

    reply = agent.fails(1, "finish")

    assert "ended with 9" in reply["warnings"][0]
    assert project.grep("WARN", "[task-001]", "cleanup")
    output = project.top / ".harness" / "logs" / "task-001" / "1-cleanup.log"
    assert output.read_text(encoding="utf-8") == "one\n"
    assert project.task()["status"] == "failed"


def test_after_a_pass_no_cleanup_runs(project: Project, agent: Agent) -> None:
    begin(agent, "true", "--cleanup", "touch cleaned")

    agent.ok("finish")

    assert not (project.top / "cleaned").exists()


# -- the gate


def test_the_check_edited_in_the_file_is_a_failure_that_names_it(project: Project, agent: Agent) -> None:
    begin(agent, "false")
    project.edit_task(validation={"command": "touch ran"})

    reply = agent.fails(1, "finish")

    assert "validation.command" in reply["message"]
    assert project.task()["error_log"][0].startswith("[TEST_FAIL] The attempt changed its own gate")
    assert not (project.top / "ran").exists()


def test_and_the_next_attempt_does_not_get_away_with_it(project: Project, agent: Agent) -> None:
    """The list is not rolled back, so the weak check would be the next attempt's gate."""
    begin(agent, "false")
    project.edit_task(validation={"command": "true"})
    agent.fails(1, "finish")

    reply = agent.fails(9, "claim")

    assert reply["stop"] == {"reason": "waiting"}
    assert "validation.command was changed" in project.task()["halt"]
    agent.fails(2, "claim", "task-001")


@pytest.mark.parametrize("gate", [None, {}, {"command": "sha256:0"}])
def test_a_gate_that_was_removed_or_replaced_is_a_failure(
    project: Project, agent: Agent, gate: dict[str, str] | None
) -> None:
    begin(agent, "true")
    project.edit_task(gate=gate)

    agent.fails(1, "finish")

    assert project.task()["status"] == "failed"


def test_a_protected_file_that_changed_is_a_failure_that_names_it(project: Project, agent: Agent) -> None:
    project.put("tests/a.py", "assert False\n")
    project.commit()
    begin(agent, "true", "--protect", "tests/**")
    project.put("tests/a.py", "assert True\n")

    reply = agent.fails(1, "finish")

    assert "tests/a.py" in reply["message"]
    assert project.read("tests/a.py") == "assert False\n"
    assert agent.ok("claim")["task"]["attempts"] == 1
    agent.ok("finish")


def test_a_new_protected_file_is_a_change_too_and_a_committed_one(project: Project, agent: Agent) -> None:
    project.put("tests/a.py", "assert False\n")
    project.commit()
    begin(agent, "true", "--protect", "tests/**")
    project.put("tests/conftest.py", "skip everything\n")
    project.commit("hidden in a commit")

    assert "tests/conftest.py" in agent.fails(1, "finish")["message"]


def test_a_changed_working_directory_is_a_failure(project: Project, agent: Agent) -> None:
    project.put("sub/file")
    project.commit()
    begin(agent, "true")
    project.edit_task(validation={"command": "true", "cwd": "sub"})

    assert "validation.cwd" in agent.fails(1, "finish")["message"]


# -- it cannot be decided


def test_no_check_is_config_with_the_field_and_no_attempt(project: Project, agent: Agent) -> None:
    agent.ok("add", "One")
    agent.ok("claim")
    project.put("work.txt", "work\n")

    error = agent.fails(3, "finish")["error"]

    assert "tasks[0]" in error["message"]
    assert project.grep("ERROR [task-001] [CONFIG] Missing validation.command")
    assert project.task()["attempts"] == 0
    assert project.task()["status"] == "in_progress"
    assert project.read("work.txt") == "work\n"
    assert project.state["sessions"][0]["halt"].startswith("CONFIG: ")


@pytest.mark.parametrize("cwd", ["no/such", "tracked.txt", "../.."])
def test_a_working_directory_that_is_none_is_config_and_halts(
    project: Project, agent: Agent, cwd: str
) -> None:
    begin(agent, "true", "--cwd", cwd)

    assert cwd in agent.fails(3, "finish")["error"]["message"]
    assert project.task()["attempts"] == 0
    assert project.state["sessions"][0]["halt"].startswith("CONFIG: ")


def test_the_check_runs_in_its_directory_inside_a_subdirectory_too(project: Project, agent: Agent) -> None:
    project.put("sub/marker")
    project.commit()
    begin(agent, "test -f marker", "--cwd", "sub")
    agent.cwd = project.top / "sub"

    agent.ok("finish")


@pytest.mark.parametrize("check", ["no-such-tool --flag", "true && no-such-tool", "exit 127"])
def test_a_missing_command_is_env_setup_and_costs_no_attempt(
    project: Project, agent: Agent, check: str
) -> None:
    begin(agent, check)
    project.put("work.txt", "work\n")

    error = agent.fails(7, "finish")["error"]

    assert error["kind"] == "ENV_SETUP"
    assert "harness finish task-001" in error["hint"]
    assert project.grep("ERROR [task-001] [ENV_SETUP]")
    assert project.task()["attempts"] == 0
    assert project.task()["status"] == "in_progress"
    assert project.read("work.txt") == "work\n"
    assert project.state["sessions"][0]["halt"].startswith("ENV_SETUP: ")


def test_the_init_script_gets_one_more_chance_to_install_it(project: Project, agent: Agent) -> None:
    begin(agent, "./tool")
    install = 'echo run >> runs.txt; echo "#!/bin/sh" > tool; chmod +x tool\n'
    project.put("harness-init.sh", f"#!/bin/sh\n{install}")

    agent.ok("finish")

    assert project.read("runs.txt") == "run\n"


def test_when_the_machine_is_mended_finish_goes_on(project: Project, agent: Agent) -> None:
    begin(agent, "./tool")
    agent.fails(7, "finish")
    project.put("tool", "#!/bin/sh\n").chmod(0o755)

    agent.ok("finish")

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


def test_after_trust_it_runs(project: Project, agent: Agent) -> None:
    project.git("add", "-f", "harness-tasks.json")
    project.git("commit", "-qm", "list")
    begin(agent, "true")
    project.edit_task(validation={"command": "true", "timeout_seconds": 9, "cwd": None})
    project.edit_task(on_failure={"cleanup": "true"})
    agent.fails(8, "finish")

    project.agent("person").ok("trust", "--yes")

    agent.ok("finish")


# -- who may


def test_only_a_held_task_can_be_finished(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")

    assert "You hold no task" in agent.fails(2, "finish")["error"]["message"]
    agent.fails(2, "finish", "task-777")
    agent.fails(2, "finish", "task-001")
    agent.ok("claim")
    agent.ok("finish")
    assert "completed" in agent.fails(2, "finish", "task-001")["error"]["message"]
    assert project.task()["status"] == "completed"


# -- the environment of the check


def test_the_check_sees_the_callers_environment(project: Project, agent: Agent) -> None:
    begin(agent, 'test "$ASKED" = yes')

    agent.ok("finish", ASKED="yes")

    assert project.task()["status"] == "completed"


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

    assert all(LINE.match(line) for line in project.log), project.log
    found = grep_table(project)
    real = [line for line in found["errors"] if " ERROR [task-001] [" in line]
    assert [line.split("] ")[3].strip("[]") for line in real] == ["TEST_FAIL", "TASK_EXEC", "SESSION_TIMEOUT"]
    assert [line for line in found["execution"] if line in real] == [real[1]]
    assert len([line for line in found["summaries"] if " STATS tasks_total=" in line]) == 2
    assert found["checkpoints"] == project.grep(
        """CHECKPOINT [task-001] step=1/2 "said 'hello' and went on\""""
    )
    assert len(found["recoveries"]) == 1
    assert len(found["session"]) > 5
    assert os.linesep not in "".join(project.log)

"""`harness start` opens a session and `harness stop` ends it: whose it is, and when it is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness_lib.system.place import own_files
from harness_lib.system.processes import process
from tests.conftest import Harness
from tests.system.git.gitrepo import sh
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, Stepping, begin


def test_a_session_is_numbered_counted_and_logged(project: Project, one: Agent) -> None:
    reply = one.ok("start")

    assert reply["session"] == 1
    assert reply["next"] == "harness claim"
    assert reply["task"]["id"] == "task-001"
    assert project.task()["status"] == "pending"
    assert project.state["session_count"] == 1
    assert [s["number"] for s in project.state["sessions"]] == [1]
    assert len(project.grep("[SESSION-1] LOCK acquired (pid=")) == 1


def test_its_live_owner_calling_again_gets_the_brief_and_no_more(project: Project, one: Agent) -> None:
    one.ok("start")
    one.ok("claim")
    before = project.file.read_bytes()

    reply = one.ok("start")

    assert reply["task"]["id"] == "task-001"
    assert reply["next"] == "harness finish"
    assert "check (max 300 s): true" in reply["message"]
    assert project.file.read_bytes() == before


def test_a_second_owner_gets_exit_5_and_hears_who_has_it(project: Project, one: Agent) -> None:
    """The user can end the session by its number."""
    one.ok("start")
    before = project.file.read_bytes()

    other = project.agent("other")
    error = other.fails(5, "start")["error"]

    assert error["kind"] == "HELD"
    assert f"Session 1 of agent (sleep, pid {one.process.pid}" in error["message"]
    assert project.state["sessions"][0]["started_at"] in error["message"]
    assert "harness stop --session 1" in error["hint"]
    for verb in (("claim",), ("finish",), ("recover",), ("checkpoint", "task-001", "1/2", "x"), ("release",)):
        other.fails(5, *verb)
    assert other.ok("claim", "--dry-run")["next"] == "harness status --watch"
    assert project.file.read_bytes() == before
    other.ok("stop", "--session", "1")
    assert project.state["sessions"] == []
    assert other.ok("start")["session"] == 2


def test_paused_hooks_are_on_again_where_work_begins_or_is_added(project: Project, one: Agent) -> None:
    before = project.file.read_bytes(), project.log
    one.ok("pause")
    assert not project.enable_flag
    assert "off already" in one.ok("pause")["message"]
    assert (project.file.read_bytes(), project.log) == before
    # The second claim goes on with what the first one has taken.
    for verb in (("start",), ("claim",), ("claim",), ("add", "Two")):
        one.ok("pause")
        one.ok(*verb)
        assert project.enable_flag, verb


def test_without_any_name_the_owner_process_is_the_worker(project: Project, one: Agent) -> None:
    one.env = {"HARNESS_WORKER_ID": None}
    other = project.agent(HARNESS_WORKER_ID=None)
    one.ok("start")

    other.fails(5, "start")
    one.die()

    assert other.ok("start")["session"] == 2


def test_it_reads_as_much_of_git_and_of_the_log_as_the_protocol_says(project: Project, one: Agent) -> None:
    """Two hundred lines of the log and twenty commits, the newest; what is not committed, and the stashes."""
    tree, commit = project.git("rev-parse", "HEAD^{tree}"), project.head
    for number in range(25):
        commit = project.git("commit-tree", tree, "-p", commit, "-m", f"commit {number}")
    project.git("reset", "-q", "--hard", commit)
    with (project.top / "harness-progress.txt").open("a") as log:
        log.writelines(f"[2025-07-01T10:00:00Z] [SESSION-1] WARN line {number}\n" for number in range(250))

    project.put("tracked.txt", "stashed\n")
    project.git("stash")
    project.put("tracked.txt", "uncommitted\n")

    reply = one.ok("start")

    assert "tracked.txt" in reply["git"]["diff_stat"]
    assert len(reply["git"]["stashes"]) == 1
    assert [line.split()[-1] for line in reply["git"]["log"]] == [str(n) for n in range(24, 4, -1)]
    assert len(reply["log"]) == 200
    assert reply["log"][0].endswith("WARN line 50")


def test_notes_about_agents_that_are_long_gone_are_taken_away(project: Project, one: Agent) -> None:
    for kind in own_files.KINDS:
        own_files.write_note(own_files.note_path(str(project.top), kind, "crashed"), b"")
    one.ok("start")
    one.ok("stop")
    left = [note for kind in own_files.KINDS for note in (project.top / ".harness" / kind).iterdir()]
    assert len(left) == len(own_files.KINDS)

    project.clock.pass_(days=8)
    one.ok("start")
    assert not any(note.exists() for note in left)


@pytest.mark.skipif(not process.has_proc(), reason="only /proc tells where a process works")
def test_an_agent_that_was_started_elsewhere_hears_that_no_hook_holds_it(make_project: Make) -> None:
    """Hooks look for the list from where their host works, as after `cd there && harness start`."""
    here, there = make_project("here"), make_project("there")
    agents = [project.agent("agent", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="c") for project in (here, there)]
    for agent in agents:
        agent.ok("add", "One", "--validate", "true")
        agent.die()
        agent.process = subprocess.Popen(["sleep", "600"], cwd=here.top)

    own, other = (agent.ok("start")["warnings"] for agent in agents)

    assert own == []
    assert other == [
        (
            f"claude was started in {here.top}: hooks that look from there find the list in {here.top}, and "
            f"do not hold it to this one. To have it held to the end, start it in {there.top}."
        )
    ]


def test_a_list_made_by_hand_is_kept_out_of_git_and_found_from_work_trees(
    repo: Path, harness: Harness
) -> None:
    """As `init` does it; where that was, and its lines were taken out, they stay out."""
    sh(repo, "worktree", "add", "-q", "../linked")
    (repo / "harness-tasks.json").write_text('{"tasks": [{"id": "t1", "status": "pending"}]}')
    exclude = repo / ".git/info/exclude"
    exclude.write_text("*.orig")

    assert harness("start").code == 0

    assert sh(repo, "status", "--porcelain") == ""
    assert exclude.read_text().startswith("*.orig\n/harness-tasks.json\n")
    assert "t1" in harness("status", cwd=repo.with_name("linked")).out
    exclude.write_text(exclude.read_text().replace("/harness-tasks.json\n", ""))
    harness("stop")
    harness("start")
    assert sh(repo, "status", "--porcelain") == "?? harness-tasks.json"


# -- stop


def test_stop_without_a_session_is_fine_at_any_moment(project: Project, one: Agent) -> None:
    for status in ("pending", "failed"):
        project.edit_task(status=status)
        assert "No session" in one.ok("stop")["message"]
        one.fails(2, "stop", "--session", "7")


def test_stop_names_a_session_only_where_one_would_have_work(one: Agent) -> None:
    one.ok("start")
    assert one.ok("stop")["next"] == "harness start"
    one.works()
    assert one.ok("stop")["next"] == "harness validate --all --committed"
    one.final_check()
    assert one.ok("stop")["next"] == "harness status"


def test_the_run_of_another_machine_is_ended_there_or_by_number(project: Project, one: Agent) -> None:
    """Nobody here can know whether it lives; the user who does has the last word."""
    one.ok("start")
    (session,) = project.state["sessions"]
    elsewhere = {"host": "far-away", "worker": f"run-{session['pid']}-0123abcd"}
    one.die()
    project.edit(sessions=[{**session, **elsewhere}])

    hint = project.agent("other").fails(5, "start")["error"]["hint"]

    assert "Ctrl-C in its terminal on far-away; if it is gone there: harness stop --session 1" in hint
    assert project.agent("person").ok("stop", "--session", "1")["session"] == 1


# -- `harness start` and `claim` open no session where nothing can be gone on with, and say why (exit 9)


def test_an_empty_list_is_done_whoever_asks(project: Project, agent: Agent) -> None:
    """It is not said to be completed."""
    for verb in ("start", "claim"):
        reply = agent.fails(9, verb)

        assert reply["stop"] == {"reason": "done"}
        assert "The list has no tasks yet" in reply["message"]
        assert reply["next"].startswith("harness add ")
    assert project.state["sessions"] == []
    assert not project.enable_flag
    assert len(project.grep(" STATS ")) == 2


def test_a_finished_list_is_exit_9_and_not_5_for_a_second_owner(project: Project, one: Agent) -> None:
    """State first, then eligibility, then the session."""
    one.ok("start")
    project.without_proofs()
    project.edit_task(status="completed")

    project.agent("other").fails(9, "start")


# -- limits


def test_a_session_ends_after_so_many_attempts_failed_ones_count(project: Project, agent: Agent) -> None:
    project.configure(max_tasks_per_session=2)
    for check in ("true", "false", "true"):
        agent.ok("add", "One", "--validate", check)
    agent.ok("claim", "task-001")
    assert agent.ok("finish")["stop"] is None
    agent.ok("claim", "task-002")

    assert agent.fails(1, "finish")["stop"] == {"reason": "max_tasks_per_session"}

    assert agent.fails(9, "claim")["stop"] == {"reason": "max_tasks_per_session"}
    assert project.state["sessions"][0]["halt"] == "max_tasks_per_session"
    agent.ok("stop")
    assert agent.ok("claim")["task"]["id"] == "task-003"


def test_a_limit_that_was_lowered_counts_for_what_is_named_next(project: Project, agent: Agent) -> None:
    """`claim` would do nothing: after `harness stop` the next session goes on."""
    for check in ("true", "true"):
        agent.ok("add", "One", "--validate", check)
    agent.ok("claim")
    agent.ok("finish")
    project.configure(max_tasks_per_session=1)

    reply = agent.fails(9, "start")

    assert (reply["stop"], reply["next"]) == ({"reason": "max_tasks_per_session"}, "harness stop")
    for verb in ("status", "recover"):
        assert agent.ok(verb)["next"] == "harness stop"
    assert agent.fails(9, "claim")["next"] == "harness stop"
    agent.ok("stop")
    assert agent.ok("start")["next"] == "harness claim"


# -- when only the user could go on


@pytest.fixture
def halted(project: Project, agent: Agent) -> Project:
    """Return a project whose one task waits for the user."""
    agent.ok("add", "One", "--validate", "true")
    project.edit_task(halt="CONFIG: say which database")
    return project


def test_with_only_a_halted_task_nobody_is_told_to_wait(halted: Project, agent: Agent) -> None:
    for verb in ("start", "claim"):
        reply = agent.fails(9, verb)

        assert (reply["stop"], reply["next"]) == ({"reason": "waiting"}, "harness show task-001")
        assert "until the user fixes the halted ones" in reply["message"]
        assert "task-001: CONFIG: say which database" in reply["message"]
        assert "others hold" not in reply["message"]
    assert (halted.state["sessions"], halted.state["session_count"]) == ([], 0)
    halted.edit_task(halt="MERGE: others look at it", halt_kind="MERGE")
    said = agent.fails(9, "claim")["message"]
    assert "waits until others have merged it; then type: harness run" in said


def test_halted_tasks_use_up_no_sessions_and_the_limit_holds(halted: Project, agent: Agent) -> None:
    """An open session ends where only the user could go on."""
    halted.configure(max_sessions=1)
    for _ in range(3):
        agent.fails(9, "start")
    assert halted.state["session_count"] == 0
    halted.edit_task(halt=None)
    assert agent.ok("start")["session"] == 1
    halted.edit_task(halt="CONFIG: say which database")

    assert agent.fails(9, "start")["stop"] == {"reason": "waiting"}

    assert halted.state["sessions"] == []
    agent.fails(9, "start")
    assert halted.state["session_count"] == 1


def test_a_session_that_was_refused_at_its_first_task_is_counted_once(project: Project, one: Agent) -> None:
    project.configure(max_sessions=1)
    project.put("tracked.txt", "mine\n")
    one.fails(8, "claim")
    project.git("checkout", "tracked.txt")

    assert one.ok("start")["session"] == 1

    assert project.state["session_count"] == 1
    assert project.state["sessions"][0]["halt"] is None
    one.ok("claim")
    one.ok("stop")
    assert one.fails(9, "start")["stop"] == {"reason": "max_sessions"}


def test_where_others_hold_the_rest_waiting_is_what_to_type(shared: Project) -> None:
    begin(shared.agent("first"))
    second = shared.agent("second")

    reply = second.ok("start")

    assert reply["next"] == "harness claim --wait 600"
    assert "others hold the rest" in reply["message"]
    second.clock = clock = Stepping()
    assert second.fails(9, "claim", "--wait", "2")["stop"] == {"reason": "waiting"}
    assert clock.seconds < 6, "and no longer than it was told"


@pytest.mark.usefixtures("asked_once")
def test_where_no_session_is_left_nobody_is_sent_in_a_circle(one: Agent) -> None:
    """From reply to reply, `next:` never comes to `start`, which would send the reader back."""
    one.ok("edit", "--max-sessions", "1")
    one.ok("start")
    one.ok("stop")

    for verb in ("stop", "status", "graph", "log", "check", "add Two", "edit task-001 --priority P0"):
        typed: list[str | None] = []
        command: str | None = f"harness {verb}"
        while command is not None and command not in typed:
            typed.append(command)
            command = one.ok(*command.split()[1:])["next"]
        assert "harness start" not in [*typed, command], verb

    assert "The user can raise it: harness edit --max-sessions N" in one("status").out
    (closed,) = (line for line in one("doctor").out.splitlines() if "no session is open" in line)
    assert closed.endswith(" -> harness edit --max-sessions N")
    assert one.fails(9, "claim")["stop"] == {"reason": "max_sessions"}
    one.ok("edit", "--max-sessions", "2")
    said = one.ok("status")
    assert (said["next"], "allow more" in said["message"]) == ("harness start", False)


def test_what_was_interrupted_when_no_session_is_left_does_not_lead_in_a_circle(holder: Agent) -> None:
    holder.ok("edit", "--max-sessions", "1")
    assert "task-001 stays in progress" in holder.ok("stop")["message"]

    assert holder.ok("status")["next"] == "harness log"
    assert holder.ok("show", "task-001")["next"] != "harness start"

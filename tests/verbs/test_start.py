"""`harness start` opens a session in the protocol's order, for one owner at a time, and tells of it."""

from __future__ import annotations

from harness_lib.system.locks import mkdir_lock
from harness_lib.system.place import session_notes
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project

# -- who may have the session


def test_a_session_is_numbered_counted_and_logged(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")

    reply = agent.ok("start")

    assert reply["session"] == 1
    assert reply["next"] == "harness claim"
    assert reply["task"]["id"] == "task-001"
    assert project.task()["status"] == "pending"
    assert project.state["session_count"] == 1
    assert [s["number"] for s in project.state["sessions"]] == [1]
    assert len(project.grep("[SESSION-1] LOCK acquired (pid=")) == 1


def test_its_live_owner_calling_again_gets_the_brief_and_nothing_is_recovered(
    project: Project, agent: Agent
) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")
    agent.ok("claim")
    before = project.file.read_bytes()

    reply = agent.ok("start")

    assert reply["task"]["id"] == "task-001"
    assert reply["next"] == "harness finish"
    assert "check (max 300 s): true" in reply["message"]
    assert project.file.read_bytes() == before


def test_a_second_owner_gets_exit_5_and_hears_who_has_it(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")
    before = project.file.read_bytes()

    other = project.agent("other")
    error = other.fails(5, "start")["error"]

    assert error["kind"] == "HELD"
    assert f"Session 1 of agent (pid {agent.process.pid}" in error["message"]
    assert "harness stop --session 1" in error["hint"]
    for verb in (("claim",), ("finish",), ("recover",), ("checkpoint", "task-001", "1/2", "x"), ("release",)):
        other.fails(5, *verb)
    assert project.file.read_bytes() == before


def test_a_person_can_end_it_by_its_number(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")
    person = project.agent("person")

    person.ok("stop", "--session", "1")

    assert project.state["sessions"] == []
    assert person.ok("start")["session"] == 2


def test_a_dead_owner_is_folded_and_what_it_left_is_recovered(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "test -f done")
    agent.ok("claim")
    agent.die()

    reply = project.agent("next").ok("start")

    assert reply["session"] == 2
    assert "No progress detected" in reply["recovered"][0]
    assert project.task()["status"] == "failed"
    assert project.task()["attempts"] == 1
    assert len(project.grep("[SESSION-1] WARN", "gone without")) == 1
    assert [s["worker"] for s in project.state["sessions"]] == ["next"]


def test_a_restarted_agent_with_the_same_id_goes_on_with_its_checkpoint(
    project: Project, agent: Agent
) -> None:
    """CLAUDE_CODE_SESSION_ID names the worker where HARNESS_WORKER_ID does not; `--resume` keeps it."""
    agent.env = {"HARNESS_WORKER_ID": None, "CLAUDE_CODE_SESSION_ID": "abc-1"}
    agent.ok("add", "One", "--validate", "test -f done")
    agent.ok("claim")
    assert project.task()["claimed_by"] == "abc-1"
    agent.die()
    agent.wake()

    project.put("done")
    agent.ok("finish")

    assert project.task()["status"] == "completed"


def test_the_worker_id_wins_over_the_agents_own(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")

    agent.ok("claim", CLAUDE_CODE_SESSION_ID="abc-1")

    assert project.task()["claimed_by"] == "agent"
    assert project.state["sessions"][0]["agent_session_id"] == "abc-1"


def test_without_any_name_the_owner_process_is_the_worker(project: Project, agent: Agent) -> None:
    agent.env = {"HARNESS_WORKER_ID": None}
    other = project.agent(HARNESS_WORKER_ID=None)
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")

    other.fails(5, "start")
    agent.die()

    assert other.ok("start")["session"] == 2


def test_for_an_exclusive_session_the_lock_of_the_prose_stands_too(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")
    path = mkdir_lock.path_for(project.top)

    held = mkdir_lock.holder_of(path)

    assert held is not None
    assert held.pid == agent.process.pid
    agent.ok("stop")
    assert mkdir_lock.holder_of(path) is None


# -- what the protocol reads


def test_it_tells_of_git_and_of_the_log(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    project.put("tracked.txt", "stashed\n")
    project.git("stash")
    project.put("tracked.txt", "changed\n")

    reply = agent.ok("start")

    assert len(reply["git"]["log"]) == 1
    assert "tracked.txt" in reply["git"]["diff_stat"]
    assert len(reply["git"]["stashes"]) == 1
    assert "INIT" in reply["log"][0]


def test_it_reads_as_much_of_git_and_of_the_log_as_the_protocol_says(project: Project, agent: Agent) -> None:
    """Two hundred lines of the log and twenty commits, the newest, however many there are."""
    agent.ok("add", "One", "--validate", "true")
    for number in range(25):
        project.git("commit", "-q", "--allow-empty", "-m", f"commit {number}")
    with (project.top / "harness-progress.txt").open("a", encoding="utf-8") as log:
        log.writelines(f"[2025-07-01T10:00:00Z] [SESSION-1] WARN line {number}\n" for number in range(250))

    reply = agent.ok("start")

    assert [line.split()[-1] for line in reply["git"]["log"]] == [str(n) for n in range(24, 4, -1)]
    assert len(reply["log"]) == 200
    assert reply["log"][0].endswith("WARN line 50")


def test_a_list_made_by_the_prose_is_taken_up(make_project: Make) -> None:
    """No `sessions`, no gate, no fence, and a task in progress that names nobody."""
    project = make_project(bare=True)
    project.put(
        "harness-tasks.json",
        f"""{{"version": 2, "session_count": 3, "session_config": {{"max_sessions": 50}},
        "tasks": [{{"id": "task-001", "title": "x", "status": "in_progress", "priority": "P1",
        "started_at_commit": "{project.head[:7]}", "depends_on": [], "attempts": 0, "max_attempts": 3,
        "validation": {{"command": "test -f done", "timeout_seconds": 300}},
        "on_failure": {{"cleanup": null}}, "error_log": [], "checkpoints": [], "completed_at": null}}]}}""",
    )
    project.put("done")
    agent = project.agent()
    agent.ok("init")
    said = agent("start")

    assert said.code == 8, said.text
    assert "trust" in said.err
    assert (project.top / "done").exists()


# -- what sessions have left behind


def test_notes_about_agents_that_are_long_gone_are_taken_away(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    for kind in session_notes.KINDS:
        session_notes.write(session_notes.path(str(project.top), kind, "crashed"), b"")
    agent.ok("start")
    agent.ok("stop")
    left = [note for kind in session_notes.KINDS for note in (project.top / ".harness" / kind).iterdir()]
    assert len(left) == len(session_notes.KINDS)

    project.clock.pass_(days=8)
    agent.ok("start")
    assert not any(note.exists() for note in left)

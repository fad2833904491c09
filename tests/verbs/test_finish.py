"""harness finish: who holds a task and passes its check gets a commit of exactly what the check saw."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness_lib.rules import transitions
from harness_lib.state.store import Store
from harness_lib.system import flock
from harness_lib.system.place.roots import Root
from harness_lib.terminal.render import Screen
from tests.system.git.gitrepo import NASTY, commit_all, sh
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin


def test_without_a_check_replies_at_a_terminal_say_how(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Screen, "is_answerable", True)
    agent.ok("add", "One")
    give = "harness edit task-001 --validate 'COMMAND'"
    assert agent.ok("claim")["next"] == give
    assert give in agent.fails(3, "finish")["error"]["hint"]
    assert agent.ok("status")["next"] == give
    agent.ok("edit", "task-001", "--validate", "true")
    assert agent.ok("finish")["task"]["status"] == "completed"


def test_a_passed_check_is_committed_and_recorded(project: Project, holder: Agent) -> None:
    base = project.head
    project.put("done")
    project.put("tracked.txt", "two\n")

    reply = holder.ok("finish", "task-001")

    task = project.task()
    assert (task["status"], task["attempts"]) == ("completed", 0)
    assert task["completed_commit"] == project.head
    assert project.git("log", "-1", "--format=%s %P") == f"[task-001] One {base}"
    assert project.in_commit() == ["done", "tracked.txt"]
    assert project.git("status", "--porcelain") == ""
    assert (reply["stop"], reply["next"]) == (None, "harness validate --all --committed")
    assert holder.final_check()["stop"] == {"reason": "done"}
    assert project.grep(f"[SESSION-1] Completed [task-001] (commit {project.head[:12]})")
    assert project.grep("[SESSION-1] STATS tasks_total=1 completed=1 failed=0 pending=0 blocked=0")
    assert not project.enable_flag
    assert project.state["sessions"] == []


def test_a_list_of_one_machine_pushes_and_proposes_nothing(project: Project, holder: Agent) -> None:
    project.put("done")

    refused = holder.fails(2, "finish", "--merge", "pull-request")

    assert "harness run --merge pull-request" in refused["error"]["hint"]
    assert project.task()["status"] == "in_progress"


def test_a_task_without_any_change_needs_no_commit_and_is_no_stop(project: Project, agent: Agent) -> None:
    begin(agent, "true", "--cleanup", "touch cleaned")
    agent.ok("add", "Two", "--validate", "true")
    base = project.head

    reply = agent.ok("finish")

    assert project.head == base
    assert sorted(project.files) == ["tracked.txt"]
    assert (reply["stop"], reply["next"]) == (None, "harness claim")
    assert project.enable_flag
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


def test_unless_the_attempt_commits_it_itself_without_an_empty_one(project: Project, agent: Agent) -> None:
    project.put("draft", "draft\n")
    begin(agent)
    project.put("done")
    mine = project.commit("[task-001] all of it, and the draft")

    agent.ok("finish")

    assert project.head == project.task()["completed_commit"] == mine
    assert project.in_commit() == ["done", "draft", "tracked.txt"]


def test_the_harness_files_never_enter_a_commit_tracked_or_not(project: Project, agent: Agent) -> None:
    project.git("add", "-f", "harness-progress.txt")
    project.commit("Somebody tracks the log")
    logged = project.git("show", "HEAD:harness-progress.txt")
    begin(agent)
    project.git("add", "-f", "harness-tasks.json", ".harness-active")
    agent.finishes({"done": "x\n"})

    assert project.in_commit() == ["done", "harness-progress.txt", "tracked.txt"]
    assert project.git("show", "HEAD:harness-progress.txt") == logged
    assert project.file.exists()
    assert len(project.log) > 3


@pytest.mark.parametrize("is_new", [False, True])
def test_a_tracked_list_stays_out_of_agents_commits(project: Project, agent: Agent, is_new: bool) -> None:
    """The settings of the project are the user's to commit, also while an agent works in a chat."""
    if not is_new:
        project.put("harness.toml", "[run]\njobs = 2\n")
        project.git("add", "harness.toml")
    project.git("add", "-f", "harness-tasks.json")
    project.commit("Share the list, for CI")
    listed = project.git("show", "HEAD:harness-tasks.json")
    begin(agent)
    project.put("done")
    project.git("add", "done")
    project.git("commit", "-qam", "The agent's own, with all that was changed")
    project.put("harness.toml", "[run]\njobs = 1\n")
    project.git("add", "harness.toml")
    project.git("commit", "-qm", "The user's", "harness.toml")

    agent.ok("finish")

    assert project.git("show", "HEAD:harness-tasks.json") == listed
    assert project.git("log", "--format=%s", "-1") == "The user's"
    assert project.git("show", "HEAD:harness.toml") == "[run]\njobs = 1"
    assert project.in_commit() == ["done", "harness-tasks.json", "harness.toml", "tracked.txt"]


@pytest.mark.parametrize("check", ["true", "false"])
def test_no_attempt_commits_or_rolls_back_the_settings(project: Project, agent: Agent, check: str) -> None:
    """An agent that could change them would undo what the user narrows for the next run."""
    project.put("harness.toml", "[run]\njobs = 2\n")
    project.git("add", "harness.toml")
    project.commit("Narrow what a run does")
    begin(agent, check)
    project.put("harness.toml", "[run]\njobs = 9\n")
    project.put("done")

    agent("finish")

    assert project.git("show", "HEAD:harness.toml") == "[run]\njobs = 2"
    assert project.read("harness.toml") == "[run]\njobs = 9\n"


def test_a_merge_in_the_attempt_keeps_both_parents(project: Project, agent: Agent) -> None:
    project.git("checkout", "-q", "-b", "side")
    project.put("side.txt")
    side = project.commit("Side")
    project.git("checkout", "-q", "main")
    base = project.head
    begin(agent)
    project.git("merge", "-q", "--no-ff", "--no-commit", "side")
    project.put("done")

    assert "git merge --continue" in agent.fails(8, "finish")["error"]["hint"]
    project.git("-c", "core.editor=true", "merge", "--continue")
    agent.ok("finish")

    assert project.git("log", "-1", "--format=%P", "HEAD^").split() == [base, side]
    assert project.in_commit() == ["done", "side.txt", "tracked.txt"]


def test_a_new_commit_in_a_submodule_is_work(project: Project, agent: Agent, make_project: Make) -> None:
    library = make_project("library", bare=True)
    project.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.top), "lib")
    project.commit("With a submodule")
    begin(agent, "true")
    commit_all(project.top / "lib", "In the library", {"new.txt": "new\n"})

    agent.ok("finish")

    assert project.git("rev-parse", "HEAD:lib") == sh(project.top / "lib", "rev-parse", "HEAD")
    # Without a commit it is none.
    begin(agent, "test -f lib/loose")
    (warning,) = agent.finishes({"lib/loose": "x\n"})["task"]["look_at"]
    assert "is not committed in a submodule" in warning
    # Beside other work it is in no commit, either.
    begin(agent, "true")
    (warning,) = agent.finishes({"lib/new.txt": "changed\n", "done": "x\n"})["task"]["look_at"]
    assert warning.startswith("task-003 left changes inside of 'lib', which its commit does not have")
    agent.ok("add", "Four", "--validate", "true")
    assert "undo it in there (git -C lib status)" in agent.fails(8, "claim")["error"]["hint"]


def test_what_the_check_changed_in_tracked_files_is_undone_and_kept(project: Project, agent: Agent) -> None:
    begin(agent, "echo by the check > tracked.txt; rm other.txt")
    reply = agent.finishes({"tracked.txt": "by the attempt\n", "other.txt": "other\n"})

    assert project.git("show", "HEAD:tracked.txt") == "by the attempt"
    assert project.read("tracked.txt") == "by the attempt\n"
    assert project.read("other.txt") == "other\n"
    ref = "refs/harness/rescue/task-001/1-check"
    assert ref in reply["warnings"][0]
    assert project.git("show", f"{ref}:tracked.txt") == "by the check"


def test_a_fifo_in_the_place_of_a_file_is_not_blamed_on_the_check(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    place = project.put("tracked.txt", "")
    place.unlink()
    os.mkfifo(place)

    (warning, *_) = agent.finishes({"done": "x\n"})["warnings"]

    assert warning.startswith("1 tracked file not as committed after the check of task-001; put back")
    assert project.read("tracked.txt") == "one\n"
    assert project.in_commit() == ["done", "tracked.txt"]


def test_no_hook_or_signature_stands_between_check_and_commit(project: Project, agent: Agent) -> None:
    project.put(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n").chmod(0o755)
    project.git("config", "commit.gpgSign", "true")
    begin(agent)
    agent.finishes({"done": "x\n"})


def test_only_a_held_task_can_be_finished(project: Project, one: Agent) -> None:
    one.ok("add", "Two", "--validate", "true")

    error = one.fails(2, "finish")["error"]
    assert error["message"] == "You hold no task."
    assert error["hint"] == "Take one, or go on with what was interrupted: harness start"
    one.fails(2, "finish", "task-777")
    assert one.fails(2, "finish", "task-001")["error"]["hint"].endswith(": harness claim task-001")
    one.ok("claim", "task-001")
    assert "harness finish task-001" in one.fails(2, "finish", "task-002")["error"]["hint"]
    one.ok("finish")
    refused = one.fails(2, "finish", "task-001")["error"]
    assert "completed" in refused["message"]
    assert refused["hint"].endswith(": harness show task-001")
    assert project.task()["status"] == "completed"


def test_the_check_sees_the_callers_environment(project: Project, agent: Agent) -> None:
    """And runs in its directory, wherever `finish` is typed."""
    project.commit(files={"sub/marker": "x\n"})
    begin(agent, 'test "$ASKED" = yes && test -f marker', "--cwd", "sub")
    agent.cwd = project.top / "sub"

    agent.ok("finish", ASKED="yes")

    assert project.task()["status"] == "completed"


def test_a_title_cannot_draw_on_the_terminal_of_who_reads_git_log(project: Project, agent: Agent) -> None:
    """No escape sequence, no bell, no line of its own; and a long one is cut, and says so."""
    title = "\x1b]0;evil\x07 Red\x1b[31m\r\nSigned-off-by: nobody " + "x" * 300
    agent.ok("add", title, "--validate", "test -f done")
    agent.works({"done": "x\n"})

    message = project.git("log", "-1", "--format=%B")
    assert message.startswith("[task-001] \ufffd]0;evil\ufffd Red\ufffd[31m Signed-off-by: nobody xxx")
    assert message.endswith("x…")
    assert len(message) == 200
    assert message.replace("\ufffd", "").isprintable()


# -- a task that needed no work is ended so by `finish --already-done`; `claim` says where that is known


CHECK = "grep -q one tracked.txt"


def test_it_is_completed_with_no_change_and_named(project: Project, agent: Agent) -> None:
    project.put("notes.txt", "untracked before\n")
    begin(agent, CHECK)
    agent.ok("add", "After", "--validate", "test -f done", "--depends-on", "task-001")
    head = project.git("rev-parse", "HEAD")

    task = agent.ok("finish", "--already-done")["task"]

    assert (task["status"], task["outcome"], task["completed_commit"]) == ("completed", "already_done", head)
    assert task["look_at"] == [
        "task-001 was done already, as its agent says: its check passes, and nothing was changed"
    ]
    assert agent.ok("claim")["task"]["id"] == "task-002"


def test_a_check_that_fails_ends_nothing(project: Project, agent: Agent) -> None:
    begin(agent, "echo looked; test -f done")

    reply = agent.fails(1, "finish", "--already-done")

    assert "task-001 is not done already." in reply["message"]
    assert "looked" in reply["message"]
    assert (project.task()["status"], project.task()["attempts"]) == ("in_progress", 0)


@pytest.mark.parametrize("is_committed", [True, False])
def test_work_that_changed_a_file_is_not_ended_so(project: Project, agent: Agent, is_committed: bool) -> None:
    begin(agent, CHECK)
    project.put("f", "x\n")
    if is_committed:
        project.commit("[task-001] work")

    error = agent.fails(2, "finish", "--already-done")["error"]

    assert "task-001 was not done already: 'f' changed." in error["message"]
    assert not project.task().get("halt")
    # An end that was cut off has noted it.
    project.edit_task(outcome="already_done")
    assert agent.ok("finish")["task"].get("outcome") is None


def test_claim_says_so_where_the_check_has_passed_on_this_commit(
    project: Project, agent: Agent, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    begin(agent, CHECK)
    agent.finishes({"f": "x\n"})
    agent.ok("add", "Same check", "--validate", CHECK)
    agent.ok("add", "Another", "--validate", f"test -f f && echo x >> {ran}")
    agent.ok("add", "Same check, other content", "--validate", CHECK)

    (warning,) = agent.ok("claim")["warnings"]

    assert (
        "The check of task-002 passes before any work: it has passed on this commit for task-001." in warning
    )
    assert warning.endswith("harness finish task-002 --already-done")
    agent.ok("finish", "--already-done")
    assert agent.ok("claim")["warnings"] == []
    assert not ran.exists(), "a claim runs no check"
    agent.ok("finish")
    project.commit("The user's", files={"g": "x\n"})
    assert agent.ok("claim")["warnings"] == []


def test_a_check_that_outlasts_its_lease_renews_it_and_runs_on(shared: Project, tmp_path: Path) -> None:
    """It ends when it sees that somebody has renewed the lease in the list."""
    agent, seen = shared.agent(), tmp_path / "seen"
    agent.clock.hurry_after = seen
    begin(agent, f"cp harness-tasks.json {seen}; while cmp -s harness-tasks.json {seen}; do sleep 0.02; done")

    agent.ok("finish", HARNESS_LEASE_SECONDS="3")

    assert shared.task()["status"] == "completed"


def test_one_that_waited_ends_what_the_other_one_had_begun_when_it_was_killed(
    project: Project, holder: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.put("done")
    project.git("add", "done")
    tree = project.git("write-tree")
    project.git("reset", "-q")
    oid = project.git("commit-tree", tree, "-p", "HEAD", "-m", "Task")
    first = flock.hold(project.top / ".harness/logs/task-001/finish.lock", make=True)
    assert first is not None

    def dies(_screen: Screen, _text: str) -> None:
        with Store(Root(project.top)).transaction() as tx:
            (task,) = tx.in_progress()
            tx.replace(transitions.begin_commit(task, now=tx.now, head=project.head, commit=oid))
        os.close(first)

    monkeypatch.setattr(Screen, "busy", dies)
    holder.ok("finish")

    assert (project.head, project.task()["status"]) == (oid, "completed")


@pytest.mark.parametrize(
    ("check", "code", "said"), [("true", 0, "completed (commit"), ("false", 1, "not done")]
)
def test_one_that_waited_tells_how_the_other_one_has_ended(
    project: Project, agent: Agent, monkeypatch: pytest.MonkeyPatch, check: str, code: int, said: str
) -> None:
    """An agent whose client has put the first one into the background types it again."""
    begin(agent, check)
    agent.ok("add", "Next", "--validate", "true")
    project.put("done")
    first = flock.hold(project.top / ".harness/logs/task-001/finish.lock", make=True)
    assert first is not None

    def ends(_screen: Screen, text: str) -> None:
        if text == "waiting for the finish of task-001 that runs already …":
            os.close(first)
            assert agent("finish").code == code

    monkeypatch.setattr(Screen, "busy", ends)
    reply = agent.fails(code, "finish") if code else agent.ok("finish")

    assert f"task-001 is {said}" in reply["message"]
    assert reply["next"] == "harness claim"

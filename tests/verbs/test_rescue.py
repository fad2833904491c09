"""`harness rescue` and `tidy`: failed work can be seen and taken back, and goes only if the user says so."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.system.git.gitrepo import sh
from tests.verbs.project import Agent, Project, begin, lose, own_work_tree

REF = "refs/harness/rescue/task-001/1"


@pytest.fixture
def failed(project: Project, agent: Agent) -> Project:
    """Return a project in which an attempt has changed, made, committed and removed files, and has failed."""
    project.put("sub/gone.txt", "to go\n")
    project.commit("More files")
    begin(agent, "false", "--max-attempts", "9")
    project.commit("[task-001] committed by the attempt", files={"tracked.txt": "two\n"})
    project.put("made.txt", "new\n")
    (project.top / "sub/gone.txt").unlink()
    agent.fails(1, "finish")
    assert project.read("tracked.txt") == "one\n"
    return project


# -- list and show


def test_the_list_names_every_rescue_newest_first(failed: Project, agent: Agent) -> None:
    agent.ok("claim")
    failed.put("again.txt")
    agent.fails(1, "finish")
    for argv in (("rescue",), ("rescue", "list"), ("rescue", "list", "task-001")):
        said = agent.ok(*argv)
        assert [each["ref"] for each in said["rescues"]] == ["refs/harness/rescue/task-001/2", REF]
    assert agent.ok("rescue", "list", "task-002")["count"] == 0
    assert agent.ok("rescue", "list", "1")["count"] == 2


@pytest.mark.usefixtures("failed")
def test_a_rescue_is_shown_with_what_was_committed_and_what_was_not(agent: Agent) -> None:
    for name in (REF, "task-001/1", "task-001", "1", "1/1"):
        said = agent.ok("rescue", "show", name)
        assert said["rescue"]["ref"] == REF
        for text in ("| +two", "| +new", "| -to go", "made.txt", "sub/gone.txt"):
            assert text in said["message"]
        names = [row for row in said["message"].splitlines() if re.search(r" \|  ?\d", row)]
        assert len({row.index("|") for row in names}) == 1, "one below the other"
        assert said["next"] == f"harness rescue apply {REF}"
    assert "'7'" in agent.fails(2, "rescue", "show", "7")["error"]["message"]
    for action in ("show", "apply", "drop"):
        assert "harness rescue list" in agent.fails(2, "rescue", action, "task-009/4")["error"]["hint"]


def test_a_huge_difference_is_shown_in_part_and_without_terminal_codes(agent: Agent) -> None:
    lose(agent, "made.txt", text="\x1b[31mred\n" * 5000)
    said = agent("rescue", "show", "task-001")
    assert said.code == 0
    assert "\x1b" not in said.out
    assert len(said.out.splitlines()) < 250


def test_a_line_of_a_difference_ends_where_git_ends_it(agent: Agent) -> None:
    """Source files have form feeds between their parts, and some of them carriage returns."""
    lose(agent, "made.txt", text="one\x0ctwo\r\n")
    assert "| +one\ufffdtwo\n" in f"{agent.ok('rescue', 'show', 'task-001')['message']}\n"


# -- apply


def test_apply_brings_everything_back_without_committing(failed: Project, agent: Agent) -> None:
    head, index = failed.head, failed.git("ls-files", "-s")
    said = agent.ok("rescue", "apply", "task-001")
    assert failed.read("tracked.txt") == "two\n"
    assert failed.read("made.txt") == "new\n"
    assert not (failed.top / "sub/gone.txt").exists()
    assert sorted(said["written"]) == ["made.txt", "sub/gone.txt", "tracked.txt"]
    assert (failed.head, failed.git("ls-files", "-s")) == (head, index)
    assert failed.refs() == [REF]
    assert "here already" in agent.ok("rescue", "apply", "task-001")["message"]


def test_apply_never_writes_over_the_user_s_change(project: Project, agent: Agent) -> None:
    lose(agent, "tracked.txt", "made.txt", "ignored.log", "other.txt", text="the attempt's\n")
    project.commit("Ignore logs", files={".gitignore": "*.log\n"})
    for name in ("tracked.txt", "made.txt", "ignored.log"):
        project.put(name, "the user's\n")
        before = project.files
        assert name in agent.fails(8, "rescue", "apply", "task-001")["message"]
        assert project.files == before
        project.git("checkout", "-q", "tracked.txt")
        project.git("clean", "-qfx", name)


def test_apply_names_files_of_harness_that_it_does_not_bring_in(project: Project, agent: Agent) -> None:
    begin(agent, "false")
    own = {"harness.toml": "[run]\njobs = 9\n", ".harness/tools/mine": "x\n"}
    for name, text in own.items():
        project.put(name, text)
    project.git("add", "-f", *own)
    project.git("commit", "-qm", "The agent's own")
    agent.fails(1, "finish")
    for name in own:
        (project.top / name).unlink()

    said = agent.ok("rescue", "apply", REF)
    assert said["message"] == f"No other file of {REF} had to be brought in."
    assert any(f"its content: git show {REF}:harness.toml" in warning for warning in said["warnings"])
    assert not (project.top / "harness.toml").exists()


def test_apply_writes_nothing_where_one_file_does_not_fit(failed: Project, agent: Agent) -> None:
    failed.commit("The same line", files={"tracked.txt": "three\n"})
    before = failed.files
    assert "tracked.txt" in agent.fails(8, "rescue", "apply", "task-001")["message"]
    assert failed.files == before


def test_apply_keeps_the_content_of_binary_files_and_links_and_modes(project: Project, agent: Agent) -> None:
    begin(agent, "false")
    project.put("raw.bin", bytes(range(256)) * 10)
    project.put("run.sh", "#!/bin/sh\n").chmod(0o755)
    (project.top / "link").symlink_to("tracked.txt")
    project.put("name with\nbreak.txt")
    before = project.files
    agent.fails(1, "finish")
    agent.ok("rescue", "apply", "task-001")
    assert project.files == before


def test_only_the_next_attempt_takes_up_the_work_of_the_last(failed: Project, agent: Agent) -> None:
    agent.ok("claim")
    before = failed.files
    assert "task-001" in failed.agent("person").fails(8, "rescue", "apply", "task-001")["message"]
    assert failed.files == before
    assert agent.ok("rescue", "apply", "task-001")["next"] == "harness finish"


# -- drop


def test_a_dropped_rescue_can_be_brought_back_with_the_printed_command(failed: Project, agent: Agent) -> None:
    """One at a time is dropped, by its whole name, and by no agent."""
    agent.fails(2, "rescue", "drop", "task-001/1", "task-001/2")
    agent.fails(2, "rescue", "drop", "task-001")
    agent.fails(8, "rescue", "drop", REF, CLAUDECODE="1")
    assert failed.refs() == [REF]
    said = agent.ok("rescue", "drop", "task-001/1")
    oid = said["rescue"]["oid"]
    assert failed.refs() == []
    assert failed.grep("WARN dropped by hand", REF, oid)
    command = next(line for line in said["message"].splitlines() if "git update-ref" in line)
    failed.git(*command.rpartition("git ")[2].split())
    assert failed.git("rev-parse", REF) == oid


def test_work_that_its_task_goes_on_with_is_not_dropped(failed: Project, agent: Agent) -> None:
    """Nor is what waits for an answer: it could not be accepted any more. `tidy` passes over it, too."""
    back = {"reason": "later", "rescue": REF, "base": failed.head}
    failed.edit_task(status="pending", handback=back, halt="REVIEW: look", halt_kind="REVIEW")
    assert "waits for your answer with" in agent.fails(8, "rescue", "drop", REF)["error"]["message"]
    failed.edit_task(halt=None, halt_kind=None)
    error = agent.fails(8, "rescue", "drop", REF)["error"]
    assert error["message"] == f"task-001 goes on with {REF}."
    failed.clock.pass_(days=2)
    assert agent.ok("tidy", "--rescues", "1")["rescues"] == 0

    agent.ok("retry", "task-001")

    assert agent.ok("tidy", "--rescues", "1")["rescues"] == 1
    agent.ok("rescue", "drop", REF)


def test_work_that_waits_and_is_gone_is_not_accepted(failed: Project, agent: Agent) -> None:
    back = {"reason": "later", "rescue": REF, "base": failed.head}
    failed.edit_task(status="pending", handback=back, halt="REVIEW: look", halt_kind="REVIEW")
    failed.git("update-ref", "-d", REF)

    error = agent.fails(8, "accept", "task-001")["error"]

    assert error["message"].startswith(f"The work of task-001 that waits is gone: there is no {REF}.")
    assert failed.task()["halt_kind"] == "REVIEW"
    said = agent.ok("return", "task-001", "do it again")["message"]
    assert said == "task-001 is pending again and begins anew, as its work is gone; no attempt was counted."
    assert "halt" not in failed.task()


# -- save


def test_what_a_late_worker_has_changed_is_saved_for_its_next_claim(shared: Project) -> None:
    """The hint of exit 6 works as it stands: nothing is stashed, where another worker could pop it."""
    for title in ("One", "Two"):
        shared.agent("person").ok("add", title, "--validate", "test -f done")
    late, taker = (own_work_tree(shared, name) for name in ("late", "taker"))
    late.ok("claim", "task-001")
    (late.cwd / "tracked.txt").write_text("precious\n")
    (late.cwd / "made.txt").write_text("precious too\n")
    shared.clock.pass_(hours=1)
    taker.ok("start")
    taker.ok("claim", "task-001")

    hint = late.fails(6, "finish", "task-001")["error"]["hint"]
    typed = re.findall(r"harness (rescue save \S+?);", hint)
    saved = late.ok(*typed[0].split())

    assert "stash" not in hint
    ref = saved["rescue"]["ref"]
    assert ref == "refs/harness/rescue/task-001/late-saved"
    assert shared.git("show", f"{ref}:tracked.txt") == "precious"
    assert shared.git("show", f"{ref}:made.txt") == "precious too"
    assert sh(late.cwd, "status", "--porcelain") == ""
    assert late.ok("claim")["task"]["id"] == "task-002"
    assert taker.ok("checkpoint", "task-001", "1/2", "still mine")


def test_saving_puts_back_a_file_in_whose_place_a_fifo_lies(project: Project, agent: Agent) -> None:
    project.commit(files={"other.txt": "one\n"})
    project.put("other.txt", "two\n")
    project.put("tracked.txt", "").unlink()
    os.mkfifo(project.top / "tracked.txt")
    agent.ok("rescue", "save", "task-009")
    assert (project.top / "tracked.txt").is_file()


def test_saving_leaves_what_git_does_not_know_where_the_user_works(project: Project, agent: Agent) -> None:
    """Of what is staged as it stands nothing is said."""
    project.put("tracked.txt", "changed\n")
    project.put("notes.txt", "the user's\n")
    project.git("add", "tracked.txt")

    said = agent.ok("rescue", "save", "task-009")

    ref = said["rescue"]["ref"]
    assert (said["staged"], "staged" in said["message"]) == (None, False)
    assert project.refs() == [ref]
    assert project.read("tracked.txt") == "one\n"
    assert project.read("notes.txt") == "the user's\n"
    assert project.git("show", f"{ref}:tracked.txt") == "changed"
    assert project.grep("WARN", "saved by hand", ref)
    assert "nothing to save" in agent.ok("rescue", "save", "task-009")["message"]


def test_nobody_saves_away_the_work_of_an_attempt(project: Project, holder: Agent) -> None:
    project.put("tracked.txt", "of the attempt\n")

    save = ("rescue", "save", "task-001")

    assert "harness release task-001" in holder.fails(8, *save)["error"]["hint"]
    # The second one is as in a list of the legacy protocol, whose claims name no work tree.
    for place in (project.task()["worktree"], None):
        project.edit_task(worktree=place)
        assert "agent works on task-001" in project.agent("person").fails(8, *save)["error"]["message"]
    assert project.read("tracked.txt") == "of the attempt\n"
    assert project.refs() == []


def test_saving_keeps_what_was_staged_and_changed_further(project: Project, agent: Agent) -> None:
    """Also where the work tree is as HEAD has it by now, which is how a claim would refuse it."""
    for further in ("further\n", "one\n"):
        for name in ("tracked.txt", "new.txt"):
            project.put(name, f"staged before {further}")
            project.git("add", name)
        project.put("tracked.txt", further)
        project.put("new.txt", further)

        said = agent.ok("rescue", "save", "task-009")

        (shown,) = re.findall(r"harness (rescue show \S+-staged\S*)", said["message"])
        assert f"| +staged before {further}" in f"{agent.ok(*shown.split())['message']}\n"
        ref = said["staged"]["ref"]
        for name in ("tracked.txt", "new.txt"):
            assert project.git("show", f"{ref}:{name}") == f"staged before {further}".strip()
        assert project.git("show", f"{said['rescue']['ref']}:new.txt") == further.strip()
        assert project.git("status", "--porcelain", "--untracked-files=no") == ""
        assert project.read("tracked.txt") == "one\n"
        (project.top / "new.txt").unlink(missing_ok=True)


def test_a_command_that_works_says_what_could_be_named(agent: Agent) -> None:
    for action, verb in (("show", "rescue list"), ("drop", "rescue list"), ("save", "status --all")):
        hint = agent.fails(2, "rescue", action)["error"]["hint"]
        assert hint.endswith(f": harness {verb}")
        agent.ok(*verb.split())


# -- `harness tidy` shows which logs and rescued work would go, and takes them only when the user says so


@pytest.fixture
def ref(agent: Agent) -> str:
    """Return the ref that keeps the work of a failed attempt."""
    return lose(agent, "try.txt")


@pytest.fixture
def person(project: Project) -> Agent:
    return project.agent("person", CLAUDE_PID=None)


def old_log(project: Project) -> Path:
    """Return the log of the attempt, made as old as can be, and the file by which two `finish` wait."""
    log = project.top / ".harness/logs/task-001/1.log"
    for path in (log, log.with_name("finish.lock")):
        os.utime(path, (0, 0))
    return log


def test_old_logs_go_when_the_user_says_so(project: Project, agent: Agent, person: Agent, ref: str) -> None:
    log = old_log(project)

    shown = agent.ok("tidy")
    assert (shown["logs"], shown["rescues"], log.exists()) == (1, 0, True)
    assert "task-001/1.log" in shown["message"]
    assert agent.fails(8, "tidy", "--yes", CLAUDECODE="1")["error"]["kind"] == "REFUSED"

    person.ok(*shown["next"].split()[1:])
    assert not log.exists()
    assert project.git("rev-parse", ref)


def test_rescued_work_goes_by_its_age_and_stays_on_record(project: Project, person: Agent, ref: str) -> None:
    oid = project.git("rev-parse", ref)

    assert person.ok("tidy", "--rescues", "1")["next"] == "harness status"
    project.clock.pass_(days=2)
    shown = person.ok("tidy", "--rescues", "1")
    assert project.refs() == [ref]
    assert person.ok(*shown["next"].split()[1:])["rescues"] == 1

    assert project.refs() == []
    assert project.grep("WARN dropped by hand", ref, oid)
    project.git("update-ref", ref, oid)


@pytest.mark.usefixtures("ref")
def test_logs_of_a_task_that_somebody_works_on_stay(project: Project, agent: Agent) -> None:
    old_log(project)
    agent.ok("claim")

    assert agent.ok("tidy")["logs"] == 0


def test_an_age_that_is_none_takes_nothing(project: Project, person: Agent, ref: str) -> None:
    for typed in ("--rescues=-1", "--rescues=nan"):
        assert typed.partition("=")[0] in person.fails(2, "tidy", typed, "--yes")["error"]["message"]
    assert project.git("rev-parse", ref)
    assert (project.top / ".harness/logs/task-001/1.log").exists()

"""Agents that tear down what they stand on or leave git half done, and a full disk: nothing is lost."""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from tests.run_to_end import run_to_end
from tests.runs.workshop import COMMAND, Workshop, descendants
from tests.system.git.gitrepo import put


def _first(workshop: Workshop) -> str:
    """Commit a file that every agent finds; return the commit."""
    workshop.commits("First", {"first": "done\n"})
    return workshop.sh("rev-parse", "main")


def test_work_that_takes_away_what_it_began_with_is_kept_and_done_anew(workshop: Workshop) -> None:
    """Nobody can tell which of the commits that it has left out it meant to: the next agent is told."""
    base = _first(workshop)
    for number, harm in enumerate(
        (
            "git reset -q --hard HEAD~1 && git commit -q --allow-empty -m mine",
            # Under another name: what is committed again by the same one within a second is the same commit.
            "git commit -q --allow-empty -m mine && git -c user.name=Other rebase -q --root -f",
            "git checkout -q --orphan o && git commit -qm mine && git checkout -q --detach; git branch -qD o",
        )
    ):
        workshop.add(harm, f"grep -q done f{number}", do=f"first sh {harm}\nwrite f{number} done")

    workshop.ends(0)

    assert f"no longer has the commit {base[:12]}" in workshop.task("task-001")["error_log"][0]
    for number, task in enumerate(workshop.state["tasks"]):
        (blame,) = task["error_log"]
        assert "no longer has the commit " in blame
        rescue = f"refs/harness/rescue/{task['id']}/1"
        assert workshop.sh("show", f"{rescue}:f{number}") == "done"
        assert "mine" in workshop.sh("log", "--format=%s", rescue).splitlines()
    assert (workshop.top / "first").exists()
    assert workshop.git.is_ancestor(base, "refs/heads/main")
    workshop.done_is_done()
    workshop.failures_are_kept()
    workshop.nothing_is_left_over()


def test_a_repository_that_an_agent_makes_inside_is_moved_aside_and_not_deleted(workshop: Workshop) -> None:
    harm = "sh mkdir n && git -C n init -q && echo x > n/f"
    workshop.add("Own", "false", "--max-attempts", "1", do=f"{harm}\nwrite f precious")

    said = workshop.ends(9)

    (kept,) = (workshop.home / "set-aside").glob("*/*")
    assert (kept / "n/f").exists()
    assert str(kept) in said.stdout
    workshop.nothing_is_left_over()


CHEAT = """
import json, os, pathlib
p = pathlib.Path(os.environ["HARNESS_STATE_ROOT"], "harness-tasks.json")
d = json.loads(p.read_text())
d["tasks"][0]["status"] = "mostly done"
d["tasks"][0]["title"] = "never mind"
p.write_text(json.dumps(d))
"""


def test_a_list_that_an_agent_has_broken_stops_the_run_and_names_the_field(workshop: Workshop) -> None:
    workshop.add("Vandal", "grep -q done f")
    cheat = workshop.top.parent / "cheat.py"
    cheat.write_text(CHEAT)

    said = workshop.ends(3, agent=f"python3 {cheat}; echo done > f; sleep 1")

    assert "tasks[0].status" in said.stderr
    listing = workshop.top / "harness-tasks.json"
    listing.write_text(listing.read_text().replace("mostly done", "in_progress"))
    workshop.ends(0)
    workshop.all_is_well()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits a process that runs")
def test_a_full_disk_stops_the_run_and_the_next_one_goes_on(workshop: Workshop, tmp_path: Path) -> None:
    """No process of the run can write more than a few bytes to a file, as where the disk is full."""
    started, go = tmp_path / "started", tmp_path / "go"
    # The list is larger than what can still be written, the lines that are printed are not.
    workshop.add("x" * 900, "grep -q done f", do=f"write f done\ntouch {started}\nonce wait {go}")
    workshop.add("y" * 900, "grep -q done g", do="write g done")
    run = workshop.start(until=started)

    for pid in (run.pid, *descendants(run.pid)):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (2500, 2500))
    go.touch()

    workshop.has_ended(7)
    assert workshop.task("task-001")["attempts"] == 0
    workshop.ends(0)
    workshop.all_is_well()


LOGS = "$HARNESS_STATE_ROOT/.harness/logs/$HARNESS_TASK_ID"


def test_an_agent_that_breaks_what_its_task_needs_stops_no_other(workshop: Workshop) -> None:
    """Nobody is blamed; after some tries the task is halted with its work kept, and the others are done."""
    workshop.add("Breaks", "grep -q done a", do=f"write a done\nsh rm -r {LOGS}; touch {LOGS}")
    workshop.file_task("b")
    workshop.file_task("c")

    said = workshop.ends(9, "-j", "2")

    assert workshop.statuses() == {"task-001": "pending", "task-002": "completed", "task-003": "completed"}
    broken = workshop.task("task-001")
    assert (broken["attempts"], "logs/task-001" in broken["halt"]) == (0, True), broken
    assert "harness retry task-001" in broken["halt"]
    assert "space" not in said.stdout + said.stderr
    assert not [line for line in said.stdout.splitlines() if "rescue show /" in line], said.stdout
    aside = [path.read_text() for path in (workshop.home / "set-aside").rglob("a")]
    refs = workshop.sh("for-each-ref", "--format=%(refname)", "refs/harness/rescue").split()
    kept = [workshop.sh("show", f"{ref}:a") for ref in refs]
    assert "done" in "".join(aside + kept)


# Even root obeys the permissions of files then.
ORDINARY = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


def test_agents_that_lock_or_remove_what_they_work_in_stop_no_other(workshop: Workshop) -> None:
    workshop.add("Gone", "grep -q done f", do='first sh rm -rf "$PWD"\nwrite f done')
    lock = "write d/f precious\nwrite x.pyc/y z\nsh chmod -R a-w .git && chmod 0 .git && chmod a-w x.pyc ."
    workshop.add("Locks", "false", "--max-attempts", "1", do=lock)
    workshop.add("Tidy", "test -e g", do=f"sh rm {workshop.home}/worktrees/*/*/worker-1.err\nwrite g done")
    typed = ["harness_lib", "run", "--agent-command", COMMAND, "--no-final-check"]

    said = run_to_end([*ORDINARY, sys.executable, "-m", *typed], cwd=workshop.top, env=workshop.env)

    assert list(workshop.statuses().values()) == ["completed", "failed", "completed"], said.stdout
    assert ["work tree" in blame for blame in workshop.task("task-001")["error_log"]] == [True]
    assert workshop.sh("show", "refs/harness/rescue/task-002/1:d/f") == "precious"
    workshop.all_is_well()


# -- what agents do beside their work: it is undone, or asked about, and costs the work nothing


def test_an_agent_that_removes_the_directory_of_temporary_files_stops_no_other(workshop: Workshop) -> None:
    workshop.add("Cleans up", "grep -q done a", do='sh rm -r "$TMPDIR"\nwrite a done')
    workshop.file_task("b")

    workshop.ends(0, "--sandbox", "off")


def test_an_agent_that_removes_the_work_trees_of_all_ends_no_run(workshop: Workshop, tmp_path: Path) -> None:
    started, gone = tmp_path / "started", tmp_path / "gone"
    do = f"once sh until [ -e {started} ]; do sleep 0.05; done; rm -rf ../*; touch {gone}\nwrite a done"
    workshop.add("Removes", "grep -q done a", do=do)
    wait = f"touch {started}; until [ -e {gone} ]; do sleep 0.05; done; grep -q done b"
    workshop.add("Works", wait, do="write b done")

    workshop.ends(0, "-j", "2", "--sandbox", "off", "--no-precheck")


def test_a_list_that_an_agent_has_removed_is_restored_and_that_is_told(workshop: Workshop) -> None:
    workshop.add("Harm", "grep -q done f", do=f"sh rm {workshop.top}/harness-tasks.json\nwrite f done")

    said = workshop.ends(0)

    assert said.stdout.count("harness-tasks.json is missing: restored from") == 1
    workshop.done_is_done()


def test_the_user_who_switches_branches_in_their_checkout_meanwhile_stays_there(workshop: Workshop) -> None:
    """Git writes it down in the record of their checkout; who types it, nobody can tell apart."""
    person = f"git -C {workshop.top} switch -q -c of-mine"
    workshop.add("Meanwhile", "grep -q done f", do=f"sh {person}\nwrite f done")

    said = workshop.run()

    assert workshop.task("task-001")["status"] == "completed", said.stdout + said.stderr
    assert workshop.sh("symbolic-ref", "HEAD") == "refs/heads/of-mine"


def test_a_large_file_is_not_committed_before_the_user_has_been_asked(workshop: Workshop) -> None:
    """What the answer allows is the work that there is: no agent makes it again."""
    workshop.add("Large", "test -f big", do="once sh truncate -s 3M big")
    workshop.file_task("g")

    workshop.ends(9, "--max-file", "2")

    assert list(workshop.statuses().values()) == ["pending", "completed"]
    halt = workshop.task("task-001")["halt"]
    assert "big (3.1 MB)" in halt
    assert "harness retry task-001" in halt
    assert "--max-file" in halt

    assert "goes on with its work" in workshop.ok("retry", "task-001")["message"]
    workshop.ends(0, "--max-file", "4")
    workshop.done_is_done()


def test_a_closed_terminal_stops_the_run_and_keeps_what_was_done(workshop: Workshop, tmp_path: Path) -> None:
    news = tmp_path / "told"
    workshop.at_work("--notify", f'echo "$HARNESS_EVENT $HARNESS_MESSAGE" >> {news}')

    workshop.runs[0].send_signal(signal.SIGHUP)

    workshop.has_ended(9)
    assert news.read_text().startswith("stopped ")
    assert "harness run" in news.read_text()
    log = workshop.read("harness-progress.txt")
    assert "the terminal was closed" in log
    assert "harness run" in log
    workshop.ends(0)
    assert workshop.read("f").split() == ["half", "done"]
    workshop.nothing_is_left_over()


# -- what an agent of a run leaves half done in git is ended with its attempt, as nobody else works there


def _side(workshop: Workshop, name: str, path: str) -> None:
    workshop.sh("checkout", "-q", "-b", name, "main")
    workshop.commits(f"On {name}", {path: f"{name}\n"})
    workshop.sh("checkout", "-q", "main")


def test_what_an_agent_leaves_under_way_is_ended_and_conflicts_go_back_to_one(workshop: Workshop) -> None:
    _side(workshop, "clean", "clean.txt")
    _side(workshop, "side", "shared")
    workshop.commits("Ours", {"shared": "ours\n"})
    workshop.add("Merge", "test -e clean.txt", do="sh git merge -q --no-ff --no-commit clean")
    conflict = "sh ! grep -q '^<' shared || echo side > shared\nonce sh git merge -q side || echo left"
    workshop.add("Conflict", "grep -q side shared", do=conflict)
    workshop.add("Bisect", "test -e found", do="sh git bisect start\nwrite found yes")
    workshop.add("Rebase", "false", "--max-attempts", "1", do="sh git rebase -q side || echo left")
    workshop.file_task("last")

    said = workshop.ends(9, "-j", "1")

    assert [name for name, status in workshop.statuses().items() if status != "completed"] == ["task-004"]
    assert workshop.task("task-004")["status"] == "failed"
    assert "task-002 goes back" in said.stdout
    assert "Conflict marks still stand in 'shared'" in said.stdout
    assert workshop.read("shared") == "side\n"
    merged = workshop.task("task-001")["completed_commit"]
    assert workshop.sh("rev-parse", "clean") in workshop.sh("log", "-1", "--format=%P", merged)
    workshop.done_is_done()


# -- conflict marks that a run itself has put into a work tree are never merged


# The second of two agents begins before the first has merged, and leaves the marks that follow as they are
# for `rounds` times.
SCRIPT = """
cat > {here}/brief
if [ $HARNESS_TASK_ID = task-001 ]; then
    until [ -e {here}/started ]; do sleep 0.05; done
    echo line1 > shared
    exit
fi
touch {here}/started
until [ -e {here}/go ]; do sleep 0.05; done
echo x >> {here}/begun
if ! grep -q '<<<<<<<' shared; then
    echo line2 > shared
elif [ $(wc -l < {here}/begun) -gt {rounds} ]; then
    grep -v '^[<=>]' shared > resolved
    mv resolved shared
fi
"""


def go(workshop: Workshop, here: Path, rounds: int) -> int:
    """Let two agents change the same line, and return how the run ended."""
    put(here / "script.sh", SCRIPT.format(here=here, rounds=rounds))
    for number in (1, 2):
        workshop.add(f"Line {number}", f"grep -q line{number} shared", "--max-attempts", "1")
    run = workshop.start("-j", "2", agent=f"sh {here / 'script.sh'}")
    workshop.wait_for("the first is merged", lambda: workshop.statuses()["task-001"] == "completed")
    put(here / "go", "")
    return run.wait()


@pytest.mark.release
def test_marks_that_an_agent_leaves_go_back_until_all_are_gone(workshop: Workshop, tmp_path: Path) -> None:
    workshop.commits("A fixture", {"fixture": "<<<<<<< ours\n=======\n>>>>>>> theirs\n"})

    ended = go(workshop, tmp_path, rounds=2)

    assert ended == 0, workshop.printed
    assert workshop.task("task-002")["attempts"] == 0
    assert "Conflict marks still stand in 'shared'" in workshop.printed
    brief = (tmp_path / "brief").read_text()
    back = "handed back: The work passed its check, but cannot be merged. Conflict marks still stand in"
    assert back in brief
    assert "yours) stand in: shared" in brief
    assert "it is merged only when they are gone" in brief
    assert sorted(workshop.read("shared").split()) == ["line1", "line2"]
    assert "<<<<<<< ours" in workshop.read("fixture")
    workshop.all_is_well()


@pytest.mark.release
def test_marks_that_nobody_resolves_fail_the_attempt(workshop: Workshop, tmp_path: Path) -> None:
    ended = go(workshop, tmp_path, rounds=99)

    assert ended == 9, workshop.printed
    assert workshop.statuses() == {"task-001": "completed", "task-002": "failed"}
    assert "Conflict marks still stand in 'shared'" in workshop.task("task-002")["error_log"][0]
    assert workshop.read("shared") == "line1\n"
    workshop.failures_are_kept()
    workshop.nothing_is_left_over()


def test_a_fixture_with_marks_of_its_own_lands(workshop: Workshop) -> None:
    name = f"{'0' * 39}1"
    marks = rf"printf '<<<<<<< {name}\na\n=======\nb\n>>>>>>> {name}\n' > fixture"
    workshop.add("Fixture", "test -s fixture", do=f"sh {marks}")

    said = workshop.ends(0)

    assert "handed back" not in said.stdout
    assert workshop.sh("show", "main:fixture").startswith(f"<<<<<<< {name}")

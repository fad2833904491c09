"""What agents do beside their work: it is undone, or asked about, and costs the work nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import sh


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
    assert sh(workshop.top, "symbolic-ref", "HEAD") == "refs/heads/of-mine"


def test_a_large_file_is_not_committed_before_the_user_has_been_asked(workshop: Workshop) -> None:
    workshop.add("Large", "test -f big", do="sh truncate -s 3M big")
    workshop.file_task("g")

    workshop.ends(9, "--max-file", "2")

    assert list(workshop.statuses().values()) == ["pending", "completed"]
    halt = workshop.task("task-001")["halt"]
    assert "big (3.1 MB)" in halt
    assert "harness retry task-001" in halt
    assert "--max-file" in halt
    workshop.done_is_done()


def test_a_closed_terminal_stops_the_run_and_keeps_what_was_done(workshop: Workshop, tmp_path: Path) -> None:
    started, news = tmp_path / "started", tmp_path / "told"
    workshop.add("Slow", "grep -q done f", do=f"write f half\ntouch {started}\nonce sleep 600\nwrite f done")
    run = workshop.start("--notify", f'echo "$HARNESS_EVENT $HARNESS_MESSAGE" >> {news}')
    workshop.wait_for("the agent starts", started.exists)

    os.kill(run.pid, signal.SIGHUP)

    assert run.wait(90) == 9, workshop.printed
    assert news.read_text().startswith("stopped ")
    assert "harness run" in news.read_text()
    log = (workshop.top / "harness-progress.txt").read_text()
    assert "the terminal was closed" in log
    assert "harness run" in log
    workshop.ends(0)
    assert (workshop.top / "f").read_text().split() == ["half", "done"]
    workshop.nothing_is_left_over()

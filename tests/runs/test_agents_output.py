"""What an agent under a run may type: a note for later tasks, a checkpoint; to end its task is not for it."""

from __future__ import annotations

import shlex
import sys

from tests.runs.workshop import Workshop

HARNESS = f"{shlex.quote(sys.executable)} -m harness_lib"
REFUSED = ("finish", "start", "stop", "run")


def test_an_agent_may_tell_the_next_one_something_and_cannot_end_its_task(workshop: Workshop) -> None:
    """The run is none the worse for its trying; and its brief says what ends it."""
    words = ('note task-001 "port 80 is taken"', "checkpoint task-001 1/2 half", *REFUSED)
    typed = " ".join(f"{HARNESS} {each} >> said 2>&1; echo $? >> codes;" for each in words)
    one = workshop.add("One", "grep -q done f", "--cwd", ".", do=f"sh {typed}\nwrite f done")
    heard = 'grep -q "task-001: port 80 is taken" "$HARNESS_BRIEF_FILE" && touch heard'
    workshop.add("Two", "test -f heard", "--depends-on", one, do=f"sh {heard}")

    said = workshop.ends(0, "--longest", "90", "--silence", "1", "--task-cost", "2", "--max-cost", "5")

    assert (workshop.top / "codes").read_text().split() == ["0", "0", *["2"] * len(REFUSED)]
    answers = (workshop.top / "said").read_text()
    assert answers.count("End your turn") == len(REFUSED)
    assert all(f"harness {verb} is not available inside" in answers for verb in REFUSED)
    task = workshop.task(one)
    assert (task["notes"], len(task["checkpoints"])) == (["port 80 is taken"], 1)
    assert [task["attempts"] for task in workshop.state["tasks"]] == [0, 0]
    assert workshop.state["session_count"] == 1
    assert "has died" not in said.stdout
    brief = (workshop.top / ".harness/logs/task-001/1-agent-1.brief.md").read_text()
    assert "You are stopped after 90 minutes, and after 60 seconds without a word" in brief
    assert "This task may use: cost $2.00." in brief
    assert "  check (max 300 s): " in brief
    workshop.nothing_is_left_over()

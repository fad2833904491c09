"""What an agent under a run may type: a note for later tasks, a checkpoint; to end its task is not for it."""

from __future__ import annotations

import sys

from tests.runs.workshop import Workshop

HARNESS = f"{sys.executable} -m harness_lib"


def test_a_note_of_one_agent_stands_in_the_brief_of_the_next(workshop: Workshop) -> None:
    one = workshop.add(
        "One", "grep -q done f", do=f'sh {HARNESS} note task-001 "port 80 is taken"\nwrite f done'
    )
    heard = 'grep -q "task-001: port 80 is taken" "$HARNESS_BRIEF_FILE" && touch heard'
    workshop.add("Two", "test -f heard", "--depends-on", one, do=f"sh {heard}")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert workshop.task("task-001")["notes"] == ["port 80 is taken"]
    assert [task["attempts"] for task in workshop.state["tasks"]] == [0, 0]
    assert "has died" not in said.stdout
    workshop.nothing_is_left_over()


def test_an_agent_is_told_what_ends_it(workshop: Workshop) -> None:
    workshop.file_task("f", "--cwd", ".")

    said = workshop.run("--longest", "90", "--silence", "1", "--task-cost", "2")

    assert said.returncode == 0, said.stdout + said.stderr
    brief = (workshop.top / ".harness/logs/task-001/1-agent-1.brief.md").read_text()
    assert "You are stopped after 90 minutes, and after 60 seconds without a word" in brief
    assert "This task may use: cost $2.00." in brief
    assert "  check (max 300 s): " in brief


def test_an_agent_cannot_end_its_task_and_the_run_is_none_the_worse(workshop: Workshop) -> None:
    typed = " ".join(
        f"{HARNESS} {words} >> said 2>&1; echo $? >> codes;"
        for words in (
            "checkpoint task-001 1/2 half",
            "finish",
            "release",
            "stop",
            "run",
            "budget --max-cost 1",
        )
    )
    workshop.add("One", "grep -q done f", do=f"sh {typed}\nwrite f done")

    said = workshop.run("--max-cost", "5")

    assert said.returncode == 0, said.stdout + said.stderr
    assert (workshop.top / "codes").read_text().split() == ["0", "2", "2", "2", "2", "2"]
    assert (workshop.top / "said").read_text().count("Just end your turn") == 5
    assert len(workshop.state["tasks"][0]["checkpoints"]) == 1
    assert workshop.state["session_count"] == 1
    assert "has died" not in said.stdout
    workshop.nothing_is_left_over()

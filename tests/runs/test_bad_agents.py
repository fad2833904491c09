"""Agents that do nothing or end as they like, and tasks that nothing judges: said plainly, nothing lost."""

from __future__ import annotations

from pathlib import Path

from tests.runs.workshop import Workshop


def test_a_command_that_has_finished_may_end_with_any_code(workshop: Workshop, tmp_path: Path) -> None:
    workshop.file_task("f")

    said = workshop.run(agent=f"echo started >> {tmp_path / 'log'}; echo done > f; exit 3")

    assert said.returncode == 0, said.stdout + said.stderr
    assert (tmp_path / "log").read_text().split() == ["started"]
    workshop.done_is_done()


def test_what_a_check_leaves_before_the_next_agent_is_taken_back(workshop: Workshop) -> None:
    workshop.add(
        "Two lives",
        "touch trace; echo spoilt > README.md; grep -q done f",
        do="write f half\nonce exit 3\nsh test ! -f trace\nwrite f done",
    )

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert workshop.task("task-001")["attempts"] == 0
    assert (workshop.top / "README.md").read_text() == "hello\n"
    workshop.nothing_is_left_over()


def test_an_agent_that_does_nothing_fails_by_its_check(workshop: Workshop) -> None:
    workshop.add("Something", "test -f f", "--max-attempts", "2")

    said = workshop.run(agent="true")

    assert said.returncode == 9
    assert workshop.task("task-001")["attempts"] == 2
    workshop.nothing_is_left_over()


def test_what_an_agent_leaves_running_is_ended(workshop: Workshop) -> None:
    workshop.add("Daemon", "grep -q done f", do="sh setsid sleep 600 & \nwrite f done")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    workshop.nothing_is_left_over()


def test_a_task_without_a_check_waits_for_a_person_and_the_others_go_on(workshop: Workshop) -> None:
    workshop.ok("add", "No check")
    workshop.file_task("f")

    said = workshop.run()

    assert said.returncode == 9, said.stdout + said.stderr
    assert workshop.statuses() == {"task-001": "pending", "task-002": "completed"}
    assert "Missing validation.command" in workshop.task("task-001")["halt"]
    workshop.nothing_is_left_over()

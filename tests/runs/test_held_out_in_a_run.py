"""A run believes no work that fails what is held out, and its agents see nothing of that."""

from __future__ import annotations

from pathlib import Path

from tests.runs.workshop import Workshop

SECRET = "the-answer-is-42"


def test_work_that_fails_what_is_held_out_is_not_merged_and_its_agent_sees_nothing(
    workshop: Workshop, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    look = f"sh (env; ps -ww -e -o args; cat; grep -r . .) > {seen} 2>&1"
    held_out = ("--hidden", f"grep -q 42 f && echo {SECRET}", "--max-attempts", "1")
    workshop.add("Wrong", "grep -q . f", *held_out, do=f"{look}\nwrite f 41")
    workshop.add("Right", "grep -q . g", "--hidden", "grep -q 42 g", do="write g 42")

    run = workshop.run("--json", "--final-check", "all")

    assert workshop.statuses() == {"task-001": "failed", "task-002": "completed"}, run.stdout
    assert workshop.task("task-001")["error_log"] == ["[TEST_FAIL] A held-out check failed."]
    assert workshop.task("task-002")["recheck"]["passed"]
    texts = [seen.read_text(errors="replace"), run.stdout, run.stderr]
    texts += [path.read_text(errors="replace") for path in workshop.top.rglob("*") if path.is_file()]
    assert not [text for text in texts if SECRET in text or "grep -q 42" in text]

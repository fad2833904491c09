"""What an agent of a run leaves half done in git is ended with its attempt, as nobody else works there."""

from __future__ import annotations

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh


def _side(workshop: Workshop, name: str, path: str) -> None:
    sh(workshop.top, "checkout", "-q", "-b", name, "main")
    put(workshop.top / path, f"{name}\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", f"On {name}")
    sh(workshop.top, "checkout", "-q", "main")


def test_what_an_agent_leaves_under_way_is_ended_and_conflicts_go_back_to_one(workshop: Workshop) -> None:
    _side(workshop, "clean", "clean.txt")
    _side(workshop, "side", "shared")
    put(workshop.top / "shared", "ours\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "Ours")
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
    assert (workshop.top / "shared").read_text() == "side\n"
    merged = workshop.task("task-001")["completed_commit"]
    assert sh(workshop.top, "rev-parse", "clean") in sh(workshop.top, "log", "-1", "--format=%P", merged)
    workshop.done_is_done()

"""A run merges no caches, and asks a person about secrets while other tasks go on."""

from __future__ import annotations

from pathlib import Path

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import sh

SECRET = "sh printf 'KEY=1\\n' > .env\nwrite f done"


def committed(workshop: Workshop) -> list[str]:
    return sh(workshop.top, "ls-tree", "-r", "--name-only", "main").splitlines()


def test_caches_of_tasks_side_by_side_do_not_meet(workshop: Workshop) -> None:
    """Each imports the same module: the byte code that differs would conflict."""
    sh(workshop.top, "rm", "-q", ".gitignore")
    sh(workshop.top, "commit", "-q", "-m", "Ignore nothing")
    for name in ("a", "b", "c"):
        made = (
            f"sh mkdir -p __pycache__ node_modules; echo {name} > __pycache__/m; echo {name} > node_modules/x"
        )
        workshop.add(name, f"grep -q done {name}", do=f"{made}\nwrite {name} done")

    run = workshop.run("-j", "3", "--no-final-check")

    assert run.returncode == 0, run.stdout
    assert committed(workshop) == ["README.md", "a", "b", "c"]
    assert "rescue" not in run.stdout
    assert run.stdout.count(", 1 file)") == len("abc")


def test_a_secret_waits_while_the_others_go_on_and_is_accepted_later(workshop: Workshop) -> None:
    workshop.add("Secret", "grep -q done f", do=SECRET)
    workshop.file_task("g")

    run = workshop.run()

    assert run.returncode == 9, run.stdout
    assert committed(workshop) == [".gitignore", "README.md", "g"]
    (halted,) = [line for line in run.stdout.splitlines() if line.startswith("halted: task-001")]
    assert "harness accept task-001 --path .env; " in halted
    assert "harness return task-001" in halted
    assert "harness retry" not in halted
    task = workshop.task("task-001")
    assert (task["status"], task["halt_kind"], task["attempts"]) == ("pending", "SECRET", 0)
    workshop.nothing_is_left_over()

    said = workshop.ok("accept", "task-001", "--path", ".env")

    assert "is completed (commit" in said["message"]
    assert {".env", "f", "g"} <= set(committed(workshop))
    workshop.nothing_is_left_over()


def test_what_is_accepted_during_a_run_is_completed_by_that(workshop: Workshop, tmp_path: Path) -> None:
    go = tmp_path / "go"
    workshop.add("Secret", "grep -q done f", do=f"{SECRET}\ntouch {tmp_path}/worked")
    workshop.add("Slow", "grep -q done g", do=f"wait {go}\nwrite g done")
    run = workshop.start("--no-final-check")
    workshop.wait_for("it is held", lambda: "goes back: SECRET" in workshop.printed)
    (tmp_path / "worked").unlink()

    said = workshop.ok("accept", "task-001", "--path", ".env")
    go.touch()

    assert run.wait(60) == 0, workshop.printed
    assert "completes it" in said["message"]
    assert {".env", "f", "g"} <= set(committed(workshop))
    assert not (tmp_path / "worked").exists()


def test_accepted_work_that_no_longer_fits_goes_to_an_agent_and_says_why(workshop: Workshop) -> None:
    workshop.add("Secret", "grep -q done f", do=SECRET)
    assert workshop.run().returncode == 9
    (workshop.top / "f").write_text("a person was faster\n", encoding="utf-8")
    sh(workshop.top, "add", "f")
    sh(workshop.top, "commit", "-q", "-m", "By hand")

    said = workshop.harness("accept", "task-001", "--path", ".env")

    assert said.returncode == 1, said.stdout + said.stderr
    assert "Conflict marks still stand in 'f'" in said.stdout
    task = workshop.task("task-001")
    assert (task["status"], task.get("halt"), task["attempts"]) == ("pending", None, 0)
    assert task["handback"]["rescue"]


def test_returned_work_goes_on_with_what_the_person_said(workshop: Workshop) -> None:
    workshop.add("Secret", "grep -q done f", do=SECRET)
    assert workshop.run().returncode == 9

    workshop.ok("return", "task-001", "no keys in here")
    run = workshop.run(agent="sh -c 'grep -q \"no keys in here\" && test -f f && rm .env'")

    assert run.returncode == 0, run.stdout
    assert {*committed(workshop)} & {".env", "f"} == {"f"}
    assert workshop.task("task-001")["attempts"] == 0

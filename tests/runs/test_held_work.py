"""A run merges no caches, and asks the user about secrets while other tasks go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

SECRET = "sh printf 'KEY=1\\n' > .env\nwrite f done"


def committed(workshop: Workshop) -> list[str]:
    return sh(workshop.top, "ls-tree", "-r", "--name-only", "main").splitlines()


def test_caches_of_tasks_side_by_side_do_not_meet(workshop: Workshop) -> None:
    """Each imports the same module: the byte code that differs would conflict."""
    sh(workshop.top, "rm", "-q", ".gitignore")
    put(workshop.top / "package.json", "{}\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "Ignore nothing")
    for name in ("a", "b", "c"):
        made = (
            f"sh mkdir -p __pycache__ node_modules; echo {name} > __pycache__/m; echo {name} > node_modules/x"
        )
        workshop.add(name, f"grep -q done {name}", do=f"{made}\nwrite {name} done")

    run = workshop.run("-j", "3")

    assert run.returncode == 0, run.stdout
    assert committed(workshop) == ["README.md", "a", "b", "c", "package.json"]
    assert "git does not ignore node_modules/ here. " in run.stdout
    assert "rescue" not in run.stdout
    assert run.stdout.count(", 1 file)") == len("abc")


def test_a_secret_waits_for_its_answer_while_the_others_go_on(workshop: Workshop) -> None:
    """One is accepted, one is returned, and one that is accepted no longer fits."""
    for name in ("f", "g", "h"):
        secret = f"sh printf 'KEY=1\\n' > {name}/.env"
        workshop.add(
            f"Secret {name}",
            f"grep -q done {name}/x",
            do=f"sh mkdir -p {name}\n{secret}\nwrite {name}/x done",
        )
    workshop.file_task("other")

    run = workshop.run()

    assert run.returncode == 9, run.stdout
    assert committed(workshop) == [".gitignore", "README.md", "other"]
    lines = run.stdout.splitlines()
    (at,) = [at for at, line in enumerate(lines) if line.startswith("  task-001 Secret f  ")]
    assert lines[at].endswith("passed, but the work adds what is named like a secret: 'f/.env'")
    assert lines[at + 1] == "      harness rescue show task-001/1-work"
    assert workshop.ok("rescue", "show", "task-001/1-work")["next"] == "harness show task-001"
    answers = "      harness accept task-001 --path f/.env   or: harness return task-001 "
    assert lines[at + 2].startswith(answers)
    task = workshop.task("task-001")
    assert (task["status"], task["halt_kind"], task["attempts"]) == ("pending", "SECRET", 0)
    workshop.nothing_is_left_over()

    assert "is completed (commit" in workshop.ok("accept", "task-001", "--path", "f/.env")["message"]
    assert {"f/.env", "f/x", "other"} <= set(committed(workshop))
    workshop.nothing_is_left_over()
    _no_longer_fits(workshop)

    workshop.ok("return", "task-002", "no keys in here")
    agent = 'grep -q "no keys in here" && test -f g/x && rm g/.env || echo done > h/x'
    run = workshop.run(agent=agent)

    assert run.returncode == 0, run.stdout
    assert {*committed(workshop)} & {"g/.env", "g/x"} == {"g/x"}
    assert [task["attempts"] for task in workshop.state["tasks"]] == [0] * 4


def _no_longer_fits(workshop: Workshop) -> None:
    """Accept work where the user was faster: it goes to an agent again, with the reason."""
    put(workshop.top / "h/x", "the user was faster\n")
    sh(workshop.top, "add", "h/x")
    sh(workshop.top, "commit", "-q", "-m", "By hand")
    said = workshop("accept", "task-003", "--path", "h/.env")
    assert said.code == 1, said.text
    assert "Conflict marks still stand in 'h/x'" in said.out
    task = workshop.task("task-003")
    assert (task["status"], task.get("halt"), task["attempts"]) == ("pending", None, 0)
    assert task["handback"]["rescue"]


@pytest.mark.release
def test_what_is_accepted_during_a_run_is_completed_by_that(workshop: Workshop, tmp_path: Path) -> None:
    go = tmp_path / "go"
    workshop.add("Secret", "grep -q done f", do=f"{SECRET}\ntouch {tmp_path}/worked")
    workshop.add("Slow", "grep -q done g", do=f"wait {go}\nwrite g done")
    run = workshop.start()
    workshop.wait_for("it is held", lambda: "goes back: SECRET" in workshop.printed)
    (tmp_path / "worked").unlink()

    said = workshop.ok("accept", "task-001", "--path", ".env")
    go.touch()

    assert run.wait(60) == 0, workshop.printed
    assert "completes it" in said["message"]
    assert {".env", "f", "g"} <= set(committed(workshop))
    assert not (tmp_path / "worked").exists()

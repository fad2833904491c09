"""Conflict marks that a run itself has put into a work tree are never merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

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
    return run.wait(90)


@pytest.mark.release
def test_marks_that_an_agent_leaves_go_back_until_all_are_gone(workshop: Workshop, tmp_path: Path) -> None:
    put(workshop.top / "fixture", "<<<<<<< ours\n=======\n>>>>>>> theirs\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-qm", "A fixture")

    ended = go(workshop, tmp_path, rounds=2)

    assert ended == 0, workshop.printed
    assert workshop.task("task-002")["attempts"] == 0
    assert "Conflict marks still stand in 'shared'" in workshop.printed
    brief = (tmp_path / "brief").read_text()
    assert (
        "handed back: The work passed its check, but cannot be merged. Conflict marks still stand in" in brief
    )
    assert "yours) stand in: shared" in brief
    assert "it is merged only when they are gone" in brief
    assert sorted((workshop.top / "shared").read_text().split()) == ["line1", "line2"]
    assert "<<<<<<< ours" in (workshop.top / "fixture").read_text()
    workshop.all_is_well()


@pytest.mark.release
def test_marks_that_nobody_resolves_fail_the_attempt(workshop: Workshop, tmp_path: Path) -> None:
    ended = go(workshop, tmp_path, rounds=99)

    assert ended == 9, workshop.printed
    assert workshop.statuses() == {"task-001": "completed", "task-002": "failed"}
    assert "Conflict marks still stand in 'shared'" in workshop.task("task-002")["error_log"][0]
    assert (workshop.top / "shared").read_text() == "line1\n"
    workshop.failures_are_kept()
    workshop.nothing_is_left_over()


def test_a_fixture_with_marks_of_its_own_lands(workshop: Workshop) -> None:
    name = f"{'0' * 39}1"
    marks = rf"printf '<<<<<<< {name}\na\n=======\nb\n>>>>>>> {name}\n' > fixture"
    workshop.add("Fixture", "test -s fixture", do=f"sh {marks}")

    said = workshop.ends(0)

    assert "handed back" not in said.stdout
    assert sh(workshop.top, "show", "main:fixture").startswith(f"<<<<<<< {name}")

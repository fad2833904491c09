"""`harness validate --all --committed`: the final check of a list, in projects of several languages."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from harness_lib.attempts import committed
from tests.system.git.gitrepo import sh
from tests.verbs.project import Agent, Project

FINAL = "harness validate --all --committed"


class Kind(NamedTuple):
    """A language: the file that the first task makes, what breaks it, its check, and what that needs."""

    file: str
    right: str
    wrong: str
    check: str
    needs: str


KINDS = {
    "python": Kind(
        "lib.py",
        "VALUE = 1\n",
        "VALUE = 2\n",
        f"{sys.executable} -B -c 'import lib; assert lib.VALUE == 1'",
        sys.executable,
    ),
    "node": Kind(
        "lib.js",
        "module.exports = 1\n",
        "module.exports = 2\n",
        "node -e 'process.exit(require(\"./lib.js\") === 1 ? 0 : 1)'",
        "node",
    ),
    "c": Kind(
        "lib.c",
        "int main(void) { return 0; }\n",
        "int main(void) { return 1; }\n",
        "gcc -o prog lib.c && ./prog",
        "gcc",
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    chosen: Kind = KINDS[request.param]
    if shutil.which(chosen.needs) is None:
        pytest.skip(f"there is no {chosen.needs}")
    return chosen


@pytest.fixture
def begun(project: Project, agent: Agent, kind: Kind, tmp_path: Path) -> Project:
    """Return a list of two tasks, the first of which is done; git ignores what its check builds."""
    project.put(".gitignore", "prog\n")
    project.commit()
    agent.ok("add", "Library", "--validate", kind.check, HARNESS_HOME=str(tmp_path / "home"))
    agent.ok("add", "User", "--validate", "test -f user")
    agent.ok("claim")
    project.put(kind.file, kind.right)
    agent.ok("finish")
    agent.ok("claim")
    project.put("user")
    return project


def test_after_the_last_finish_it_is_what_to_type_and_then_all_is_done(begun: Project, agent: Agent) -> None:
    finish = agent.ok("finish")
    assert (finish["stop"], finish["next"]) == (None, FINAL)
    assert begun.marker

    reply = agent.ok("validate", "--all", "--committed")

    assert reply["stop"] == {"reason": "done"}
    assert (
        f"2 of 2 checks of completed tasks pass on a clean checkout of {begun.head[:12]}" in reply["message"]
    )
    assert [task["recheck"]["passed"] for task in begun.state["tasks"]] == [True, True]
    assert begun.state["sessions"] == []
    assert not begun.marker
    assert len(begun.git("worktree", "list").splitlines()) == 1


def test_it_works_in_slices_and_names_itself_until_it_is_through(
    begun: Project, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.ok("finish")
    # Time for one check and no more.
    monkeypatch.setattr(committed, "SLICE_SECONDS", 1.5)
    agent.clock.hurry_after = begun.top / "tracked.txt"

    first = agent.ok("validate", "--all", "--committed")
    assert (first["left"], first["stop"], first["next"]) == (1, None, FINAL)
    assert ["recheck" in task for task in begun.state["tasks"]] == [True, False]

    second = agent.ok("validate", "--all", "--committed")
    assert (second["ran"], second["left"], second["stop"]) == (1, 0, {"reason": "done"})


def test_what_a_later_task_broke_is_red_and_to_be_done_again(
    begun: Project, agent: Agent, kind: Kind
) -> None:
    begun.put(kind.file, kind.wrong)
    agent.ok("finish")

    red = agent.fails(1, "validate", "--all", "--committed")

    assert (red["stop"], red["next"]) == (None, "harness retry task-001")
    assert begun.marker
    agent.ok("retry", "task-001")
    agent.ok("claim")
    begun.put(kind.file, kind.right)
    assert agent.ok("finish")["next"] == FINAL
    assert agent.final_check()["stop"] == {"reason": "done"}


def test_a_list_without_it_is_done_with_its_last_task(begun: Project, agent: Agent) -> None:
    agent.ok("init", "--no-final-check")
    assert agent.ok("finish")["stop"] == {"reason": "done"}
    assert not begun.marker
    agent.ok("edit", "--final-check")
    assert "final_check" not in begun.state["session_config"]


def test_in_ci_the_tasks_of_a_range_are_checked_and_nothing_is_recorded(
    begun: Project, agent: Agent, kind: Kind, tmp_path: Path
) -> None:
    before_last = begun.head
    begun.put(kind.file, kind.wrong)
    agent.ok("finish")
    begun.git("add", "--force", "harness-tasks.json")
    begun.commit_only("the list")
    sh(tmp_path, "clone", "-q", str(begun.top), "ci")
    robot = begun.agent("ci", tmp_path / "ci", CI="true", HARNESS_WORKER_ID=None)
    assert (
        "harness trust" in robot.fails(8, "validate", "--committed", "--range", "HEAD~3..")["error"]["hint"]
    )
    robot.ok("trust", "--yes", HARNESS_TRUST="1")
    listed = (tmp_path / "ci/harness-tasks.json").read_bytes()

    last = robot.ok("validate", "--committed", "--range", f"{before_last}..HEAD")
    whole = robot.fails(1, "validate", "--committed", "--range", "HEAD~3..")

    assert [each["id"] for each in last["results"]] == ["task-002"]
    assert [each["id"] for each in whole["results"]] == ["task-001"]
    assert (tmp_path / "ci/harness-tasks.json").read_bytes() == listed
    assert len(sh(tmp_path / "ci", "worktree", "list").splitlines()) == 1
    assert sh(tmp_path / "ci", "status", "--porcelain") == ""
    for span in ("HEAD", "nothing..HEAD", "--all..HEAD", "HEAD...HEAD"):
        robot.fails(2, "validate", "--committed", f"--range={span}")


@pytest.mark.parametrize("words", [("--committed",), ("task-001", "--committed"), ("--range", "A..B")])
def test_what_is_meant_must_be_said_whole(agent: Agent, words: tuple[str, ...]) -> None:
    agent.ok("add", "One", "--validate", "true")
    assert FINAL in agent.fails(2, "validate", *words)["error"]["hint"]


def test_the_checkout_is_set_up_once_as_that_of_a_run_is(
    project: Project, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`harness-init.sh` runs in it, and the ignored files that a run copies are there."""
    project.put(".gitignore", ".env\n")
    project.put(".env", "KEY=1\n")
    project.put("harness-init.sh", f'echo "$PWD" >> {tmp_path}/set-up\n').chmod(0o755)
    project.commit()
    project.agent("person", CLAUDE_PID=None).ok("trust", "--yes", HARNESS_TRUST="1")
    for name in ("One", "Two"):
        agent.ok("add", name, "--validate", f"grep -q KEY .env && echo {name}")
        agent.ok("claim")
        agent.ok("finish")
    (tmp_path / "set-up").unlink()
    # No time is left for a check after the set-up.
    monkeypatch.setattr(committed, "SLICE_SECONDS", 0.0)
    assert agent.ok("validate", "--all", "--committed")["left"] == 2

    monkeypatch.setattr(committed, "SLICE_SECONDS", 90.0)
    assert agent.final_check()["stop"] == {"reason": "done"}

    (place,) = (tmp_path / "set-up").read_text().splitlines()
    assert not place.startswith(str(project.top))
    assert not Path(place).exists()

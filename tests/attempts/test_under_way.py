"""A merge, rebase or the like of the user, begun in the middle of an attempt, is theirs to end."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.system.git.gitrepo import put, sh
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin, own_work_tree

CONTINUED = ("merge", "rebase", "cherry-pick", "revert", "am")
END = ("-c", "core.editor=true")
AGAIN = "echo again > tracked.txt; git commit -qam Again"


# What git calls it, and what the user types.
OPERATIONS = {
    "a merge": ("merge", "git merge side"),
    "a merge without conflicts": ("merge", "git merge --no-ff --no-commit clean"),
    "a rebase": ("rebase", "git rebase --merge side"),
    "a rebase by patches": ("rebase", "git rebase --apply side"),
    "a cherry-pick": ("cherry-pick", "git cherry-pick side"),
    "a revert": ("revert", f"{AGAIN}; git revert --no-edit HEAD~1"),
    "patches": ("am", "git format-patch -1 --stdout side | git am -3"),
    "a bisect": ("bisect", "git bisect start"),
    "a stash": ("not resolved", f"echo stashed > tracked.txt; git stash; {AGAIN}; git stash pop"),
}
# Of a kind that another one has.
ALIKE = ("a merge without conflicts", "a rebase by patches")


def _two_sides(project: Project) -> None:
    """Make a branch that changes the file that main will change, and one that does not."""
    for name, path in (("side", "tracked.txt"), ("clean", "clean.txt")):
        project.git("checkout", "-q", "-b", name, "main")
        project.commit(f"On {name}", files={path: "theirs\n"})
    project.git("checkout", "-q", "main")


def _work(top: Path) -> None:
    """Commit something on the branch of the attempt, and leave what its check asks for."""
    put(top / "tracked.txt", "ours\n")
    sh(top, "commit", "-q", "-a", "-m", "Ours")
    put(top / "done", "x\n")


def _start(top: Path, what: str) -> str:
    """Begin what is called `what`; return its name in git."""
    name, line = OPERATIONS[what]
    subprocess.run(line, shell=True, cwd=top, check=False, capture_output=True)
    return name


def _standing(top: Path) -> tuple[str, ...]:
    """Return where the repository stands: HEAD, what is staged, changed and in conflict, and what waits."""
    git_dir = Path(sh(top, "rev-parse", "--absolute-git-dir"))
    waiting = [name for name in sorted(path.name for path in git_dir.iterdir()) if _waits(name)]
    return sh(top, "status", "--porcelain=v2", "--branch"), sh(top, "ls-files", "-s"), *waiting


def _waits(name: str) -> bool:
    return name.endswith("_HEAD") or name.startswith(("rebase-", "BISECT"))


def _end(top: Path, name: str) -> None:
    """End it as the user does: everything is resolved, and git goes on."""
    if name == "bisect":
        sh(top, "bisect", "reset")
        return
    if sh(top, "ls-files", "-u"):
        put(top / "tracked.txt", "both\n")
        sh(top, "add", "tracked.txt")
    if name in CONTINUED:
        sh(top, *END, name, "--continue")


def _under_way(project: Project, agent: Agent, what: str) -> tuple[str, tuple[str, ...]]:
    """Begin `what` in the middle of an attempt; return its name in git, and where the repository stands."""
    _two_sides(project)
    begin(agent)
    _work(project.top)
    return _start(project.top, what), _standing(project.top)


@pytest.mark.parametrize("what", [*(name for name in OPERATIONS if name not in ALIKE), *for_release(*ALIKE)])
def test_no_verb_ends_what_the_user_has_under_way(project: Project, agent: Agent, what: str) -> None:
    name, before = _under_way(project, agent, what)

    for verb in (("checkpoint", "1/2", "half"), ("fail", "--message", "no"), ("release",), ("finish",)):
        error = agent.fails(8, *verb)["error"]
        assert name in error["message"], verb
        assert f"then type: harness {verb[0]} task-001" in error["hint"], verb
        assert _standing(project.top) == before, verb
    task = project.task()
    assert (task["status"], task["attempts"], task["checkpoints"]) == ("in_progress", 0, [])
    assert project.refs() == []
    assert project.state["sessions"][0]["halt"].startswith("REFUSED: ")

    _end(project.top, name)
    agent.ok("finish")
    assert project.task()["status"] == "completed"
    assert "<<<<<<<" not in project.git("show", "HEAD:tracked.txt")


@pytest.mark.parametrize("what", ["a merge", "a rebase", "a cherry-pick", "a revert", "a bisect"])
def test_no_attempt_begins_beside_it(project: Project, agent: Agent, what: str) -> None:
    _two_sides(project)
    agent.ok("add", "One", "--validate", "true")
    _work(project.top)
    name = _start(project.top, what)
    before = _standing(project.top), project.files

    assert name in agent.fails(8, "claim")["error"]["message"]

    assert (_standing(project.top), project.files) == before
    assert project.task()["status"] == "pending"


@pytest.mark.parametrize("what", ["a merge", *for_release("a rebase")])
def test_recovery_leaves_it_to_the_user_too(project: Project, agent: Agent, what: str) -> None:
    name, before = _under_way(project, agent, what)
    agent.die()
    agent.wake()

    for verb in ("start", "recover"):
        error = agent.fails(8, verb)["error"]
        assert name in error["message"]
        assert "harness recover" in error["hint"]
        assert _standing(project.top) == before
    assert project.task()["attempts"] == 0

    _end(project.top, name)
    agent("recover")
    assert project.task()["status"] == "completed"


def test_in_a_linked_work_tree_it_is_left_as_well(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    _two_sides(project)
    worker = own_work_tree(project, "worker")
    begin(worker)
    _work(worker.cwd)
    _start(worker.cwd, "a rebase")
    before = _standing(worker.cwd)

    worker.fails(8, "finish")
    assert _standing(worker.cwd) == before

    _end(worker.cwd, "rebase")
    worker.ok("finish")


def test_a_merge_begun_while_the_check_runs_is_left_alone(project: Project, agent: Agent) -> None:
    _two_sides(project)
    begin(agent, "git merge -q --no-ff --no-commit clean")
    agent.finishes({"done": "x\n"}, code=8)

    assert (project.top / ".git/MERGE_HEAD").exists()
    assert project.task()["status"] == "in_progress"
    assert project.task().get("intent") is None


def test_work_whose_claim_was_lost_is_not_saved_over_a_merge(project: Project, agent: Agent) -> None:
    _two_sides(project)
    _work(project.top)
    _start(project.top, "a merge")
    before = _standing(project.top)

    agent.fails(8, "rescue", "save", "task-001")
    assert _standing(project.top) == before

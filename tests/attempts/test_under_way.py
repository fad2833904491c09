"""A merge, rebase or the like of the user, begun in the middle of an attempt, is theirs to end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.system.git.gitrepo import put, sh
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin, own_work_tree

CONTINUED = ("merge", "rebase", "cherry-pick", "revert", "am")
END = ("-c", "core.editor=true")


def _merge(top: Path) -> None:
    sh(top, "merge", "side", check=False)


def _merge_without_conflict(top: Path) -> None:
    sh(top, "merge", "--no-ff", "--no-commit", "clean")


def _rebase(top: Path) -> None:
    sh(top, "rebase", "--merge", "side", check=False)


def _rebase_by_patches(top: Path) -> None:
    sh(top, "rebase", "--apply", "side", check=False)


def _cherry_pick(top: Path) -> None:
    sh(top, "cherry-pick", "side", check=False)


def _revert(top: Path) -> None:
    put(top / "tracked.txt", "again\n")
    sh(top, "commit", "-q", "-a", "-m", "Again")
    sh(top, "revert", "--no-edit", "HEAD~1", check=False)


def _am(top: Path) -> None:
    patch = put(top.parent / "patch", sh(top, "format-patch", "-1", "--stdout", "side") + "\n")
    sh(top, "am", "-3", str(patch), check=False)


def _bisect(top: Path) -> None:
    sh(top, "bisect", "start")


def _stash_pop(top: Path) -> None:
    put(top / "tracked.txt", "stashed\n")
    sh(top, "stash")
    put(top / "tracked.txt", "again\n")
    sh(top, "commit", "-q", "-a", "-m", "Again")
    sh(top, "stash", "pop", check=False)


OPERATIONS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a merge": ("merge", _merge),
    "a merge without conflicts": ("merge", _merge_without_conflict),
    "a rebase": ("rebase", _rebase),
    "a rebase by patches": ("rebase", _rebase_by_patches),
    "a cherry-pick": ("cherry-pick", _cherry_pick),
    "a revert": ("revert", _revert),
    "patches": ("am", _am),
    "a bisect": ("bisect", _bisect),
    "a stash": ("not resolved", _stash_pop),
}
# Of a kind that another one has.
AGAIN = ("a merge without conflicts", "a rebase by patches")


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


@pytest.mark.parametrize("what", [*(name for name in OPERATIONS if name not in AGAIN), *for_release(*AGAIN)])
def test_no_verb_ends_what_the_user_has_under_way(project: Project, agent: Agent, what: str) -> None:
    name, start = OPERATIONS[what]
    _two_sides(project)
    begin(agent)
    _work(project.top)
    start(project.top)
    before = _standing(project.top)

    for verb in (
        ("checkpoint", "1/2", "half"),
        ("fail", "--category", "TASK_EXEC", "--message", "no"),
        ("release",),
        ("finish",),
    ):
        error = agent.fails(8, *verb)["error"]
        assert f"A {name} is under way" in error["message"] or name in error["message"], verb
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
    name, start = OPERATIONS[what]
    _two_sides(project)
    agent.ok("add", "One", "--validate", "true")
    _work(project.top)
    start(project.top)
    before = _standing(project.top), project.files

    assert name in agent.fails(8, "claim")["error"]["message"]

    assert (_standing(project.top), project.files) == before
    assert project.task()["status"] == "pending"


@pytest.mark.parametrize("what", ["a merge", *for_release("a rebase")])
def test_recovery_leaves_it_to_the_user_too(project: Project, agent: Agent, what: str) -> None:
    name, start = OPERATIONS[what]
    _two_sides(project)
    begin(agent)
    _work(project.top)
    start(project.top)
    before = _standing(project.top)
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
    _rebase(worker.cwd)
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
    _merge(project.top)
    before = _standing(project.top)

    agent.fails(8, "rescue", "save", "task-001")
    assert _standing(project.top) == before

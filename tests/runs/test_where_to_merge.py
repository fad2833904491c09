"""Where a run merges: a branch with any name or place, or a plain word on why there is none."""

from __future__ import annotations

import shutil
from copy import copy
from pathlib import Path

import pytest

from tests.runs.conftest import Make
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import commit_all, sh


def merged(workshop: Workshop, branch: str = "main") -> list[str]:
    """Return what is on the branch besides the first commit, and nothing else of ours."""
    assert workshop.sh("worktree", "list", "--porcelain").count("worktree ") == 1
    assert list((workshop.home / "worktrees").glob("*")) == []
    return sorted(workshop.sh("log", "--format=%s", branch).splitlines()[:-1])


@pytest.mark.release
def test_a_project_in_a_directory_of_a_repository_has_its_list(tmp_path: Path, make_workshop: Make) -> None:
    """All runs at the top unless a check says otherwise; the list is not merged with the work."""
    above, trace = make_workshop().top, tmp_path / "trace"
    inside = Workshop(above / "pa", tmp_path / "home")
    commit_all(above, "A project inside", {"pa/README.md": "inside\n"})
    inside.ok("init", ".")
    at_the_top = "test -f .gitignore && test -d pa"
    inside.put("harness-init.sh", f"{at_the_top} && echo init >> {trace}\n")
    inside.add("Above", f"{at_the_top} && test -f g", do="write g done")
    inside.add("Inside", "test ! -e .gitignore && test -f f", "--cwd", "pa", do="write pa/f done")
    sh(above, "add", "--force", "pa/harness-tasks.json", "pa/harness-init.sh")
    sh(above, "commit", "-q", "-m", "The list, too")
    committed = sh(above, "show", "HEAD:pa/harness-tasks.json")

    inside.ends(0, "-j", "2")

    assert set(inside.statuses().values()) == {"completed"}
    assert set(trace.read_text().split()) == {"init"}
    assert (inside.read("f"), (above / "g").read_text()) == ("done\n", "done\n")
    work = ["[task-001] Above", "[task-002] Inside"]
    assert merged(inside) == ["A project inside", "The list, too", *work]
    assert sh(above, "show", "HEAD:pa/harness-tasks.json") == committed
    changed = sh(above, "status", "--porcelain", "--untracked-files=all")
    assert changed.split() == ["M", "pa/harness-tasks.json"]


def test_spaces_in_every_path_and_a_branch_with_a_slash(tmp_path: Path, make_workshop: Make) -> None:
    make_workshop()
    workshop = Workshop.make(tmp_path / "with a space", files={"README.md": "hello\n"})
    workshop.home = tmp_path / "my 'own' home"
    workshop.home.mkdir()
    workshop.sh("switch", "-q", "-c", "feature/of-mine")
    workshop.put("harness-init.sh", 'test -d "$PWD"\n')
    workshop.file_task("one")
    workshop.file_task("two")
    workshop.put("two", "in the way\n")

    said = workshop.ends(9, "-j", "2")

    assert "git merge harness/feature/of-mine" in said.stdout
    (workshop.top / "two").unlink()
    workshop.file_task("three")
    workshop.ends(0)
    done = ["[task-001] Make one", "[task-002] Make two", "[task-003] Make three"]
    assert merged(workshop, "feature/of-mine") == done
    assert workshop.sh("log", "--format=%s", "main") == "Begin"
    branches = workshop.sh("for-each-ref", "--format=%(refname:short)", "refs/heads")
    assert branches.split() == ["feature/of-mine", "main"]


def test_without_a_branch_there_is_nowhere_to_merge(workshop: Workshop) -> None:
    workshop.file_task("one")
    workshop.sh("switch", "-q", "--detach")

    said = workshop.run()

    assert said.returncode == 2
    assert "HEAD is detached" in said.stderr
    assert "git switch -c NAME" in said.stderr
    # Git would refuse that, too.
    workshop.sh("rebase", "-q", "--exec", "false", "--root", check=False)
    assert "End your rebase first; see how: git status" in workshop.run().stderr
    assert workshop.state["session_count"] == 0


def test_in_a_linked_work_tree_it_is_the_branch_there(workshop: Workshop, tmp_path: Path) -> None:
    workshop.file_task("one")
    workshop.sh("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    before = workshop.git.ref("refs/heads/main")
    there = copy(workshop)
    there.top = tmp_path / "side"

    there.ends(0)

    assert workshop.statuses() == {"task-001": "completed"}
    assert (there.top / "one").exists()
    assert workshop.git.ref("refs/heads/main") == before
    assert sh(there.top, "status", "--porcelain") == ""


def test_a_branch_without_a_commit_is_told_what_to_type(workshop: Workshop) -> None:
    workshop.file_task("one")
    workshop.sh("update-ref", "-d", "refs/heads/main")
    shutil.rmtree(workshop.top / ".git/logs")

    said = workshop.run()
    assert said.returncode == 7
    assert "has no commit yet" in said.stderr
    assert "git commit --allow-empty" in said.stderr

    workshop.sh("commit", "-q", "--allow-empty", "-m", "Start")
    workshop.ends(0)
    workshop.file_task("two")
    workshop.sh("checkout", "-q", "--orphan", "new")
    assert "git switch main" in workshop.ends(7).stderr


def test_a_branch_in_the_place_of_ours_is_named_before_anything_begins(workshop: Workshop) -> None:
    workshop.file_task("one")
    for name in ("harness", "harness/main/mine"):
        workshop.sh("branch", name)

        said = workshop.run()

        assert said.returncode == 7
        assert f"beside {name}." in said.stderr
        assert workshop.state["session_count"] == 0
        workshop.sh("branch", "-M", name, "mine")
    workshop.ends(0)


# -- a branch that the user has moved or lost: their move stays, and what was lost is named


MAIN = "refs/heads/main"


def test_what_the_user_does_to_the_branch_meanwhile_stays(workshop: Workshop) -> None:
    workshop.file_task("first")
    workshop.ends(0)
    go = workshop.at_work()
    workshop.sh("commit", "-q", "--amend", "-m", "said better")
    mine = workshop.sh("rev-parse", "main")
    go.touch()

    workshop.has_ended(0)
    assert workshop.git.is_ancestor(mine, MAIN)


def test_a_branch_that_is_renamed_is_named_with_its_cure(workshop: Workshop) -> None:
    go = workshop.at_work()
    workshop.file_task("g")
    workshop.sh("branch", "-m", "main", "trunk")
    go.touch()
    workshop.has_ended(7)
    cure = "git branch -m trunk main"
    why = "The branch main is called trunk now, and there is work for main"

    (halt,) = workshop.ok("status")["halts"]
    report = workshop.ok("report")["report"]

    assert halt.startswith(f"the last run ended: {why}. Give it its name back")
    assert halt.endswith(f"{cure}; then: harness run")
    assert (report["again"], report["commands"]) == (f"harness run is refused: {why}", [cure])
    assert "the last run ended" not in workshop.printed
    workshop.sh(*cure.split()[1:])
    workshop.ends(0)
    assert set(workshop.statuses().values()) == {"completed"}

"""Finished work that waits for the user: `harness status` says why, and how to take it over."""

from __future__ import annotations

import subprocess

import pytest

from tests.conftest import for_release
from tests.system.git.gitrepo import sh
from tests.verbs.project import Agent, Project

TAKE_OVER = ". Take it over with: git merge harness/main"


@pytest.fixture
def waiting(project: Project) -> Project:
    """Return a project where the files `new` and `sub/new`, and a change of tracked.txt, wait for main."""
    project.put(".gitignore", "new\n*.log\n")
    project.put("other.txt")
    project.commit("Ignore")
    project.git("switch", "-q", "-c", "harness/main")
    project.put("new", "the work's\n")
    project.put("sub/new", "the work's\n")
    project.put("tracked.txt", "two\n")
    project.git("add", "--force", "new", "sub/new")
    project.commit("Work")
    project.git("switch", "-q", "main")
    return project


def reason(agent: Agent) -> str:
    (line,) = agent.ok("status")["halts"]
    begin, end = "Finished work waits on the branch harness/main", TAKE_OVER
    assert line.startswith(begin)
    assert line.endswith(end)
    return str(line[len(begin) : -len(end)])


def test_three_changes_of_the_users_are_named_and_the_rest_counted(waiting: Project, agent: Agent) -> None:
    """What stands nowhere in the way is no reason, and no name draws on the terminal."""
    waiting.put("own.txt", "untracked, and nowhere in the way\n")
    assert reason(agent) == ""
    waiting.put("other.txt", "mine\n")
    assert reason(agent) == ": you have changes in other.txt"
    waiting.git("checkout", "-q", "other.txt")
    waiting.put("\x1b[2Jgone")
    for number in range(4):
        waiting.put(f"f{number}")
    waiting.git("add", "-A")
    assert reason(agent) == ": you have changes in \ufffd[2Jgone, f0, f1 and 3 more"


@pytest.mark.parametrize(
    ("name", "parted", "stages"),
    [
        ("tracked.txt", False, False),
        ("other.txt", False, True),
        ("other.txt", True, True),
        *for_release(
            ("tracked.txt", False, True),
            ("tracked.txt", True, False),
            ("tracked.txt", True, True),
            ("other.txt", False, False),
            ("other.txt", True, False),
        ),
    ],
)
def test_what_is_said_about_a_change_is_what_git_does(
    waiting: Project, agent: Agent, name: str, *, parted: bool, stages: bool
) -> None:
    if parted:
        waiting.put("more.txt", "mine\n")
        waiting.commit("The user's")
    waiting.put(name, "one, mine\n")
    if stages:
        waiting.git("add", name)

    refuses = f"you have changes in {name}, for which git would not merge: commit that first" in reason(agent)

    assert refuses == (name == "tracked.txt" or (stages and parted))
    assert merges(waiting) is not refuses
    if refuses and name == "other.txt":
        waiting.commit("Mine first")
        assert merges(waiting)


def merges(project: Project) -> bool:
    """Type what `told` says to take the work over."""
    command = ["git", "-C", str(project.top), "merge", "--quiet", "--no-edit", "harness/main"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_an_ignored_file_is_to_be_moved_before_git_overwrites_it(waiting: Project, agent: Agent) -> None:
    waiting.put("new", "mine\n")
    assert reason(agent) == ": your own new stands where it has a file: move that away first"
    waiting.put("sub/new", "mine\n")
    assert reason(agent) == ": your own new, sub/new stand where it has files: move them away first"


def test_branches_that_have_parted_are_told(waiting: Project, agent: Agent) -> None:
    waiting.put("other.txt", "mine\n")
    waiting.commit("The user's")
    assert reason(agent) == ": main has commits of its own"
    waiting.put("new", "mine\n")
    waiting.put("tracked.txt", "mine\n")
    assert reason(agent) == (
        ": main has commits of its own; you have changes in tracked.txt, for which git would not merge: "
        "commit that first, or put that away; "
        "your own new stands where it has a file: move that away first"
    )


def test_the_checkout_that_counts_is_the_one_of_the_target(waiting: Project, agent: Agent) -> None:
    elsewhere = waiting.top.parent / "elsewhere"
    waiting.git("switch", "-q", "-c", "mine")
    waiting.put("other.txt", "mine\n")
    assert reason(agent) == ""
    waiting.git("worktree", "add", "-q", str(elsewhere), "main")
    (elsewhere / "tracked.txt").write_text("mine\n", encoding="utf-8")
    assert reason(agent).startswith(": you have changes in tracked.txt, for which")
    assert sh(elsewhere, "status", "--porcelain") == "M tracked.txt"


def test_what_waits_is_told_even_where_git_cannot_look_at_the_files(waiting: Project, agent: Agent) -> None:
    (waiting.top / ".git" / "index").write_bytes(b"damaged")
    assert reason(agent) == ""

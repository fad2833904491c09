"""What is brought into a worker's place: ignored files that checks need, by default or by a list of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.attempts import worker_worktrees
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh


def brought(project: Workshop) -> set[str]:
    """Return the files that are in the place of a worker besides those of the commit."""
    ctx = project.context()
    place = worker_worktrees.directory_of(ctx, "run-1").worktree(1)
    git, _ = worker_worktrees.checkout_clean(ctx, place, str(ctx.git.head()))
    files = {str(each.relative_to(place)) for each in place.rglob("*") if each.is_file()}
    return {name for name in files if not name.startswith(".git/")} - set(git.lines("ls-files"))


def inside(above: Workshop, home: Path, *, ignored: str) -> Workshop:
    """Return a project with a list in the directory `pa` of the repository `above`."""
    made = Workshop(above.top / "pa", home)
    put(above.top / ".gitignore", ignored)
    put(made.top / "README.md", "inside\n")
    sh(above.top, "add", "-A")
    sh(above.top, "commit", "-q", "-m", "A project inside")
    made.ok("init", ".")
    return made


def test_ignored_files_that_checks_need_are_there_and_nothing_else_of_a_persons(workshop: Workshop) -> None:
    put(workshop.top / ".gitignore", ".env\nnode_modules/\n/.venv\n")
    put(workshop.top / ".env.local", "tracked\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "What is ignored")
    put(workshop.top / ".env", "secret\n")
    put(workshop.top / "node_modules" / "left" / "pad.js", "pad\n")
    put(workshop.top / "notes.txt", "untracked\n")
    put(workshop.top / ".venv" / "bin" / "tool", "#!/bin/sh\nexit 0\n", executable=True)
    here = "grep -q secret .env && test -f node_modules/left/pad.js && .venv/bin/tool && test ! -e notes.txt"
    workshop.add("Look", f"{here} && grep -q tracked .env.local && test -f f", do="write f x")

    workshop.ends(0)

    assert sh(workshop.top, "ls-files").split() == [".env.local", ".gitignore", "README.md", "f"]
    assert (workshop.top / "notes.txt").read_text() == "untracked\n"


def test_a_list_of_ones_own_says_what_is_brought(workshop: Workshop) -> None:
    put(workshop.top / ".gitignore", "*.key\ncache/\n.env\n")
    put(workshop.top / ".worktreeinclude", "# for tests\nsecrets/*.key\n\ncache/\nplain.txt\n../outside\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "What is brought")
    for name in ("secrets/one.key", "secrets/two.key", "cache/deep/file", ".env", "plain.txt", "../outside"):
        put(workshop.top / name, "here\n")

    assert brought(workshop) == {"secrets/one.key", "secrets/two.key", "cache/deep/file"}


def test_what_a_project_inside_of_the_repository_needs_is_brought_to_its_place(workshop: Workshop) -> None:
    project = inside(workshop, workshop.home, ignored=".env\nnode_modules/\n")
    for place in (workshop.top, project.top, workshop.top / "pb"):
        put(place / ".env", f"of {place.name}\n")
    put(project.top / "node_modules" / "pad.js", "pad\n")

    assert brought(project) == {".env", "pa/.env", "pa/node_modules/pad.js"}


def test_a_list_of_what_is_brought_names_nothing_above_itself(workshop: Workshop) -> None:
    put(workshop.top / "pa/.worktreeinclude", "../above.key\nsub/../../above.key\ninside.key\n")
    project = inside(workshop, workshop.home, ignored="*.key\n")
    put(workshop.top / "above.key", "precious\n")
    put(project.top / "inside.key", "here\n")

    assert brought(project) == {"pa/inside.key"}


@pytest.mark.parametrize("place", ["", "pa/"], ids=["above", "inside"])
def test_the_list_of_what_is_brought_may_lie_in_either_place(workshop: Workshop, place: str) -> None:
    """Its lines are seen from where it lies, and it is instead of what is brought without one."""
    put(workshop.top / place / ".worktreeinclude", "keys/*.key\n")
    project = inside(workshop, workshop.home, ignored=".env\n*.key\n")
    for name in ("keys/one.key", "pa/keys/one.key", ".env", "pa/.env"):
        put(workshop.top / name, "here\n")

    assert brought(project) == {f"{place}keys/one.key"}

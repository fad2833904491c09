"""What is brought into a worker's place: ignored files that checks need, by default or by a list of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.conftest import Make
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh


def test_ignored_files_that_checks_need_are_there_and_nothing_else_of_a_persons(make_workshop: Make) -> None:
    workshop = make_workshop()
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

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert sh(workshop.top, "ls-files").split() == [".env.local", ".gitignore", "README.md", "f"]
    assert (workshop.top / "notes.txt").read_text() == "untracked\n"


def test_a_list_of_ones_own_says_what_is_brought(make_workshop: Make) -> None:
    workshop = make_workshop()
    put(workshop.top / ".gitignore", "*.key\ncache/\n.env\n")
    put(workshop.top / ".worktreeinclude", "# for tests\nsecrets/*.key\n\ncache/\nplain.txt\n../outside\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "What is brought")
    for name in ("secrets/one.key", "secrets/two.key", "cache/deep/file", ".env", "plain.txt", "../outside"):
        put(workshop.top / name, "here\n")
    brought = "test -f secrets/one.key && test -f secrets/two.key && test -f cache/deep/file"
    workshop.add("Look", f"{brought} && test ! -e plain.txt && test ! -e .env && test -f f", do="write f x")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr


def test_what_a_project_inside_of_the_repository_needs_is_brought_to_its_place(
    tmp_path: Path, make_workshop: Make
) -> None:
    above = make_workshop().top
    inside = Workshop(above / "pa", tmp_path / "home")
    put(above / ".gitignore", ".env\nnode_modules/\n")
    put(inside.top / "README.md", "inside\n")
    sh(above, "add", "-A")
    sh(above, "commit", "-q", "-m", "A project inside")
    for place in (above, inside.top, above / "pb"):
        put(place / ".env", f"of {place.name}\n")
    put(inside.top / "node_modules" / "pad.js", "pad\n")
    inside.ok("init", ".")
    brought = "grep -q 'of project' .env && grep -q 'of pa' pa/.env && test -f pa/node_modules/pad.js"
    inside.add("Look", f"{brought} && test ! -e pb && test -f f", do="write f x")

    said = inside.run()

    assert said.returncode == 0, said.stdout + said.stderr


def test_a_list_of_what_is_brought_names_nothing_above_itself(tmp_path: Path, make_workshop: Make) -> None:
    above = make_workshop().top
    inside = Workshop(above / "pa", tmp_path / "home")
    put(above / ".gitignore", "*.key\n")
    put(inside.top / ".worktreeinclude", "../above.key\nsub/../../above.key\ninside.key\n")
    sh(above, "add", "-A")
    sh(above, "commit", "-q", "-m", "A project inside")
    put(above / "above.key", "precious\n")
    put(inside.top / "inside.key", "here\n")
    inside.ok("init", ".")
    inside.add("Look", "test -f pa/inside.key && test ! -e above.key && test -f f", do="write f x")

    said = inside.run()

    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("place", ["", "pa"], ids=["above", "inside"])
def test_the_list_of_what_is_brought_may_lie_in_either_place(
    tmp_path: Path, make_workshop: Make, place: str
) -> None:
    """Its lines are seen from where it lies, and it is instead of what is brought without one."""
    above = make_workshop().top
    inside = Workshop(above / "pa", tmp_path / "home")
    put(above / ".gitignore", ".env\n*.key\n")
    put(inside.top / "README.md", "inside\n")
    put(above / place / ".worktreeinclude", "keys/*.key\n")
    sh(above, "add", "-A")
    sh(above, "commit", "-q", "-m", "A project inside")
    for name in ("keys/one.key", "pa/keys/one.key", ".env", "pa/.env"):
        put(above / name, "here\n")
    inside.ok("init", ".")
    brought, other = ("keys", "pa/keys") if not place else ("pa/keys", "keys")
    alone = f"test -f {brought}/one.key && test ! -e {other} && test ! -e .env && test ! -e pa/.env"
    inside.add("Look", f"{alone} && test -f f", do="write f x")

    said = inside.run()

    assert said.returncode == 0, said.stdout + said.stderr

"""What marks.py promises: marks that we wrote are known again, and nobody else's are taken for them."""

from __future__ import annotations

from harness_lib.system.git import merge, snapshot
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import World, put, sh


def _tree(world: World, **files: str) -> str:
    """Return a tree of the work tree with `files` written; git sees them as a checkout would have them."""
    for name, content in files.items():
        put(world.top / name, content)
    return snapshot.capture(world.git)


def _conflict(world: World, mine: str = "mine\n", theirs: str = "theirs\n") -> tuple[str, str]:
    """Return the commit of another's, and what our merge makes of both: a tree with marks in tracked.txt."""
    ours = _tree(world, **{"tracked.txt": mine})
    base = world.base
    put(world.top / "tracked.txt", theirs)
    tip = world.commit("theirs")
    picked = merge.differing(world.git, base, ours, tip)
    assert picked.conflicts
    assert picked.tree is not None
    return tip, picked.tree


def _content(git: Git, tree: str) -> str:
    return sh(git.top, "cat-file", "blob", f"{tree}:tracked.txt")


def test_marks_that_a_merge_of_ours_has_left_are_known(world: World) -> None:
    tip, tree = _conflict(world)

    assert "<<<<<<<" in _content(world.git, tree)
    assert merge.left(world.git, world.git.tree_of(tip), tree) == ["tracked.txt"]


def test_each_of_the_two_lines_is_enough(world: World) -> None:
    tip, tree = _conflict(world)
    lines = _content(world.git, tree).splitlines(keepends=True)

    for gone in ("<<<<<<<", ">>>>>>>"):
        half = _tree(world, **{"tracked.txt": "".join(line for line in lines if not line.startswith(gone))})
        assert merge.left(world.git, world.git.tree_of(tip), half) == ["tracked.txt"]


def test_they_are_known_with_line_breaks_of_windows_and_a_size_of_ones_own(world: World) -> None:
    put(world.top / ".gitattributes", "tracked.txt -text conflict-marker-size=10\n")
    world.commit("attributes")

    tip, tree = _conflict(world, "mine\r\nx\r\n", "theirs\r\nx\r\n")

    assert merge.left(world.git, world.git.tree_of(tip), tree) == ["tracked.txt"]


def test_they_are_known_in_a_file_that_git_shows_no_differences_of(world: World) -> None:
    put(world.top / ".gitattributes", "tracked.txt -diff\n")
    world.commit("attributes")

    tip, tree = _conflict(world)

    assert merge.left(world.git, world.git.tree_of(tip), tree) == ["tracked.txt"]


def test_they_are_known_after_another_merge_has_carried_them_on(world: World) -> None:
    base = world.base
    tip, tree = _conflict(world)
    sh(world.top, "checkout", "-q", tip)
    put(world.top / "other", "x\n")
    later = world.commit("later")

    picked = merge.differing(world.git, tip, tree, later)

    assert picked.conflicts == ()
    assert picked.tree is not None
    assert merge.left(world.git, world.git.tree_of(later), picked.tree) == ["tracked.txt"]
    assert merge.left(world.git, world.git.tree_of(base), picked.tree) == ["tracked.txt"]


def test_files_that_would_not_fit_and_were_renamed_for_it_are_known(world: World) -> None:
    base = world.base
    ours = _tree(world, thing="a file\n")
    (world.top / "thing").unlink()
    put(world.top / "thing" / "inner", "x\n")
    tip = world.commit("a directory in its place")

    picked = merge.differing(world.git, base, ours, tip)

    assert picked.tree is not None
    (name,) = merge.left(world.git, world.git.tree_of(tip), picked.tree)
    assert name.startswith("thing~")


def test_resolved_they_are_gone(world: World) -> None:
    tip, _ = _conflict(world)
    both = _tree(world, **{"tracked.txt": "mine\ntheirs\n=======\n"})

    assert merge.left(world.git, world.git.tree_of(tip), both) == []


def test_marks_of_anybody_elses_are_content(world: World) -> None:
    base = world.git.tree_of(world.base)
    head = sh(world.top, "rev-parse", "HEAD")
    fixture = f"<<<<<<< HEAD\na\n=======\nb\n>>>>>>> {head}\n<<<<<<< {'0' * 40}\n>>>>>>> topic\n"

    assert merge.left(world.git, base, _tree(world, fixture=fixture)) == []


def test_marks_that_were_there_before_are_content(world: World) -> None:
    _, tree = _conflict(world)
    put(world.top / "tracked.txt", _content(world.git, tree) + "\n")
    before = world.git.tree_of(world.commit("a fixture"))

    assert merge.left(world.git, before, before) == []
    after = _tree(world, **{"tracked.txt": "more\n" + _content(world.git, tree)})
    assert merge.left(world.git, before, after) == []

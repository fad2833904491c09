"""Work is put on top of what others have merged, and conflict marks that we have left are known."""

from __future__ import annotations

import pytest

from harness_lib.system.git import merge, snapshot
from tests.system.git.gitrepo import World


def _commit(world: World, parent: str, message: str, **files: str) -> str:
    """Return a commit on `parent` with `files` written, made without touching the branch."""
    world.sh("checkout", "-q", "--detach", parent)
    for name, content in files.items():
        world.put(name, content)
    world.sh("add", "-A")
    world.sh("commit", "-q", "--author", "Ada <ada@example.invalid>", "-m", message)
    return world.sh("rev-parse", "HEAD")


def _show(world: World, commit: str, name: str) -> str:
    return world.sh("show", f"{commit}:{name}")


def test_what_is_on_top_already_is_taken_as_it_is(world: World) -> None:
    one = _commit(world, world.base, "one", a="1")

    assert merge.pick(world.git, one, world.base, "m", world.base) == merge.Picked(one)
    assert merge.pick(world.git, world.base, one, "m", world.base) == merge.Picked(one)


def test_each_commit_is_put_on_top_with_its_author_and_message(world: World) -> None:
    theirs = _commit(world, world.base, "theirs", a="1")
    first = _commit(world, world.base, "first\n\nwhy", b="1")
    second = _commit(world, first, "second", b="2")

    picked = merge.pick(world.git, second, theirs, "m", world.base)

    assert picked.conflicts == ()
    shown = world.sh("log", "--reverse", "--format=%an %s", f"{theirs}..{picked.tip}")
    assert shown.splitlines() == ["Ada first", "Ada second"]
    assert world.sh("log", "-1", "--format=%b", f"{picked.tip}^").strip() == "why"
    assert (_show(world, picked.tip, "a"), _show(world, picked.tip, "b")) == ("1", "2")
    assert world.git.is_ancestor(theirs, picked.tip)


def test_work_that_began_on_what_never_arrived_comes_without_that(world: World) -> None:
    """As where a batch could not be pushed: its last commit stands on those of others."""
    others = _commit(world, world.base, "others", a="1")
    ours = _commit(world, others, "ours", b="1")

    picked = merge.pick(world.git, ours, world.base, "m", others)

    assert world.sh("ls-tree", "--name-only", picked.tip, "a", "b") == "b"
    assert world.sh("log", "--format=%s", f"{world.base}..{picked.tip}") == "ours"


def test_a_change_that_is_there_already_makes_no_empty_commit(world: World) -> None:
    theirs = _commit(world, world.base, "theirs", a="same")
    ours = _commit(world, world.base, "ours", a="same")

    assert merge.pick(world.git, ours, theirs, "m", world.base) == merge.Picked(theirs)


def test_a_conflict_names_its_files_and_shows_both_sides(world: World) -> None:
    theirs = _commit(world, world.base, "theirs", a="left", b="fine")
    ours = _commit(world, world.base, "ours", a="right")
    before = (world.status(), world.sh("for-each-ref"), world.git.head())

    picked = merge.pick(world.git, ours, theirs, "m", world.base)

    assert (world.status(), world.sh("for-each-ref"), world.git.head()) == before, "nothing has moved"
    assert picked.conflicts == ("a",)
    assert picked.tree
    marked = _show(world, picked.tree, "a")
    assert "left" in marked
    assert "right" in marked
    assert "<<<<<<<" in marked
    assert _show(world, picked.tree, "b") == "fine"


def test_commits_that_conflict_one_by_one_may_fit_as_a_whole(world: World) -> None:
    theirs = _commit(world, world.base, "theirs", a="end")
    detour = _commit(world, world.base, "detour", a="detour")
    ours = _commit(world, detour, "back", a="end", b="new")

    picked = merge.pick(world.git, ours, theirs, "[task-1] the whole\n", world.base)

    assert picked.conflicts == ()
    assert world.sh("log", "--format=%s", f"{theirs}..{picked.tip}") == "[task-1] the whole"
    assert _show(world, picked.tip, "b") == "new"


def test_a_merge_that_the_work_has_made_becomes_one_commit(world: World) -> None:
    theirs = _commit(world, world.base, "theirs", a="1")
    side = _commit(world, world.base, "side", c="1")
    _commit(world, world.base, "work", b="1")
    world.sh("merge", "-q", "--no-edit", side)

    picked = merge.pick(world.git, world.sh("rev-parse", "HEAD"), theirs, "[task-1] all of it\n", world.base)

    assert world.sh("log", "--format=%s", f"{theirs}..{picked.tip}") == "[task-1] all of it"
    assert [_show(world, picked.tip, name) for name in "abc"] == ["1", "1", "1"]


def test_a_history_that_was_rewritten_from_its_root_arrives_as_one_commit(world: World) -> None:
    theirs = _commit(world, world.base, "theirs", a="1")
    ours = _commit(world, world.base, "ours", b="1")
    rootless = world.sh("commit-tree", "-m", "ours", f"{ours}^{{tree}}")

    picked = merge.pick(world.git, rootless, theirs, "[task-1] ours\n", world.base)

    assert world.sh("log", "--format=%s", f"{theirs}..{picked.tip}") == "[task-1] ours"
    assert [_show(world, picked.tip, name) for name in "ab"] == ["1", "1"]


def test_a_difference_alone_is_put_on_top_without_a_commit(world: World) -> None:
    theirs = _commit(world, world.base, "theirs", a="1")
    world.sh("checkout", "-q", "--detach", world.base)
    world.put("b", "work so far")
    tree = snapshot.capture(world.git)

    carried = merge.differing(world.git, world.base, tree, theirs)

    assert carried.conflicts == ()
    assert carried.tree
    assert (_show(world, carried.tree, "a"), _show(world, carried.tree, "b")) == ("1", "work so far")


def test_two_that_have_parted_are_joined_if_they_do_not_conflict(world: World) -> None:
    one = _commit(world, world.base, "one", a="1")
    two = _commit(world, world.base, "two", b="2")
    other = _commit(world, world.base, "other", a="other")
    strange = world.git.commit(world.git.tree_of(one), [], "no history in common")

    joined = merge.join(world.git, one, two, "both\n")

    assert joined is not None
    assert world.sh("log", "-1", "--format=%P %s", joined) == f"{one} {two} both"
    assert (_show(world, joined, "a"), _show(world, joined, "b")) == ("1", "2")
    assert merge.join(world.git, one, other, "both\n") is None
    assert merge.join(world.git, one, strange, "both\n") is None


def test_what_began_on_a_merge_that_was_made_anew_is_put_on_the_new_one(world: World) -> None:
    """Only what was added since is put there: a line below one that both sides have is no conflict."""
    waits = _commit(world, world.base, "waits", a="one\n")
    before = _commit(world, world.base, "before", b="1")
    started = merge.join(world.git, waits, before, "both\n")
    assert started is not None
    during = _commit(world, before, "during", c="1")
    anew = merge.join(world.git, waits, during, "both\n")
    assert anew is not None
    single = _commit(world, started, "work", a="one\ntwo\n")
    _commit(world, started, "other", d="1")
    world.sh("merge", "-q", "--no-edit", single)
    branched = world.sh("rev-parse", "HEAD")

    for work in (single, branched):
        picked = merge.pick(world.git, work, anew, "m", started)

        assert picked.conflicts == ()
        assert _show(world, picked.tip, "a") == "one\ntwo"
        assert world.sh("rev-list", f"{anew}..{picked.tip}", "--", "b").strip() == ""


def test_the_same_merge_is_the_same_commit(world: World) -> None:
    """Whoever began on it finds it again, and need not be merged with itself."""
    one = _commit(world, world.base, "one", a="1")
    two = _commit(world, world.base, "two", b="1")

    with_date = {"GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z", "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in with_date.items():
            patch.setenv(name, value)
        first = merge.join(world.git, one, two, "both\n")

    assert merge.join(world.git, one, two, "both\n") == first


# -- what marks.py promises: marks that we wrote are known again, and nobody else's are taken for them


def _tree(world: World, **files: str) -> str:
    """Return a tree of the work tree with `files` written; git sees them as a checkout would have them."""
    for name, content in files.items():
        world.put(name, content)
    return snapshot.capture(world.git)


def _conflict(world: World, mine: str = "mine\n", theirs: str = "theirs\n") -> tuple[str, str]:
    """Return the commit of another's, and what our merge makes of both: a tree with marks in tracked.txt."""
    ours = _tree(world, **{"tracked.txt": mine})
    base = world.base
    tip = world.commit("theirs", files={"tracked.txt": theirs})
    picked = merge.differing(world.git, base, ours, tip)
    assert picked.conflicts
    assert picked.tree
    return tip, picked.tree


def test_marks_that_a_merge_of_ours_has_left_are_known_by_each_of_their_lines(world: World) -> None:
    tip, tree = _conflict(world)
    lines = _show(world, tree, "tracked.txt").splitlines(keepends=True)

    for gone in ("nothing", "<<<<<<<", ">>>>>>>"):
        left = _tree(world, **{"tracked.txt": "".join(line for line in lines if not line.startswith(gone))})
        assert merge.left(world.git, world.git.tree_of(tip), left) == ["tracked.txt"]


@pytest.mark.parametrize(
    ("attributes", "texts"),
    [("-text conflict-marker-size=10", ("mine\r\nx\r\n", "theirs\r\nx\r\n")), ("-diff", ())],
    ids=["line breaks of Windows and a size of one's own", "a file that git shows no differences of"],
)
def test_they_are_known_in_files_of_every_kind(world: World, attributes: str, texts: tuple[str, ...]) -> None:
    world.commit("attributes", files={".gitattributes": f"tracked.txt {attributes}\n"})

    tip, tree = _conflict(world, *texts)

    assert merge.left(world.git, world.git.tree_of(tip), tree) == ["tracked.txt"]


def test_they_are_known_after_another_merge_has_carried_them_on(world: World) -> None:
    base = world.base
    tip, tree = _conflict(world)
    world.sh("checkout", "-q", tip)
    later = world.commit("later", files={"other": "x\n"})

    picked = merge.differing(world.git, tip, tree, later)

    assert picked.conflicts == ()
    assert picked.tree
    assert merge.left(world.git, world.git.tree_of(later), picked.tree) == ["tracked.txt"]
    assert merge.left(world.git, world.git.tree_of(base), picked.tree) == ["tracked.txt"]


def test_files_that_would_not_fit_and_were_renamed_for_it_are_known(world: World) -> None:
    base = world.base
    ours = _tree(world, thing="a file\n")
    (world.top / "thing").unlink()
    tip = world.commit("a directory in its place", files={"thing/inner": "x\n"})

    picked = merge.differing(world.git, base, ours, tip)

    assert picked.tree
    (name,) = merge.left(world.git, world.git.tree_of(tip), picked.tree)
    assert name.startswith("thing~")


def test_resolved_they_are_gone_and_those_of_anybody_else_are_content(world: World) -> None:
    base = world.git.tree_of(world.base)
    head = world.sh("rev-parse", "HEAD")
    fixture = f"<<<<<<< HEAD\na\n=======\nb\n>>>>>>> {head}\n<<<<<<< {'0' * 40}\n>>>>>>> topic\n"
    assert merge.left(world.git, base, _tree(world, fixture=fixture)) == []

    tip, _ = _conflict(world)
    both = _tree(world, **{"tracked.txt": "mine\ntheirs\n=======\n"})
    assert merge.left(world.git, world.git.tree_of(tip), both) == []


def test_marks_that_were_there_before_are_content(world: World) -> None:
    _, tree = _conflict(world)
    marked = _show(world, tree, "tracked.txt")
    world.put("tracked.txt", f"{marked}\n")
    before = world.git.tree_of(world.commit("a fixture"))

    assert merge.left(world.git, before, before) == []
    after = _tree(world, **{"tracked.txt": f"more\n{marked}"})
    assert merge.left(world.git, before, after) == []

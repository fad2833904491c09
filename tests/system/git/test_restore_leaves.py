"""restore.go_back leaves and names what the user, an ignore file or another repository owns."""

from __future__ import annotations

from harness_lib.system.git import snapshot
from tests.system.git.gitrepo import World, commit_all, disk, put, sh, stands_at_base


def test_a_file_that_changed_after_it_was_saved_is_left_and_named(world: World) -> None:
    world.begin()
    put(world.top / "tracked.txt", "the attempt\n")
    put(world.top / "made", "the attempt\n")
    saved = snapshot.capture(world.git)
    put(world.top / "tracked.txt", "the user\n")
    put(world.top / "made", "the user\n")
    put(world.top / "later", "the user\n")
    problems = world.go_back_from(saved)
    assert sorted(problem.split(" ")[0] for problem in problems) == ["made", "tracked.txt"]
    assert {(world.top / name).read_text() for name in ("tracked.txt", "made", "later")} == {"the user\n"}
    assert world.git.head() == world.base


def test_a_file_from_before_that_changed_after_it_was_saved_is_left_and_named(world: World) -> None:
    put(world.top / "notes", "before\n")
    world.begin()
    put(world.top / "notes", "the attempt\n")
    saved = snapshot.capture(world.git)
    put(world.top / "notes", "the user\n")
    assert "notes" in world.go_back_from(saved)[0]
    assert (world.top / "notes").read_text() == "the user\n"


def test_ignored_files_are_not_touched_not_even_when_the_attempt_made_them_visible(world: World) -> None:
    world.commit(files={".gitignore": ".env\nbuild/\n"})
    put(world.top / ".env", "SECRET")
    put(world.top / "build/out", "x")
    world.begin()
    put(world.top / ".gitignore", "")
    put(world.top / "dir/.gitignore", "inner.txt\n")
    put(world.top / "made", "x")
    assert world.go_back() == []
    assert (world.top / ".env").read_text() == "SECRET"
    assert (world.top / "build/out").read_text() == "x"
    assert not (world.top / "made").exists()
    stands_at_base(world)


def test_an_untracked_ignore_file_from_before_still_protects(world: World) -> None:
    put(world.top / ".gitignore", ".env\n.gitignore-not\n")
    put(world.top / ".env", "SECRET")
    world.begin()
    (world.top / ".gitignore").unlink()
    assert world.go_back() == []
    assert (world.top / ".env").read_text() == "SECRET"
    assert (world.top / ".gitignore").exists()


def test_ignored_content_in_the_place_of_a_tracked_file_is_saved_or_left(world: World) -> None:
    world.begin()
    sh(world.top, "rm", "-q", "--cached", "tracked.txt")
    put(world.top / ".gitignore", "tracked.txt\n")
    put(world.top / "tracked.txt", "a secret now\n")
    blind = snapshot.capture(world.git)
    assert "tracked.txt" in world.go_back_from(blind)[0]
    assert (world.top / "tracked.txt").read_text() == "a secret now\n"
    assert world.go_back() == []
    assert (world.top / "tracked.txt").read_text() == "one\n"


def test_ignored_files_below_a_directory_in_the_place_of_a_tracked_file_are_left(world: World) -> None:
    put(world.top / ".git/info/exclude", "ignored\n")
    world.begin()
    (world.top / "tracked.txt").unlink()
    put(world.top / "tracked.txt/ignored", "x")
    problems = world.go_back()
    assert "tracked.txt" in problems[0]
    assert (world.top / "tracked.txt/ignored").read_text() == "x"


def test_a_symlink_to_a_directory_is_taken_away_and_never_followed(world: World) -> None:
    outside = put(world.top.parent / "outside/inner.txt", "not ours\n").parent
    put(outside / "more", "not ours\n")
    world.begin()
    (world.top / "dir/inner.txt").unlink()
    (world.top / "dir").rmdir()
    (world.top / "dir").symlink_to(outside)
    assert world.go_back() == []
    assert sorted(disk(outside)) == ["inner.txt", "more"]
    assert (outside / "inner.txt").read_text() == "not ours\n"
    assert not (world.top / "dir").is_symlink()
    assert (world.top / "dir/inner.txt").read_text() == "inner\n"


def test_harness_files_keep_their_content_tracked_or_not_and_are_not_staged(world: World) -> None:
    world.excluded_paths = ("sub/state", "sub/.harness")
    world.commit(files={"sub/state": "old", "sub/.harness/log": "old", "sub/code": "old"})
    world.begin()
    for name in ("state", ".harness/log", ".harness/more", "code", "made"):
        put(world.top / "sub" / name, "new")
    world.commits("with harness files")
    put(world.top / "sub/state", "newest")
    assert world.go_back() == []
    assert {name: text.decode() for name, (_, text) in disk(world.top / "sub").items()} == {
        "state": "newest",
        ".harness/log": "new",
        ".harness/more": "new",
        "code": "old",
    }
    stands_at_base(world)


def test_submodules_and_nested_repositories_are_left_and_named(world: World) -> None:
    module = World.make(world.top.parent / "module")
    sh(world.top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(module.top), "sub")
    world.commit()
    World.make(world.top / "theirs")
    world.begin()
    assert world.before is not None
    assert world.before.unprotected == ("theirs",)
    commit_all(world.top / "sub", "in the submodule", {"work": "in the submodule\n"})
    World.make(world.top / "nested")
    put(world.top / "tracked.txt", "changed")
    problems = world.go_back()
    assert sorted(problem.split(" ")[0] for problem in problems) == ["nested", "sub"]
    assert (world.top / "sub/work").read_text() == "in the submodule\n"
    assert (world.top / "nested/.git").is_dir()
    assert (world.top / "theirs/.git").is_dir()
    assert (world.top / "tracked.txt").read_text() == "one\n"


def test_a_submodule_that_the_attempt_added_is_left_on_disk(world: World) -> None:
    module = World.make(world.top.parent / "module")
    world.begin()
    sh(world.top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(module.top), "sub")
    sh(world.top, "commit", "-q", "-m", "add it")
    assert "sub " in world.go_back()[0]
    assert (world.top / "sub/tracked.txt").exists()
    assert not (world.top / ".gitmodules").exists()
    assert world.git.head() == world.base


def test_what_could_not_be_protected_is_never_removed_and_missed_when_gone(world: World) -> None:
    put(world.top / "large", "x" * 100)
    put(world.top / "lost", "x" * 100)
    world.before = snapshot.capture_untracked(world.git, ["large", "lost"], 10, 10)
    put(world.top / "large", "changed")
    (world.top / "lost").unlink()
    assert world.go_back() == ["lost was there before, could not be kept, and is gone"]
    assert (world.top / "large").read_text() == "changed"

"""restore.go_back leaves and names what the user, an ignore file or another repository owns."""

from __future__ import annotations

from harness_lib.system.git import snapshot
from tests.system.git.gitrepo import World, commit_all, disk, put, stands_at_base


def test_a_file_that_changed_after_it_was_saved_is_left_and_named(world: World) -> None:
    """Also one that was there before, and is not of the base."""
    world.put("notes", "before\n")
    world.begin()
    changed = ("made", "notes", "tracked.txt")
    for name in changed:
        world.put(name, "the attempt\n")
    saved = snapshot.capture(world.git)
    for name in (*changed, "later"):
        world.put(name, "the user\n")
    problems = world.go_back_from(saved)
    assert sorted(problem.split(" ")[0] for problem in problems) == [*changed]
    assert {world.read(name) for name in (*changed, "later")} == {"the user\n"}
    assert world.git.head() == world.base


def test_ignored_files_are_not_touched_not_even_when_the_attempt_made_them_visible(world: World) -> None:
    world.commit(files={".gitignore": ".env\nbuild/\n"})
    world.put(".env", "SECRET")
    world.put("build/out", "x")
    world.begin()
    world.put(".gitignore", "")
    world.put("dir/.gitignore", "inner.txt\n")
    world.put("made", "x")
    assert world.go_back() == []
    assert world.read(".env") == "SECRET"
    assert world.read("build/out") == "x"
    assert not (world.top / "made").exists()
    stands_at_base(world)


def test_an_untracked_ignore_file_from_before_still_protects(world: World) -> None:
    world.put(".gitignore", ".env\n.gitignore-not\n")
    world.put(".env", "SECRET")
    world.begin()
    (world.top / ".gitignore").unlink()
    assert world.go_back() == []
    assert world.read(".env") == "SECRET"
    assert (world.top / ".gitignore").exists()


def test_ignored_content_in_the_place_of_a_tracked_file_is_saved_or_left(world: World) -> None:
    world.begin()
    world.sh("rm", "-q", "--cached", "tracked.txt")
    world.put(".gitignore", "tracked.txt\n")
    world.put("tracked.txt", "a secret now\n")
    blind = snapshot.capture(world.git)
    assert "tracked.txt" in world.go_back_from(blind)[0]
    assert world.read("tracked.txt") == "a secret now\n"
    assert world.go_back() == []
    assert world.read("tracked.txt") == "one\n"


def test_ignored_files_below_a_directory_in_the_place_of_a_tracked_file_are_left(world: World) -> None:
    world.put(".git/info/exclude", "ignored\n")
    world.begin()
    (world.top / "tracked.txt").unlink()
    world.put("tracked.txt/ignored", "x")
    problems = world.go_back()
    assert "tracked.txt" in problems[0]
    assert world.read("tracked.txt/ignored") == "x"


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
    assert world.read("dir/inner.txt") == "inner\n"


def test_harness_files_keep_their_content_tracked_or_not_and_are_not_staged(world: World) -> None:
    world.excluded_paths = ("sub/state", "sub/.harness")
    world.commit(files={"sub/state": "old", "sub/.harness/log": "old", "sub/code": "old"})
    world.begin()
    for name in ("state", ".harness/log", ".harness/more", "code", "made"):
        world.put(f"sub/{name}", "new")
    world.commits("with harness files")
    world.put("sub/state", "newest")
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
    world.sh("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(module.top), "sub")
    world.commit()
    World.make(world.top / "theirs")
    world.begin()
    assert world.before is not None
    assert world.before.unprotected == ("theirs",)
    commit_all(world.top / "sub", "in the submodule", {"work": "in the submodule\n"})
    World.make(world.top / "nested")
    world.put("tracked.txt", "changed")
    problems = world.go_back()
    assert sorted(problem.split(" ")[0] for problem in problems) == ["nested", "sub"]
    assert world.read("sub/work") == "in the submodule\n"
    assert (world.top / "nested/.git").is_dir()
    assert (world.top / "theirs/.git").is_dir()
    assert world.read("tracked.txt") == "one\n"


def test_a_submodule_that_the_attempt_added_is_left_on_disk(world: World) -> None:
    module = World.make(world.top.parent / "module")
    world.begin()
    world.sh("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(module.top), "sub")
    world.sh("commit", "-q", "-m", "add it")
    assert "sub " in world.go_back()[0]
    assert (world.top / "sub/tracked.txt").exists()
    assert not (world.top / ".gitmodules").exists()
    assert world.git.head() == world.base


def test_what_could_not_be_protected_is_never_removed_and_missed_when_gone(world: World) -> None:
    world.put("large", "x" * 100)
    world.put("lost", "x" * 100)
    world.before = snapshot.capture_untracked(world.git, ["large", "lost"], 10, 10)
    world.put("large", "changed")
    (world.top / "lost").unlink()
    assert world.go_back() == ["lost was there before, could not be kept, and is gone"]
    assert world.read("large") == "changed"

"""What advance.forward promises: a branch moves forward, and nothing of the user's is written over."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness_lib.system import fs
from harness_lib.system.git import advance, checkout, locks
from harness_lib.system.git.advance import HeadMovedError
from harness_lib.system.git.repository import Git
from tests.conftest import for_release
from tests.system.git.gitrepo import World, commit_ahead, disk


def forward(world: World, new: str) -> None:
    with locks.hold(world.git):
        advance.forward(world.git, world.base, new)


def taken_back(world: World) -> None:
    with locks.hold(world.git):
        advance.take_back(world.git)
    assert not advance.is_half_done(world.git)


def left_behind(world: World) -> str:
    """Return where the branch has gone without index and files, which stand at the base."""
    ahead = commit_ahead(world)
    world.sh("update-ref", "HEAD", ahead)
    return ahead


def catch_up(world: World, head: str) -> bool:
    with locks.hold(world.git):
        return advance.catch_up(world.git, world.base, head)


def test_files_index_and_branch_go_forward(world: World) -> None:
    ahead = commit_ahead(world)
    world.put("mine", "untracked\n")

    assert advance.obstacles(world.git, world.base, ahead) == []
    for _ in range(2):
        forward(world, ahead)

    assert world.sh("rev-parse", "main") == ahead
    assert world.git.branch() == "refs/heads/main"
    assert world.status() == "?? mine"
    assert world.read("new/file") == "new\n"


@pytest.mark.parametrize("content", ["committed\n", "changed\n"])
@pytest.mark.parametrize(("old", "new"), [("tracked.txt", "Tracked.txt"), ("dir/inner.txt", "Dir/inner.txt")])
def test_a_name_changes_its_case(world: World, old: str, new: str, content: str) -> None:
    """Where case makes no second file, as on macOS; elsewhere a link stands for the one file's other name."""
    before = world.read(old)
    world.sh("rm", "-q", old)
    world.put(new, content.replace("committed\n", before))
    ahead, other = world.commits("ahead"), world.top / new
    world.sh("reset", "-q", "--hard", world.base)
    one_file = other.exists()
    if not one_file:
        other.parent.mkdir(exist_ok=True)
        other.hardlink_to(world.top / old)

    assert advance.obstacles(world.git, world.base, ahead) == []
    if one_file:
        forward(world, ahead)
        assert world.status() == ""
        assert new in [str(path.relative_to(world.top)) for path in world.top.rglob("*.txt")]


def test_going_back_over_it_removes_what_it_added(world: World) -> None:
    ahead = commit_ahead(world)
    forward(world, ahead)

    with locks.hold(world.git):
        advance.forward(world.git, ahead, world.base)

    assert world.status() == ""
    assert not (world.top / "new").exists()


def test_what_was_left_behind_its_branch_comes_after(world: World) -> None:
    ahead = left_behind(world)

    assert catch_up(world, ahead)

    assert world.status() == ""
    assert world.read("new/file") == "new\n"
    assert world.sh("reflog", "-1", "--format=%H %gs", "HEAD") == f"{ahead} harness: merge"


@pytest.mark.parametrize("staged", [False, True])
def test_where_the_user_has_written_nothing_comes_after(world: World, staged: bool) -> None:
    ahead = left_behind(world)
    world.put("tracked.txt", "the user's edit\n")
    if staged:
        world.sh("add", "tracked.txt")
    before, status = disk(world.top), world.status()

    assert not catch_up(world, ahead)

    assert disk(world.top) == before
    assert world.status() == status


def test_where_another_ref_must_not_be_nothing_is_left_changed(world: World) -> None:
    ahead = commit_ahead(world)
    before = disk(world.top)
    world.sh("update-ref", "refs/heads/harness/main", world.base)

    with pytest.raises(HeadMovedError), locks.hold(world.git):
        advance.forward(world.git, world.base, ahead, only_while=("refs/heads/harness/main", ""))

    assert disk(world.top) == before
    assert world.status() == ""
    assert world.git.head() == world.base
    assert not advance.is_half_done(world.git)


def test_a_users_files_are_named_and_left_alone(world: World) -> None:
    ahead = commit_ahead(world)
    world.put("new/file", "the user's own\n")
    world.put("tracked.txt", "the user's edit\n")
    (world.top / "script").mkdir()

    assert set(advance.obstacles(world.git, world.base, ahead)) == {"new/file", "tracked.txt", "script"}

    forward(world, ahead)
    assert world.read("new/file") == "the user's own\n"
    assert world.read("tracked.txt") == "the user's edit\n"


def test_a_users_file_in_a_directory_that_becomes_a_file_is_an_obstacle(world: World) -> None:
    (world.top / "dir/inner.txt").unlink()
    (world.top / "dir").rmdir()
    world.put("dir", "a file now\n")
    ahead = world.commits("a file for a directory")
    assert advance.obstacles(world.git, ahead, world.base) == []
    world.sh("reset", "-q", "--hard", world.base)

    assert advance.obstacles(world.git, world.base, ahead) == []
    world.put("dir/mine.txt", "mine\n")
    assert advance.obstacles(world.git, world.base, ahead) == ["dir"]


@pytest.mark.parametrize("name", ["tracked.txt", "dir/inner.txt", "new/file"])
def test_what_the_user_writes_while_it_goes_on_is_not_written_over(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = commit_ahead(world)
    journal = fs.write

    def and_the_user_saves(path: Path, data: bytes) -> None:
        journal(path, data)
        world.put(name, "the user's edit\n")

    monkeypatch.setattr(fs, "write", and_the_user_saves)
    forward(world, ahead)

    assert world.read(name) == "the user's edit\n"
    assert world.git.head() == ahead


def test_line_endings_of_a_checkout_are_no_obstacle(world: World) -> None:
    base = world.commits("crlf", files={".gitattributes": "*.crlf text eol=crlf\n", "a.crlf": "one\r\n"})
    world.put("a.crlf", "two\r\n")
    world.sh("commit", "-qam", "two")
    ahead = world.sh("rev-parse", "HEAD")
    world.sh("reset", "-q", "--hard", base)

    assert advance.obstacles(world.git, base, ahead) == []
    with locks.hold(world.git):
        advance.forward(world.git, base, ahead)

    assert world.status() == ""
    assert (world.top / "a.crlf").read_bytes() == b"two\r\n"


def test_a_head_that_somebody_moved_is_left(world: World) -> None:
    ahead = commit_ahead(world)
    world.sh("commit", "-q", "--allow-empty", "-m", "the user's")

    with pytest.raises(HeadMovedError):
        forward(world, ahead)

    assert world.status() == ""
    assert not (world.top / "new").exists()


def test_what_a_sparse_checkout_leaves_out_stays_out_and_is_no_obstacle(world: World) -> None:
    ahead = commit_ahead(world)
    world.sh("sparse-checkout", "set", "new")
    assert not (world.top / "dir").exists()

    assert advance.obstacles(world.git, world.base, ahead) == []
    forward(world, ahead)

    assert world.status() == ""
    assert not (world.top / "dir").exists()
    assert world.read("new/file") == "new\n"


# -- killed at any step it is taken back or made again, and nothing is lost


class Death(BaseException):
    """Where a process was killed; the rest of it does not run."""


def _dies(*_: object, **__: object) -> None:
    raise Death


def _dies_at_note(git: Git, *args: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    if args[0] == "update-ref":
        raise Death
    return _RUN(git, *args, **options)


_RUN = Git.run
BEFORE_THE_END = [
    (checkout, "remove"),
    (checkout, "prune"),
    (checkout, "checkout"),
    (advance, "restage"),
    (advance, "move_head"),
]


@contextmanager
def _dying(module: object, name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, _dies_at_note if module is Git else _dies)
        with pytest.raises(Death):
            yield


def _killed(world: World, new: str, module: object, name: str) -> None:
    with _dying(module, name):
        forward(world, new)


@pytest.mark.parametrize(("module", "name"), [*BEFORE_THE_END[::2], *for_release(*BEFORE_THE_END[1::2])])
def test_killed_before_its_end_it_is_taken_back_or_made_again(
    world: World, module: object, name: str
) -> None:
    ahead = commit_ahead(world)
    before = disk(world.top)
    _killed(world, ahead, module, name)

    taken_back(world)

    assert disk(world.top) == before
    assert world.status() == ""
    forward(world, ahead)
    assert world.status() == ""
    assert world.git.head() == ahead


@pytest.mark.parametrize(("module", "name"), [*BEFORE_THE_END[::2], *for_release(*BEFORE_THE_END[1::2])])
def test_a_killed_taking_back_is_taken_up_again(world: World, module: object, name: str) -> None:
    ahead = commit_ahead(world)
    before = disk(world.top)
    _killed(world, ahead, advance, "move_head")
    with _dying(module, "unstage" if module is advance else name), locks.hold(world.git):
        advance.take_back(world.git)

    taken_back(world)

    assert disk(world.top) == before
    assert world.status() == ""


def test_killed_after_its_end_nothing_is_taken_back(world: World) -> None:
    ahead = commit_ahead(world)
    _killed(world, ahead, fs, "remove")
    world.put("tracked.txt", "committed later\n")
    world.sh("commit", "-qam", "the user's")
    world.put("tracked.txt", "changed\n")

    taken_back(world)

    assert world.read("tracked.txt") == "changed\n"
    assert world.status() == "M tracked.txt"


def test_what_the_user_has_changed_in_what_was_killed_is_left(world: World) -> None:
    ahead = commit_ahead(world)
    _killed(world, ahead, advance, "restage")
    world.put("tracked.txt", "the user's edit\n")
    world.put("new/mine", "the user's own\n")

    taken_back(world)

    assert world.read("tracked.txt") == "the user's edit\n"
    assert disk(world.top)["new/mine"] == ("file", b"the user's own\n")
    assert set(world.status().split("\n")) == {"M tracked.txt", "?? new/"}


def test_what_the_user_has_committed_over_what_was_killed_stays(world: World) -> None:
    ahead = commit_ahead(world)
    _killed(world, ahead, advance, "restage")
    world.sh("commit", "-qam", "the user's, with half of ours")

    taken_back(world)

    assert world.status() == ""
    assert world.read("tracked.txt") == "changed\n"
    assert not (world.top / "new").exists()


@pytest.mark.parametrize(("module", "name"), [*BEFORE_THE_END[:3], (advance, "restage"), (Git, "run")])
def test_killed_in_coming_after_it_is_taken_up_again(world: World, module: object, name: str) -> None:
    ahead = left_behind(world)
    with _dying(module, name):
        catch_up(world, ahead)

    assert catch_up(world, ahead)

    assert world.status() == ""

"""A move of a checked-out branch that is killed at any step is taken back or made again; nothing is lost."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from harness_lib.system.files import atomic
from harness_lib.system.git import checkout, fast_forward, locks, restore
from harness_lib.system.git.repository import Git
from tests.system.git.forwards import catch_up, commit_ahead, forward, left_behind, taken_back
from tests.system.git.gitrepo import World, disk, put, sh


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
    (restore, "restage"),
    (restore, "move_head"),
]


def _killed(world: World, new: str, module: object, name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, _dies)
        with pytest.raises(Death):
            forward(world, new)


@pytest.mark.parametrize(("module", "name"), BEFORE_THE_END)
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


@pytest.mark.parametrize(("module", "name"), BEFORE_THE_END)
def test_a_killed_taking_back_is_taken_up_again(world: World, module: object, name: str) -> None:
    ahead = commit_ahead(world)
    before = disk(world.top)
    _killed(world, ahead, restore, "move_head")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "unstage" if module is restore else name, _dies)
        with pytest.raises(Death), locks.hold(world.git):
            fast_forward.take_back(world.git)

    taken_back(world)

    assert disk(world.top) == before
    assert world.status() == ""


def test_killed_after_its_end_nothing_is_taken_back(world: World) -> None:
    ahead = commit_ahead(world)
    _killed(world, ahead, atomic, "remove")
    put(world.top / "tracked.txt", "committed later\n")
    sh(world.top, "commit", "-qam", "a person's")
    put(world.top / "tracked.txt", "changed\n")

    taken_back(world)

    assert (world.top / "tracked.txt").read_text() == "changed\n"
    assert world.status() == "M tracked.txt"


def test_what_a_person_has_changed_in_what_was_killed_is_left(world: World) -> None:
    ahead = commit_ahead(world)
    _killed(world, ahead, restore, "restage")
    put(world.top / "tracked.txt", "a person's edit\n")
    put(world.top / "new" / "mine", "a person's own\n")

    taken_back(world)

    assert (world.top / "tracked.txt").read_text() == "a person's edit\n"
    assert disk(world.top)["new/mine"] == ("file", b"a person's own\n")
    assert set(world.status().split("\n")) == {"M tracked.txt", "?? new/"}


def test_what_a_person_has_committed_over_what_was_killed_stays(world: World) -> None:
    ahead = commit_ahead(world)
    _killed(world, ahead, restore, "restage")
    sh(world.top, "commit", "-qam", "a person's, with half of ours")

    taken_back(world)

    assert world.status() == ""
    assert (world.top / "tracked.txt").read_text() == "changed\n"
    assert not (world.top / "new").exists()


@pytest.mark.parametrize(("module", "name"), [*BEFORE_THE_END[:3], (restore, "restage"), (Git, "run")])
def test_killed_in_coming_after_it_is_taken_up_again(world: World, module: object, name: str) -> None:
    ahead = left_behind(world)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, _dies_at_note if module is Git else _dies)
        with pytest.raises(Death):
            catch_up(world, ahead)

    assert catch_up(world, ahead)

    assert world.status() == ""

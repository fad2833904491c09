"""What discovery.py promises: it finds the very repository that git would find, or leaves it to git."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_lib.system.git import discovery
from harness_lib.system.git.calls import call
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import World, put, sh

Place = Callable[[World], Path]


def _same(world: World) -> Path:
    return world.top


def _below(world: World) -> Path:
    return put(world.top / "a b/süß\nline/file", "x").parent


def _by_a_link(world: World) -> Path:
    link = world.top.parent / "link"
    link.symlink_to(_below(world))
    return link


def _unborn(world: World) -> Path:
    place = world.top.parent / "unborn"
    sh(world.top, "init", "-q", str(place))
    return place


def _detached(world: World) -> Path:
    sh(world.top, "checkout", "-q", "--detach")
    return world.top


def _with_a_remote(world: World) -> Path:
    sh(world.top, "remote", "add", "origin", "ssh://somebody@example.invalid:22/~/it.git")
    sh(world.top, "config", "branch.main.description", "What it is for")
    put(world.top / ".git/config", (world.top / ".git/config").read_bytes() + b"\n# said\n; twice\n")
    return world.top


def _nested(world: World) -> Path:
    place = world.top / "nested"
    sh(world.top, "init", "-q", str(place))
    return place


PLAIN: list[Place] = [_same, _below, _by_a_link, _unborn, _detached, _with_a_remote, _nested]


def _gone(world: World) -> Path:
    return world.top / "gone"


def _a_file(world: World) -> Path:
    return put(world.top / "file", "x")


def _inside(world: World) -> Path:
    return world.top / ".git/refs"


def _git_dir(world: World) -> Path:
    return world.top / ".git"


def _bare_one(world: World) -> Path:
    place = world.top / "bare"
    sh(world.top, "init", "-q", "--bare", str(place))
    return place


def _below_a_bare_one(world: World) -> Path:
    return _bare_one(world) / "objects"


def _linked(world: World) -> Path:
    place = world.top.parent / "linked"
    sh(world.top, "worktree", "add", "-q", str(place))
    return place


def _moved_git_dir(world: World) -> Path:
    elsewhere = world.top.parent / "elsewhere"
    (world.top / ".git").rename(elsewhere)
    (world.top / ".git").symlink_to(elsewhere)
    return world.top


def _git_file(world: World) -> Path:
    elsewhere = world.top.parent / "elsewhere"
    (world.top / ".git").rename(elsewhere)
    put(world.top / ".git", f"gitdir: {elsewhere}\n")
    return world.top


def _empty_git_dir_on_the_way(world: World) -> Path:
    place = world.top / "between"
    (place / ".git").mkdir(parents=True)
    return place


def _no_objects(world: World) -> Path:
    shutil.rmtree(world.top / ".git/objects")
    return world.top


def _no_repository(world: World) -> Path:
    return world.top.parent


def _common_dir_elsewhere(world: World) -> Path:
    put(world.top / ".git/commondir", "../../other")
    return world.top


def _head(content: bytes) -> Place:
    def place(world: World) -> Path:
        put(world.top / ".git/HEAD", content)
        return world.top

    place.__name__ = f"HEAD {content!r}"
    return place


def _config(added: bytes, *, before: bool = False) -> Place:
    def place(world: World) -> Path:
        path = world.top / ".git/config"
        old = path.read_bytes()
        put(path, added + old if before else old + added)
        return world.top

    place.__name__ = f"config {added!r}"
    return place


OTHERS: list[Place] = [
    _gone,
    _a_file,
    _inside,
    _git_dir,
    _bare_one,
    _below_a_bare_one,
    _linked,
    _moved_git_dir,
    _git_file,
    _empty_git_dir_on_the_way,
    _no_objects,
    _no_repository,
    _common_dir_elsewhere,
    *(_head(content) for content in (b"", b"ref: nowhere\n", b"\0" * 41, b"ref:refs/heads/main\n")),
    *(
        _config(added)
        for added in (
            b"[core]\n\tbare = true\n",
            b"[core]\n\tbare\n",
            b"[Core]\n\tBARE = yes\n",
            b"[core]\n\tbare = false # not so\n",
            b"[core]\n\tbare = fal\\\nse\n",
            b'[core]\n\tbare = "true"\n',
            b"[core] bare = true\n",
            b"[core]\n\tworktree = ../../other\n",
            b"[include]\n\tpath = other\n",
            b'[includeIf "gitdir:/"]\n\tpath = other\n',
            b"[core]\n\trepositoryformatversion = 1\n",
            b"[core]\n\trepositoryformatversion = 99\n",
            b"[extensions]\n\tobjectformat = sha256\n",
            b"[core\n",
            b"= torn\n",
            b"[a]\n\t1b = torn\n",
            b"\0",
            b'[a "b]\n',
            b"[core]\n\tfile",
        )
    ),
    _config(b"bare = false\n", before=True),
]


def _name(place: Place) -> str:
    return place.__name__.strip("_")


def _by_git(path: Path) -> tuple[str, ...] | None:
    questions = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    results = [call(("rev-parse", question), path) for question in questions]
    if any(result.returncode for result in results):
        return None
    top, git_dir, common = (os.fsdecode(result.stdout)[:-1] for result in results)
    return top, git_dir, os.path.realpath(path / common)


@pytest.mark.parametrize("make", PLAIN, ids=_name)
def test_a_plain_repository_is_found_as_git_finds_it(world: World, make: Place) -> None:
    path = make(world)
    git = Git.open(path)
    assert discovery.find(path) == git.top
    assert tuple(map(str, git)) == _by_git(path)


@pytest.mark.parametrize("make", OTHERS, ids=_name)
def test_any_other_is_left_to_git(world: World, make: Place) -> None:
    assert discovery.find(make(world)) is None


def test_one_that_belongs_to_somebody_else_is_left_to_git(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert discovery.find(world.top)
    monkeypatch.setattr(os, "geteuid", lambda: os.lstat(world.top).st_uid + 1)
    assert discovery.find(world.top) is None


def test_without_git_that_is_left_to_the_call_that_fails(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(world.top))
    assert discovery.find(world.top) is None

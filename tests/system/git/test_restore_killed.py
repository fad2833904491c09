"""Killed at any moment, a move that is begun again ends where it would have ended."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_lib.system.git import advance, locks, snapshot, status, trees
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import LIMIT, World, disk, put

MANY = pytest.param(16, marks=pytest.mark.release)

# The child says when it begins, so that a delay is spent in the work and not in starting Python.
MOVER = """
import sys
from pathlib import Path
from harness_lib.system.git import locks
from harness_lib.system.git import advance, restore
from harness_lib.system.git import snapshot
from harness_lib.system.git.repository import Git
top, what, first, second, tree = sys.argv[1:]
git = Git.open(Path(top))
print("begin", flush=True)
with locks.hold(git):
    if what == "publish":
        advance.move_head_and_index(git, first, second)
    else:
        before = snapshot.read_untracked(git, tree)
        restore.go_back(git, first, branch="refs/heads/main", made=second, before=before)
print("end", flush=True)
"""


def _attempt(world: World) -> None:
    for n in range(30):
        world.put(f"t/{n}", f"changed {n}\n" * 200)
        world.put(f"made/{n}/file", f"made {n}\n")
        world.put(f"b/{n}", f"changed {n}\n")
    world.sh("checkout", "-q", "-b", "side")
    world.sh("add", "t", "made/1")
    world.sh("commit", "-q", "-m", "the attempt's own commit")
    (world.top / "t/3").unlink()
    world.put("t/3/now a directory", "x")
    (world.top / "b/4").unlink()
    world.put("made/loose", "x")


def _template(top: Path) -> World:
    world = World.make(top, {f"t/{n}": f"base {n}\n" * 200 for n in range(30)})
    for n in range(30):
        put(top / f"b/{n}", f"before {n}\r\n")
    world.begin()
    return world


def _killed_at(delay: float, *args: str) -> bool:
    """Run the mover, kill it and all its children after `delay` seconds; say whether it had ended before."""
    mover = subprocess.Popen(
        [sys.executable, "-c", MOVER, *args], stdout=subprocess.PIPE, start_new_session=True
    )
    assert mover.stdout is not None
    assert mover.stdout.readline() == b"begin\n"
    time.sleep(delay)
    os.killpg(mover.pid, signal.SIGKILL)
    said, _ = mover.communicate()
    return said == b"end\n"


def _seconds(move: Callable[[], object]) -> float:
    begun = time.monotonic()
    move()
    return time.monotonic() - begun


@pytest.fixture
def template(tmp_path: Path) -> World:
    return _template(tmp_path / "template")


def _copy(template: World, name: str) -> World:
    top = template.top.parent / name
    shutil.copytree(template.top, top, symlinks=True)
    return World(top, Git.open(top), template.base, template.branch, template.before)


@pytest.mark.parametrize("kills", [3, MANY])
def test_going_back_survives_being_killed_at_any_moment(template: World, kills: int) -> None:
    at_first = disk(template.top)
    _attempt(template)
    made = snapshot.capture(template.git, base=template.base, before=template.before)
    assert template.before is not None
    arguments = ("back", template.base, made, template.before.tree)
    measured = _copy(template, "measured")
    longest = _seconds(lambda: measured.go_back_from(made))
    moments = random.Random(20250701)
    interrupted = 0
    for n in range(kills):
        world = _copy(template, f"killed-{n}")
        since = time.time()
        for _ in range(2):
            interrupted += not _killed_at(moments.uniform(0, longest), str(world.top), *arguments)
        with locks.hold(world.git):
            locks.remove_dead_locks(world.git, since, ["refs/heads/main"])
            # As the caller does it: what stands now is saved first, whatever the killed runs have moved.
            assert world.go_back() == []
        assert disk(world.top) == at_first
        assert (world.git.head(), world.git.branch()) == (world.base, "refs/heads/main")
        assert status.changes(world.git).tracked == ()
        assert not (world.top / "made").exists()
        shutil.rmtree(world.top)
    assert interrupted


@pytest.mark.parametrize("kills", [3, MANY])
def test_publishing_survives_being_killed_at_any_moment(template: World, kills: int) -> None:
    for n in range(30):
        template.put(f"t/{n}", f"work {n}\n" * 200)
    tree = trees.without(template.git, snapshot.capture(template.git), ["b"])
    commit = template.git.commit(tree, [template.base], "work")
    arguments = ("publish", commit, template.base, tree)
    measured = _copy(template, "measured")
    longest = _seconds(lambda: advance.move_head_and_index(measured.git, commit, template.base))
    moments = random.Random(20250702)
    for n in range(kills):
        world = _copy(template, f"killed-{n}")
        at_first = disk(world.top)
        since = time.time()
        _killed_at(moments.uniform(0, longest), str(world.top), *arguments)
        with locks.hold(world.git):
            locks.remove_dead_locks(world.git, since)
            advance.move_head_and_index(world.git, commit, world.base)
        assert world.git.head() == commit
        assert status.changes(world.git).tracked == ()
        assert disk(world.top) == at_first
        shutil.rmtree(world.top)


FOLDERS = ("", "d/", "d/e/", "f/")
NAMES = ("a", "b", "d", "f", "line\nbreak", ".gitignore")


def _stir(top: Path, chance: random.Random, times: int, tag: str) -> None:
    """Do to the files below `top` what agents do: write, remove, replace, link, mark as executable."""
    for n in range(times):
        path = top / (chance.choice(FOLDERS) + chance.choice(NAMES))
        if any(parent.is_symlink() or parent.is_file() for parent in path.parents if parent != top):
            continue
        deed = chance.choice(("write", "write", "remove", "link", "program"))
        if path.is_dir() and not path.is_symlink():
            if deed == "remove":
                shutil.rmtree(path)
            continue
        path.unlink(missing_ok=True)
        if deed == "link":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(chance.choice(("a", "d", "nowhere", "..")))
        elif deed != "remove":
            put(path, "" if path.name == ".gitignore" else f"{tag} {n}\n", executable=deed == "program")


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.release) for n in range(1, 20))])
def test_whatever_an_attempt_did_the_work_tree_is_as_it_was_and_nothing_is_lost(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    world = World.make(tmp_path / "repo")
    _stir(world.top, chance, 12, "base")
    world.commit()
    for name in ("mine", "d/mine", "f/mine"):
        if chance.random() < 0.7 and not any(
            parent.is_symlink() or parent.is_file() for parent in (world.top / name).parents
        ):
            world.put(name, f"before {name}\n")
    world.before = snapshot.capture_untracked(world.git, status.changes(world.git).untracked, LIMIT, LIMIT)
    at_first = disk(world.top)
    for part in range(3):
        _stir(world.top, chance, 10, f"attempt {part}")
        if chance.random() < 0.5:
            world.sh("add", "-A")
            world.sh("commit", "-q", "--allow-empty", "-m", "attempt")
    for name in ("mine", "d/mine"):
        if (world.top / name).is_file() and chance.random() < 0.5:
            world.put(name, "attempt\n")
    left = disk(world.top)
    made = snapshot.capture(world.git, base=world.base, before=world.before)
    assert world.go_back_from(made) == []
    assert disk(world.top) == at_first
    kept = {
        world.git.run("cat-file", "blob", oid).stdout for _, oid in trees.entries(world.git, made).values()
    }
    assert {text for _, text in left.values()} <= kept
    assert status.changes(world.git).tracked == ()

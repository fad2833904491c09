"""What locks.py promises: one mover at a time, and only dead locks are removed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness_lib.errors import HeldError
from harness_lib.system.git import calls, locks
from tests.another_user import NOBODY, needs_root, told
from tests.system.git.gitrepo import World, put
from tests.waiting import until

LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found through /proc")

HOLDER = """
import sys
from pathlib import Path
from harness_lib.system.git import locks
from harness_lib.system.git.repository import Git
git = Git.open(Path(sys.argv[1]))
with locks.hold(git):
    print("held", flush=True)
    if sys.argv[2] == "child":
        git.run("-c", "alias.wait=!cat " + sys.argv[3], "wait")
    sys.stdin.read()
"""


def _holder(world: World, mode: str, fifo: Path | None = None) -> subprocess.Popen[bytes]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(world.top), mode, str(fifo)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    return holder


def _finish(holder: subprocess.Popen[bytes]) -> None:
    holder.kill()
    holder.communicate()


def test_a_second_process_waits_and_then_says_who_is_in_the_way(world: World) -> None:
    holder = _holder(world, "alone")
    with pytest.raises(HeldError, match=r"harness-git\.lock"), locks.hold(world.git, timeout=0.1):
        pass
    _finish(holder)
    with locks.hold(world.git, timeout=10):
        pass


def test_a_git_child_of_a_dead_holder_still_holds(world: World, tmp_path: Path) -> None:
    """The proof that none of our own git processes is left: it must not be given while one is."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    holder = _holder(world, "child", fifo)
    # Opened for writing only when the child of the child reads: then it surely runs.
    with fifo.open("wb"):
        _finish(holder)
        with pytest.raises(HeldError), locks.hold(world.git, timeout=0.1):
            pass
    with locks.hold(world.git, timeout=10):
        pass


def test_what_the_git_of_a_killed_holder_left_is_gone_for_the_next_one(world: World) -> None:
    _finish(_holder(world, "alone"))
    left = [world.git.git_dir / name for name in ("index.lock", "packed-refs.lock", "refs/harness/x.lock")]
    for lock in left:
        put(lock, "")

    with locks.hold(world.git, timeout=10):
        assert [lock for lock in left if lock.exists()] == []


def test_a_lock_that_no_killed_holder_can_have_made_stays(world: World) -> None:
    """The last holder came to its end, or was killed after the lock was there."""
    with locks.hold(world.git):
        pass
    lock = world.git.git_dir / "index.lock"
    put(lock, "")
    with locks.hold(world.git):
        assert lock.exists()
    os.utime(lock, (time.time() - 60, time.time() - 60))
    _finish(_holder(world, "alone"))

    with locks.hold(world.git, timeout=10):
        assert lock.exists()


def test_hold_may_be_nested_and_is_free_afterwards(world: World) -> None:
    with locks.hold(world.git), locks.hold(world.git, timeout=0):
        world.git.run("status")
    assert calls.descriptors(world.git.git_dir) == ()
    _finish(_holder(world, "alone"))


FORKER = """
import os, sys
from pathlib import Path
from harness_lib.system.git import calls, locks
from harness_lib.system.git.repository import Git
git = Git.open(Path(sys.argv[1]))
with locks.hold(git):
    child = os.fork()
    if child == 0:
        os._exit(len(calls.descriptors(git.git_dir)))
    assert os.waitpid(child, 0)[1] == 0
    assert len(calls.descriptors(git.git_dir)) == 1
"""


def test_a_forked_child_does_not_hold(world: World) -> None:
    # In a process of its own: the test runner may have threads, and those forbid to fork.
    subprocess.run([sys.executable, "-c", FORKER, str(world.top)], check=True)


def test_linked_worktrees_are_moved_independently(world: World) -> None:
    with locks.hold(world.git), locks.hold(world.linked().git, timeout=0):
        pass


def test_leftover_locks_are_found_where_git_puts_them(world: World) -> None:
    names = ["index.lock", "HEAD.lock", "refs/heads/main.lock", "packed-refs.lock", "refs/harness/r/1.lock"]
    for name in [*names, "config.lock", "refs/heads/other.lock"]:
        put(world.git.git_dir / name, "")
    leftovers = locks.leftover_locks(world.git, ["refs/harness/r/1", "refs/harness/r/2"])
    assert sorted(leftovers) == sorted(world.git.git_dir / name for name in names)


def test_dead_locks_of_our_own_operation_are_removed(world: World) -> None:
    since = time.time()
    lock = put(world.git.git_dir / "index.lock", "")
    # Only we write this ref, so its lock may be as old as it likes.
    ref = put(world.git.git_dir / "refs/harness/r/1.lock", "")
    os.utime(ref, (1, 1))
    with locks.hold(world.git):
        assert set(locks.remove_dead_locks(world.git, since, ["refs/harness/r/1"])) == {lock, ref}
        assert locks.remove_dead_locks(world.git, since, ["refs/harness/r/1"]) == []
    assert not lock.exists()


def test_a_lock_that_is_older_than_our_operation_stays_and_is_named(world: World) -> None:
    lock = put(world.git.git_dir / "index.lock", "")
    os.utime(lock, (1, 1))
    with locks.hold(world.git), pytest.raises(HeldError, match=r"index\.lock.*older") as caught:
        locks.remove_dead_locks(world.git, time.time())
    assert lock.exists()
    assert caught.value.hint


@LINUX
@pytest.mark.parametrize("where", ["inside", "argument", "linked", "linked by a relative path"])
def test_a_live_git_in_this_repository_keeps_its_lock(world: World, where: str) -> None:
    tree = world.linked()
    if "relative" in where:
        # As git 2.48 writes it with `worktree.useRelativePaths`.
        record = tree.git.git_dir / "gitdir"
        record.write_text(f"{os.path.relpath(record.read_text().strip(), tree.git.git_dir)}\n")
    cwd = {"inside": world.top / "dir", "argument": Path("/")}.get(where, tree.top)
    place = [f"--git-dir={world.top}/.git"] if where == "argument" else []
    live = subprocess.Popen(["git", *place, "hash-object", "--stdin"], cwd=cwd, stdin=subprocess.PIPE)
    since = time.time()
    lock = put(world.git.git_dir / "index.lock", "")
    with locks.hold(world.git):
        with pytest.raises(HeldError, match=str(live.pid)):
            locks.remove_dead_locks(world.git, since)
        assert lock.exists()
        live.send_signal(signal.SIGKILL)
        live.communicate()
        assert locks.remove_dead_locks(world.git, since) == [lock]


@LINUX
def test_a_git_in_another_repository_and_a_harmless_one_do_not_count(world: World, tmp_path: Path) -> None:
    other = World.make(tmp_path / "repo-other")
    live = [
        subprocess.Popen(["git", "hash-object", "--stdin"], cwd=other.top, stdin=subprocess.PIPE),
        subprocess.Popen(["git", "cat-file", "--batch"], cwd=world.top, stdin=subprocess.PIPE),
    ]
    lock = put(world.git.git_dir / "index.lock", "")
    with locks.hold(world.git):
        assert locks.remove_dead_locks(world.git, time.time() - 1) == [lock]
    for process in live:
        process.communicate()


# -- locks in a work tree of ours


@LINUX
@needs_root
def test_a_git_of_another_user_keeps_only_a_lock_of_that_user(world: World) -> None:
    """Its directory cannot be seen, and on a machine with many users there is always one."""
    with subprocess.Popen(["git", "hash-object", "--stdin"], cwd=world.top, stdin=subprocess.PIPE) as live:
        assert _lives(live.pid, owner=0, seen_by=NOBODY)
        assert not _lives(live.pid, owner=NOBODY, seen_by=NOBODY)
        assert not _lives(live.pid, owner=0, seen_by=0)


@LINUX
@needs_root
def test_a_git_without_arguments_keeps_no_lock(world: World, tmp_path: Path) -> None:
    """It begins or ends; the system may refuse to show its environment then, also to its user."""
    program = shutil.copy("/bin/cat", tmp_path / "git")
    with subprocess.Popen([""], executable=program, cwd=world.top, stdin=subprocess.PIPE) as live:
        name = Path(f"/proc/{live.pid}/comm")
        until("the program runs", lambda: name.read_text() == "git\n")
        assert not _lives(live.pid, owner=0, seen_by=NOBODY)


@LINUX
def test_a_git_that_ends_while_it_is_looked_at_keeps_no_lock(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user reads its arguments, and a moment later no more of it: the kernel gives the rest to root."""
    with subprocess.Popen(["git", "hash-object", "--stdin"], cwd=world.top, stdin=subprocess.PIPE) as live:

        def ends(path: Path) -> Path:
            if path != Path(f"/proc/{live.pid}/cwd"):
                return read(path)
            live.kill()
            os.waitid(os.P_PID, live.pid, os.WEXITED | os.WNOWAIT)
            raise PermissionError(path)

        read = Path.readlink
        monkeypatch.setattr(Path, "readlink", ends)
        assert live.pid not in {pid for pid, _ in locks.living([str(world.top)], {os.geteuid()})}


def _lives(pid: int, *, owner: int, seen_by: int) -> bool:
    """Return whether the git `pid` may have made a lock of `owner`, as the user `seen_by` finds out."""
    return bool(told(lambda: any(each == pid for each, _ in locks.living(["/elsewhere"], {owner})), seen_by))

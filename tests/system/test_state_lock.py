"""One process at a time changes the state, who waits longest is served first, and the dead stop nobody."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness_lib.errors import HeldError
from harness_lib.system import flock
from harness_lib.system.flock import turn
from harness_lib.system.place import own_files
from harness_lib.system.state_lock import StateLock, holder

OURS = "from harness_lib.system.state_lock import StateLock as Lock"
PACKAGE = "from filelock import FileLock as Lock"
LINE = "from harness_lib.system import flock; Lock = lambda path: flock.turn(path, 60)"
HOLD = """
import sys
from pathlib import Path
{lock}
with Lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
WAIT = """
import sys
from pathlib import Path
{lock}
try:
    Lock(Path(sys.argv[1]), timeout=0).__enter__()
except Exception as error:
    print(type(error).__name__, flush=True)
with Lock(Path(sys.argv[1]), timeout=60):
    print("ours")
"""
TAKE = """
import sys
from pathlib import Path
from harness_lib.system.state_lock import StateLock
with StateLock(Path(sys.argv[1]), timeout=float(sys.argv[2])):
    print("has waited" if "filelock" in sys.modules else "at once")
"""
FULL = """
import resource, sys
from pathlib import Path
from harness_lib.system.state_lock import StateLock
lock = StateLock(Path(sys.argv[1]), timeout=0)
with lock:
    pass
before = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
try:
    lock.__enter__()
except OSError as error:
    print("no room:", type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, before)
with lock:
    print("held again")
"""


class Undermined(StateLock):
    """Somebody deletes `.harness/` between our taking the lock and our looking whether it still counts."""

    @property
    def undermined(self) -> Path:
        return self.path.parent.with_name("undermined")

    def _take_if_free(self) -> bool:
        is_taken = super()._take_if_free()
        if not self.undermined.exists():
            self.undermined.touch()
            shutil.rmtree(self.path.parent)
        return is_taken


def python(program: str, *args: object, lock: str = OURS) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program.replace("{lock}", lock), *map(str, args)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def held_by_another(lock: Path, by: str = OURS) -> subprocess.Popen[str]:
    child = python(HOLD, lock, lock=by)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.communicate()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / ".harness/state.lock"


def test_the_folder_is_made_and_hides_from_git_what_is_ours(lock: Path) -> None:
    with StateLock(lock):
        assert (lock.parent / ".gitignore").read_bytes() == own_files.RULES


def test_whoever_waits_in_vain_is_told_the_holder(lock: Path) -> None:
    child = held_by_another(lock)
    with pytest.raises(HeldError, match=f"pid {child.pid} on {os.uname().nodename} since 20"):
        StateLock(lock, timeout=0.05).__enter__()
    end(child)


def test_the_lock_of_a_killed_process_is_free(lock: Path) -> None:
    end(held_by_another(lock))

    with StateLock(lock, timeout=0):
        assert holder(lock).startswith(f"pid {os.getpid()} on ")


def test_it_is_free_and_nobody_is_named_once_it_is_released_by_an_error_too(lock: Path) -> None:
    with pytest.raises(KeyError), StateLock(lock):
        raise KeyError

    assert lock.read_bytes() == b""
    assert holder(lock) == "another process"
    with StateLock(lock, timeout=0):
        pass


def test_a_lock_on_a_deleted_folder_is_void(lock: Path) -> None:
    """`.harness/` may be deleted at any time: the lock that counts is the one at the path."""
    held = Undermined(lock)
    with held:
        assert held.undermined.exists()
        assert lock.exists()
        with pytest.raises(HeldError):
            StateLock(lock, timeout=0).__enter__()


def test_a_folder_deleted_while_held_stops_nobody(lock: Path) -> None:
    child = held_by_another(lock)
    shutil.rmtree(lock.parent)

    with StateLock(lock, timeout=0):
        child.communicate()

    assert child.returncode == 0


def test_a_child_process_does_not_keep_it(lock: Path) -> None:
    with StateLock(lock):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with StateLock(lock, timeout=0):
            pass
    finally:
        child.kill()
        child.wait()


def test_a_disk_that_has_no_room_for_our_name_leaves_it_free(lock: Path) -> None:
    """A file that may not grow stands for the full disk."""
    child = python(FULL, lock)

    assert child.communicate()[0] == "no room: OSError\nheld again\n"


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".harness").write_text("a file", encoding="ascii")

    with pytest.raises(FileExistsError):
        StateLock(tmp_path / ".harness/state.lock").__enter__()


def test_a_free_lock_is_taken_without_loading_what_waits(lock: Path) -> None:
    assert python(TAKE, lock, 60).communicate()[0] == "at once\n"


def test_who_comes_while_others_stand_in_line_does_not_pass_them(lock: Path) -> None:
    """The line never moves here, so the newcomer asks the lock itself once half of its time is over."""
    lock.parent.mkdir()
    with flock.turn(lock.with_suffix(".turn"), 60):
        assert python(TAKE, lock, 2).communicate()[0] == "has waited\n"


@pytest.mark.parametrize(
    ("holds", "waits", "error"), [(OURS, PACKAGE, "Timeout"), (PACKAGE, OURS, "HeldError")]
)
def test_who_took_it_at_once_and_who_waits_by_the_package_exclude_each_other(
    lock: Path, holds: str, waits: str, error: str
) -> None:
    lock.parent.mkdir()
    child = held_by_another(lock, holds)
    waiter = python(WAIT, lock, lock=waits)
    assert waiter.stdout is not None
    assert waiter.stdout.readline() == f"{error}\n"
    assert waiter.poll() is None

    child.communicate()

    assert waiter.communicate()[0] == "ours\n"


# -- the line


LONG = 60.0


@pytest.fixture
def line(tmp_path: Path) -> Path:
    return tmp_path / "state.turn"


def test_the_next_one_comes_when_the_first_goes(line: Path) -> None:
    child = held_by_another(line, LINE)
    served: list[str] = []

    def wait() -> None:
        with turn(line, LONG):
            served.append("we")

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert served == []
    child.communicate("")
    waiting.join()
    assert served == ["we"]


def test_whoever_has_waited_long_enough_goes_on_without_a_turn_and_leaves_the_line(line: Path) -> None:
    first = held_by_another(line, LINE)
    with turn(line, 0.01):
        assert first.poll() is None
    end(first)

    # The place we gave up came to the front when the first one died; somebody else can stand there now.
    end(held_by_another(line, LINE))


def test_without_a_directory_there_is_no_line_and_nobody_minds(tmp_path: Path) -> None:
    with turn(tmp_path / "missing/state.turn", LONG):
        pass

    assert not (tmp_path / "missing").exists()


def test_who_stands_in_line_is_told_that_there_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a file system over the network it may fail while one waits; nobody would be woken then."""

    def fail(_descriptor: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(flock, "take", fail)
    line = tmp_path / "line"
    with flock.attempt(line), pytest.raises(OSError, match="No locks"), turn(line, 0.1, lambda: None):
        pytest.fail("It has no lock.")

"""A reader sees the old content or the new one, and nothing is left lying about."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness_lib.system import flock, fs
from harness_lib.system.place import own_files
from tests.conftest import for_release

CRASH = 73
DIE_AT = """
import os, sys
from pathlib import Path
from harness_lib.system import flock, fs

def die(event, args):
    if event == {event!r} and any(str(arg).startswith({directory!r}) for arg in args):
        os._exit(73)

sys.addaudithook(die)
fs.write(Path({path!r}), b"new")
"""


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("durable", [True, False])
def test_write_makes_and_replaces(tmp_path: Path, durable: bool) -> None:
    file = tmp_path / "state"

    fs.write(file, b"old", durable=durable)
    fs.write(file, b"new", durable=durable)

    assert file.read_bytes() == b"new"
    assert names(tmp_path) == ["state"]


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """By root, `/dev/null` would be replaced for the whole machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with pytest.raises(OSError, match="a device, a pipe or a socket"):
        fs.write(pipe, b"new")

    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert names(tmp_path) == ["pipe"]


class Steps:
    """Stands before the calls that reach the disk, and notes which of them came when, and for what."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        sync, rename = os.fsync, Path.replace

        def noted_sync(descriptor: int) -> None:
            sync(descriptor)
            directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            self.seen.append("directory synced" if directory else "content synced")

        def noted_rename(path: Path, target: Path) -> Path:
            self.seen.append("renamed")
            return rename(path, target)

        patch.setattr(os, "fsync", noted_sync)
        patch.setattr(Path, "replace", noted_rename)


@pytest.mark.skipif(sys.platform == "darwin", reason="content is synced by F_FULLFSYNC there")
def test_a_durable_write_syncs_the_content_before_the_rename_and_the_name_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the first sync a power cut may leave an empty file, without the second the old one."""
    steps = Steps(monkeypatch)

    fs.write(tmp_path / "state", b"new")
    assert steps.seen == ["content synced", "renamed", "directory synced"]

    fs.write(tmp_path / "state", b"newer", durable=False)
    assert steps.seen[3:] == ["renamed"]

    fs.write(tmp_path / "state", b"newest", durable=False, whole=True)
    assert steps.seen[4:] == ["content synced", "renamed"]


def test_a_new_file_is_for_its_owner_alone_permissions_stay_and_a_given_mode_wins(tmp_path: Path) -> None:
    file = tmp_path / "state"
    before = os.umask(0)
    try:
        fs.write(file, b"")
    finally:
        os.umask(before)
    assert mode_of(file) == 0o600

    file.chmod(0o666)
    fs.write(file, b"new")
    assert mode_of(file) == 0o666
    fs.write(file, b"new", mode=0o606)
    assert mode_of(file) == 0o606


def test_what_a_symlink_leads_to_stays_as_it_is(tmp_path: Path) -> None:
    """A clone may have brought the link."""
    target = tmp_path / "elsewhere"
    target.write_bytes(b"old")
    for link, where in ((tmp_path / "one", target), (tmp_path / "two", tmp_path / "nowhere")):
        link.symlink_to(where)

        fs.write(link, b"new")

        assert not link.is_symlink()
        assert link.read_bytes() == b"new"
        assert mode_of(link) == 0o600
    assert target.read_bytes() == b"old"
    assert not (tmp_path / "nowhere").exists()


def test_failure_leaves_the_old_file_and_no_temporary(tmp_path: Path) -> None:
    target = tmp_path / "state"
    (target / "full").mkdir(parents=True)

    with pytest.raises(OSError, match="state"):
        fs.write(target, b"new")

    assert names(tmp_path) == ["state"]


@pytest.mark.parametrize("event", ["open", "os.rename"])
def test_death_on_the_way_leaves_the_old_content(tmp_path: Path, event: str) -> None:
    """The writer dies before its temporary file exists, and between writing it and the rename."""
    file = tmp_path / "state"
    file.write_bytes(b"old")
    program = DIE_AT.format(event=event, directory=str(tmp_path / ".state."), path=str(file))

    died = subprocess.run([sys.executable, "-c", program], check=False)

    assert died.returncode == CRASH
    assert file.read_bytes() == b"old"


def test_sweep_removes_only_what_the_dead_left(tmp_path: Path) -> None:
    hour_ago = time.time() - 3700
    for name in (".state.dead.tmp", ".state.busy.tmp", ".other.dead.tmp", "state", ".state.note"):
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (hour_ago, hour_ago))
    os.utime(tmp_path / ".state.busy.tmp")

    fs.sweep(tmp_path, "state")

    assert names(tmp_path) == [".other.dead.tmp", ".state.busy.tmp", ".state.note", "state"]


def test_small_acts_may_be_repeated(tmp_path: Path) -> None:
    fs.make_directory(tmp_path / "a/b")
    fs.make_directory(tmp_path / "a/b")
    file = tmp_path / "a/b/marker"
    file.write_bytes(b"kept")

    fs.remove(file)
    fs.remove(file)

    assert not file.exists()


@pytest.mark.parametrize("name", [".harness/logs/task-001", ".git/harness", ".harness"])
def test_a_project_that_was_moved_away_is_not_made_anew(tmp_path: Path, name: str) -> None:
    """It would stand in the way of whoever moves it back."""
    project = tmp_path / "moved"

    with pytest.raises(FileNotFoundError):
        fs.make_directory(project / name)
    assert list(tmp_path.iterdir()) == []

    project.mkdir()
    if name.startswith(".git"):
        with pytest.raises(FileNotFoundError):
            fs.make_directory(project / name)
        (project / ".git").mkdir()
    fs.make_directory(project / name)
    assert (project / name).is_dir()


# The directory is gone before each of so many effects of that name below it.
GOES = """
import os, shutil, sys
from pathlib import Path
event, directory, times, room = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
busy = False
def go(name, args):
    global times, busy
    if not busy and times and name == event and os.fsdecode(args[0]).startswith(directory):
        times, busy = times - 1, True
        shutil.rmtree(directory, ignore_errors=True)
        busy = False
from harness_lib.system import flock, fs
from harness_lib.system.place import own_files
sys.addaudithook(go)
if room == "notes":
    own_files.write_note(directory + "/beats/note", b"new")
elif room == "listing":
    print(fs.matching(Path(directory), "*"), list(fs.below(Path(directory), "*")))
else:
    fs.write(Path(directory, "below", "note"), b"new", make=True)
"""


def test_what_an_agent_has_put_in_the_place_of_a_directory_is_not_listed(tmp_path: Path) -> None:
    """`.git/refs` of its clone may lead to `/`."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/file").touch()
    (tmp_path / "refs").symlink_to("elsewhere")

    assert list(fs.below(tmp_path / "elsewhere", "*")) == [tmp_path / "elsewhere/file"]
    assert list(fs.below(tmp_path / "refs", "*")) == []


def test_a_pipe_in_the_place_of_a_file_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    try:
        assert own_files.read(tmp_path / "pipe", 10) == b""
    finally:
        os.close(writer)


def gone_before(event: str, times: int, room: str, directory: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", GOES, event, str(directory), str(times), room]
    return subprocess.run(argv, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("times", [5, *for_release(1)])
@pytest.mark.parametrize("event", ["os.mkdir", "open", "os.rename"])
@pytest.mark.parametrize(("room", "note"), [("fs", "below/note"), ("notes", "beats/note")])
def test_a_directory_that_is_taken_away_meanwhile_is_made_again(
    tmp_path: Path, event: str, times: int, room: str, note: str
) -> None:
    place = tmp_path / ".harness"
    place.mkdir()

    done = gone_before(event, times, room, place)

    assert done.returncode == 0, done.stderr
    assert (place / note).read_bytes() == b"new"


@pytest.mark.parametrize("room", ["fs", "notes"])
def test_that_it_is_taken_away_every_time_is_an_error_in_the_end(tmp_path: Path, room: str) -> None:
    assert "FileNotFoundError" in gone_before("open", 1000, room, tmp_path / ".harness").stderr


def test_that_something_else_stands_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")

    with pytest.raises(FileExistsError):
        fs.write(tmp_path / "file/note", b"new", make=True)


@pytest.mark.parametrize("event", ["os.listdir", "os.scandir"])
def test_of_a_directory_that_goes_while_it_is_listed_there_is_nothing(tmp_path: Path, event: str) -> None:
    place = tmp_path / "a"
    (place / "b").mkdir(parents=True)

    done = gone_before(event, 1, "listing", place)

    assert (done.returncode, done.stdout.split("\n")[0][-2:]) == (0, "[]"), done.stderr


# -- no file of ours is opened through a symbolic link, be it the file or the directory that it lies in


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_bytes(b"content")
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "real/link").symlink_to("file")
    return tmp_path


def test_a_file_of_its_own_is_read(place: Path) -> None:
    assert own_files.read(place / "real/file") == b"content"
    assert own_files.read(place / "real/file", 3) == b"con"


@pytest.mark.parametrize("name", ["real/link", "linked/file", "linked/link"])
def test_nothing_is_read_or_made_through_a_link(place: Path, name: str) -> None:
    with pytest.raises(OSError, match="symbolic links"):
        own_files.read(place / name)
    with pytest.raises(OSError, match="symbolic links"):
        own_files.descriptor(place / name, os.O_WRONLY | os.O_TRUNC)
    assert (place / "real/file").read_bytes() == b"content"


def test_nothing_is_made_in_a_directory_that_a_link_names(place: Path) -> None:
    with pytest.raises(OSError, match="symbolic links"):
        own_files.descriptor(place / "linked/new", os.O_WRONLY | os.O_CREAT)
    assert not (place / "real/new").exists()


def test_a_new_file_is_for_us_alone(place: Path) -> None:
    old = os.umask(0)
    try:
        os.close(own_files.descriptor(place / "real/new", os.O_WRONLY | os.O_CREAT))
    finally:
        os.umask(old)
    assert (place / "real/new").stat().st_mode & 0o777 == 0o600


def test_a_link_is_no_lock_file_and_others_cannot_read_one(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    os.close(flock.opened(path))
    assert mode_of(path) == 0o600
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="link"):
        flock.opened(tmp_path / "link")

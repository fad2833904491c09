"""Machines and moments that a sandbox does not like."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from harness_lib.errors import EnvSetupError
from harness_lib.system.processes import engines, sandbox
from harness_lib.system.processes.sandbox import Sandbox
from tests.conftest import CHECKOUT
from tests.full_disk import disk
from tests.runs.workshop import Workshop
from tests.sandbox.conftest import without_bubblewrap
from tests.system.git.gitrepo import put

# Calls of the kernel that a container may refuse: mount, and landlock_create_ruleset.
MOUNT, LANDLOCK = {"x86_64": 165, "aarch64": 40}.get(platform.machine(), 0), 444
# Becomes the command after the number of a call and of the error with which the system refuses it.
REFUSING = """
import ctypes, os, struct, sys
pairs, at = [], 1
while sys.argv[at] != "--":
    pairs.append((int(sys.argv[at]), int(sys.argv[at + 1])))
    at += 2
step = lambda code, yes, no, value: struct.pack("HBBI", code, yes, no, value)
rules = [step(0x20, 0, 0, 0)]
for number, error in pairs:
    rules += [step(0x15, 0, 1, number), step(0x06, 0, 0, 0x50000 | error)]
text = b"".join([*rules, step(0x06, 0, 0, 0x7FFF0000)])
data = ctypes.create_string_buffer(text)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(text) // 8, ctypes.addressof(data)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0
os.execvp(sys.argv[at + 1], sys.argv[at + 1 :])
"""
EPERM, ENOSYS = 1, 38
WAITS = r"No space left on device \(\S+\)\. The run waits"


# Prints the engine of the mode `auto`, and what `require` says where there is none.
CHOOSES = """
import os
from harness_lib.system.processes import sandbox
engine = sandbox.required("auto", os.environ)
print(engine or "none", flush=True)
engine or sandbox.required("require", os.environ)
"""


@pytest.mark.skipif(not MOUNT or sys.platform != "linux", reason="the numbers are those of Linux")
def test_where_a_container_or_kernel_refuses_an_engine_the_next_one_counts_and_in_the_end_none() -> None:
    started = [each for each in engines.ENGINES if sandbox.find(os.environ, [each])[0]]
    mount, landlock = (str(MOUNT), str(EPERM)), (str(LANDLOCK), str(ENOSYS))
    for refused, gone in ((mount, {"bubblewrap"}), (landlock, {"nono"}), (mount + landlock, set(started))):
        typed = [sys.executable, "-c", REFUSING, *refused, "--", sys.executable, "-c", CHOOSES]
        done = subprocess.run(typed, cwd=CHECKOUT, capture_output=True, text=True, check=False)
        left = [each for each in started if each not in gone]
        assert done.stdout.split() == [*left, "none"][:1]
        assert ("No sandbox can be started" in done.stderr) is (not left)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is that of Linux")
def test_a_file_that_is_removed_while_nono_starts_a_command_does_not_keep_it_from_starting(
    tmp_path: Path,
) -> None:
    if why := sandbox.find(os.environ, ["nono"])[1]:
        pytest.skip(why)
    with TemporaryFile(dir=tmp_path) as removed:
        # It is there for whoever looks, and cannot be opened by its name.
        gone = f"/proc/{os.getpid()}/fd/{removed.fileno()}"
        confined = Sandbox("nono", str(tmp_path), writable=(gone, str(tmp_path)))
        assert sandbox.trial(confined, ["touch", "made"], os.environ, tmp_path) == (None, [])
    assert (tmp_path / "made").exists()


def test_a_child_that_outlives_its_agent_is_ended(each_engine: str, workshop: Workshop, home: Path) -> None:
    lock = home / ".cache/lock"
    put(lock, "")
    task = workshop.add(
        "Leave",
        "test -f made",
        do=f"sh setsid flock {lock} sleep 600 & while flock -n {lock} true; do :; done; touch made",
    )
    workshop.ends(0, "--sandbox", each_engine)
    assert workshop.statuses() == {task: "completed"}
    subprocess.run(["flock", "-n", lock, "true"], check=True)


def test_long_paths_bytes_links_and_a_home_on_another_disk_are_confined_all_the_same(
    each_engine: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "a place" / ("x" * 200) / ("y" * 100)
    (tmp_path / "home link").symlink_to(tmp_path / "real home")
    monkeypatch.setenv("HOME", str(tmp_path / "home link"))
    tries = "touch made; cat ~/.ssh/id > stolen; touch ~/outside"
    tries += f"; touch '{place}/project/outside' '{tmp_path}/link/outside'"
    with disk(tmp_path / "real home", "size=256k"):
        shutil.copytree(home, tmp_path / "real home", dirs_exist_ok=True)
        put(tmp_path / "home link/.ssh/id", "a key")
        put(tmp_path / "home link" / os.fsdecode(b"caf\xe9"), "")
        workshop = Workshop.make(place)
        (tmp_path / "link").symlink_to(workshop.top)
        workshop.top = tmp_path / "link"
        task = workshop.add(
            "Try", "test -f made && ! cat ~/.ssh/id && test -f README.md", do=f"sh {tries}; true"
        )
        try:
            workshop.ends(0, "--sandbox", each_engine)
        finally:
            workshop.close()
        assert workshop.statuses() == {task: "completed"}
        assert workshop.sh("show", "main:stolen") == ""
        assert not list(tmp_path.rglob("outside"))


def test_an_engine_that_is_removed_ends_the_run(workshop: Workshop, home: Path, tmp_path: Path) -> None:
    found = shutil.which("bwrap")
    if found is None or sandbox.find(os.environ, ["bubblewrap"])[0] is None:
        pytest.skip("bubblewrap does not start here")
    program = tmp_path / "engine/bwrap"
    program.parent.mkdir()
    program.symlink_to(found)
    # What an agent may write is never taken for the engine.
    put(home / ".cache/bin/bwrap", '#!/bin/sh\nshift $(($# - 1)); eval "$1"\n', executable=True)
    os.mkfifo(home / ".cache/pipe")
    workshop.add("Try", "test -f made; touch ~/outside", do="sh touch made; cat ~/.cache/pipe")
    workshop.add("Next", "test -f next", do="sh touch next")
    path = f"{home}/.cache/bin:{program.parent}:{without_bubblewrap(tmp_path)}"
    run = workshop.start("--sandbox", "bubblewrap", PATH=path)
    with (home / ".cache/pipe").open("w"):
        program.unlink()
    assert run.wait() == 7
    assert (
        "The user must act first: bwrap is not on the PATH" in (workshop.top.parent / "run.log").read_text()
    )
    assert [workshop.task(name)["attempts"] for name in workshop.statuses()] == [0, 0]
    assert not (home / "outside").exists()
    assert not workshop.sh("log", "--format=%s", "main").count("[task")


def test_a_disk_that_fills_costs_no_attempt(workshop: Workshop, home: Path, tmp_path: Path) -> None:
    with disk(tmp_path / "temporary", "size=256k") as made:
        if not made or sandbox.find(os.environ, ["nono"])[0] is None:
            pytest.skip("no disk can be made here, or nono does not start")
        put(home / ".cache/none", "")
        os.mkfifo(home / ".cache/pipe")
        task = workshop.add("Try", "test -f made", do="sh touch made; cat ~/.cache/pipe")
        workshop.start("--sandbox", "nono", TMPDIR=str(tmp_path / "temporary"))
        pipe = (home / ".cache/pipe").open("w")
        # Its only entry is its top: there is no room for a directory.
        with disk(tmp_path / "temporary", "nr_inodes=1"):
            pipe.close()
            workshop.wait_for("the run waits", lambda: re.search(WAITS, workshop.printed))
        # Of the next agent, as none was started while there was no room.
        with (home / ".cache/pipe").open("w"):
            pass
        workshop.has_ended(0)
    assert workshop.printed.count("task-001 attempt 1: Try") == 2
    assert (workshop.statuses(), workshop.task(task)["attempts"]) == ({task: "completed"}, 0)


def test_bubblewrap_is_taken_from_no_place_that_was_made_writable_but_from_any_where_all_is(
    tmp_path: Path,
) -> None:
    env = {"PATH": str(put(tmp_path / "bin/bwrap", "", executable=True).parent)}
    grants = engines.Grants(str(tmp_path), ("/",), (), (), (), str(tmp_path))

    assert (
        engines.command("bubblewrap", ["true"], grants, env, closed=False).argv[0] == f"{env['PATH']}/bwrap"
    )
    with pytest.raises(EnvSetupError, match="not on the PATH"):
        engines.command("bubblewrap", ["true"], grants._replace(writable=(env["PATH"],)), env, closed=False)

"""Agents that follow the prose and we exclude each other."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness_lib.errors import HeldError
from harness_lib.system.locks import mkdir_lock
from harness_lib.system.locks.mkdir_lock import SeedLock
from tests.system.locks.mkdir_locks import litter

# The steps of the protocol as an agent types them: mkdir, look at the pid, move what is stale, sign.
PROSE = """
lock=$1
if ! mkdir "$lock" 2>/dev/null; then
    holder=$(cat "$lock/pid" 2>/dev/null)
    if [ -n "$holder" ] && kill -0 "$holder" 2>/dev/null; then echo "active $holder"; exit 1; fi
    mv "$lock" "$lock.stale.$$" 2>/dev/null || { echo contention; exit 1; }
    rm -rf "$lock.stale.$$"
    mkdir "$lock" || { echo contention; exit 1; }
fi
echo $$ > "$lock/pid"
trap 'rm -rf "$lock"' EXIT
echo taken
read -r _
"""
COUNT = """
import os, sys, time
from pathlib import Path
from harness_lib.system.locks.mkdir_lock import SeedLock
lock, counter = SeedLock(Path(sys.argv[1])), Path(sys.argv[2])
for _ in range(25):
    assert lock.acquire(os.getpid(), deadline=time.monotonic() + 60) == "taken"
    number = int(counter.read_text())
    counter.write_text(str(number + 1))
    lock.release(os.getpid())
"""
PROSE_COUNT = """
lock=$1 counter=$2 done=0
while [ $done -lt 15 ]; do
    if mkdir "$lock" 2>/dev/null; then
        echo $$ > "$lock/pid"
        number=$(cat "$counter")
        echo $((number + 1)) > "$counter"
        done=$((done + 1))
        rm -rf "$lock"
    fi
    sleep 0.01
done
"""


def prose(lock: SeedLock) -> tuple[subprocess.Popen[str], str]:
    """Return an agent that follows the prose, until its input ends, and what its attempt came to."""
    child = subprocess.Popen(
        ["sh", "-c", PROSE, "sh", lock.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    return child, child.stdout.readline().strip()


def test_the_name_is_the_one_that_the_shell_computes(tmp_path: Path) -> None:
    root = tmp_path / "prøject dir"
    root.mkdir()
    script = "printf '%s' \"$1\" | (shasum -a 256 2>/dev/null || sha256sum) | awk '{print $1}' | cut -c1-16"
    digest = subprocess.run(
        ["sh", "-c", script, "sh", root.resolve()], capture_output=True, text=True, check=True
    ).stdout.strip()

    assert mkdir_lock.path_for(root) == Path(f"/tmp/harness-{digest}.lock")


def test_a_linked_root_has_the_same_lock(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "link").symlink_to("root")

    assert mkdir_lock.path_for(tmp_path / "link") == mkdir_lock.path_for(tmp_path / "root")


def test_the_prose_keeps_us_out(lock: SeedLock) -> None:
    agent, answer = prose(lock)
    try:
        assert answer == "taken"
        with pytest.raises(HeldError, match=f"pid {agent.pid} since 20"):
            lock.acquire(os.getpid(), deadline=time.monotonic() + 0.05)
        lock.release(os.getpid())
        assert lock.path.exists()
    finally:
        agent.communicate()

    assert lock.acquire(os.getpid(), deadline=0) == "taken"


def test_we_keep_the_prose_out(lock: SeedLock) -> None:
    lock.acquire(os.getpid(), deadline=0)

    agent, answer = prose(lock)
    agent.communicate()

    assert answer == f"active {os.getpid()}"
    lock.release(os.getpid())
    agent, answer = prose(lock)
    agent.communicate()
    assert answer == "taken"


def test_no_change_is_lost_between_processes(lock: SeedLock, tmp_path: Path) -> None:
    """Ours and a shell that waits for its turn, all at once."""
    counter = tmp_path / "counter"
    counter.write_text("0", encoding="ascii")
    ours = [subprocess.Popen([sys.executable, "-c", COUNT, str(tmp_path), str(counter)]) for _ in range(4)]
    shell = subprocess.Popen(["sh", "-c", PROSE_COUNT, "sh", str(lock.path), str(counter)])

    assert [child.wait() for child in [*ours, shell]] == [0] * 5

    assert int(counter.read_text(encoding="ascii")) == 115
    assert litter(lock) == []

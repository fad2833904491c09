"""A lock on an open file is waited for not at all, for a while, or for ever; death lets go of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_lib.system import flock

HOLDS_OPEN = """
import sys
from pathlib import Path
from harness_lib.system import flock
flock.take(flock.opened(Path(sys.argv[1])))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "one.lock"


@pytest.fixture
def holding(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that holds `path` until it is killed or reads the end of its input."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_OPEN, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child
        child.kill()


@pytest.fixture
def ours(path: Path) -> Iterator[int]:
    descriptor = flock.opened(path)
    yield descriptor
    os.close(descriptor)


def test_what_nobody_holds_is_taken_at_once(ours: int) -> None:
    assert flock.take_now(ours)


@pytest.mark.usefixtures("holding")
def test_what_another_holds_is_not_waited_for(ours: int) -> None:
    assert not flock.take_now(ours)
    assert not flock.take_within(ours, 0)


def test_who_waits_a_while_has_it_when_its_holder_dies(holding: subprocess.Popen[str], ours: int) -> None:
    holding.kill()
    assert flock.take_within(ours, 60)


def test_who_waits_for_ever_has_it_when_its_holder_goes(
    holding: subprocess.Popen[str], path: Path, ours: int
) -> None:
    assert holding.stdin is not None
    holding.stdin.close()
    flock.take(ours)
    another = flock.opened(path)
    assert not flock.take_now(another)
    os.close(another)


def test_a_link_is_no_lock_file_and_others_cannot_read_one(path: Path, ours: int) -> None:
    assert os.fstat(ours).st_mode & 0o777 == 0o600
    link = path.with_name("link")
    link.symlink_to(path)
    with pytest.raises(OSError, match="link"):
        flock.opened(link)

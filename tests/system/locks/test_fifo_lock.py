"""Who waits longest is served first, and nothing but the order depends on it."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness_lib.system.locks.fifo_lock import turn

LONG = 60.0
STAND = """
import sys
from pathlib import Path
from harness_lib.system.locks.fifo_lock import turn
with turn(Path(sys.argv[1]), 60):
    print("in front", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def line(tmp_path: Path) -> Path:
    return tmp_path / "state.turn"


def in_front(line: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", STAND, str(line)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "in front\n"
    return child


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.communicate()


def test_the_next_one_comes_when_the_first_goes(line: Path) -> None:
    child = in_front(line)
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


def test_the_dead_leave_the_line(line: Path) -> None:
    end(in_front(line))

    with turn(line, LONG):
        pass


def test_whoever_has_waited_long_enough_goes_on_without_a_turn(line: Path) -> None:
    child = in_front(line)

    with turn(line, 0.01):
        assert child.poll() is None

    end(child)


def test_a_place_that_was_given_up_holds_nobody_back(line: Path) -> None:
    first = in_front(line)
    with turn(line, 0.01):
        pass
    end(first)

    # The place we gave up came to the front when the first one died; somebody else can stand there now.
    end(in_front(line))


def test_without_a_directory_there_is_no_line_and_nobody_minds(tmp_path: Path) -> None:
    with turn(tmp_path / "missing" / "state.turn", LONG):
        pass

    assert not (tmp_path / "missing").exists()

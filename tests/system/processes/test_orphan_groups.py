"""What a killed process of ours left running is ended by whoever goes on, and nothing else is."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from harness_lib.system.processes import process, runner
from tests.waiting import number_in, until

RUN = """
import os, pathlib, sys
from harness_lib.system.processes import runner
log = pathlib.Path(sys.argv[1])
runner.run(sys.argv[2], cwd=log.parent, log=log, timeout=60, env=os.environ)
"""
KILLED_FIRST = """
import os, pathlib, signal, sys
from harness_lib.system.processes import runner

def die(log, pid):
    pathlib.Path("pid").write_text(str(pid))
    os.kill(os.getpid(), signal.SIGKILL)

runner.note = die
log = pathlib.Path("1.log").absolute()
runner.run("echo ran > ran", cwd=log.parent, log=log, timeout=60, env=os.environ)
"""


def test_a_command_whose_runner_was_killed_is_ended_with_what_has_a_group_of_its_own(tmp_path: Path) -> None:
    """Agents start the commands of their tools in process groups of their own."""
    log, python = tmp_path / "1.log", shlex.quote(sys.executable)
    below = f"""{python} -c "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(60)" """
    with subprocess.Popen([sys.executable, "-c", RUN, str(log), f"{below} & wait"]) as running:
        apart = number_in(log)
        running.kill()
    command = int((tmp_path / "1.running").read_text().split()[0])
    assert process.alive(command)
    assert process.alive(apart)

    assert runner.end_all(tmp_path) == 1
    assert not process.alive(command)
    assert not process.alive(apart)
    assert not (tmp_path / "1.running").exists()


def test_a_command_whose_runner_was_killed_before_its_note_never_begins(tmp_path: Path) -> None:
    """Nobody could find it, and what it writes would come after the rollback."""
    with subprocess.Popen([sys.executable, "-c", KILLED_FIRST], cwd=tmp_path) as running:
        assert running.wait() == -signal.SIGKILL

    _wait_for_end(int((tmp_path / "pid").read_text()))
    assert not (tmp_path / "ran").exists()


def test_a_recycled_pid_is_left_alone(tmp_path: Path) -> None:
    """A live process that merely has the noted number is not the one that was noted."""
    (tmp_path / "1.running").write_text(f"{os.getpid()} 12345 {process.boot_id()}\n")

    assert runner.end_all(tmp_path) == 0
    assert not (tmp_path / "1.running").exists()


def test_a_note_of_another_boot_is_left(tmp_path: Path) -> None:
    """Nothing can be said about processes of another boot or pid namespace."""
    note = tmp_path / "1.running"
    note.write_text(f"{os.getpid()} 12345 another-boot/1\n")

    assert runner.end_all(tmp_path) == 0
    assert note.exists()


def _wait_for_end(pid: int) -> None:
    def has_ended() -> bool:
        # It is nobody's child here unless this process adopts orphans.
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        return not process.alive(pid)

    until(f"the end of {pid}", has_ended)

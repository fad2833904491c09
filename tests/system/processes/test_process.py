"""What is said about processes is true of real ones."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness_lib.system.processes import process
from tests import another_user
from tests.run_to_end import run_to_end

NO_PROCESS = 2**22 + 1


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as child:
        yield child
        child.kill()


@contextmanager
def started(program: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process of a copy of `sleep` that is called `program`."""
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([program, "60"]) as child:
        yield child
        child.kill()


def zombie() -> subprocess.Popen[bytes]:
    child = subprocess.Popen(["true"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout as stream:
        stream.read()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return child


def test_it_is_told_who_started_it_the_same_at_every_look_also_stopped(
    sleeper: subprocess.Popen[bytes],
) -> None:
    started = process.find(sleeper.pid)

    assert started is not None
    assert (started.pid, started.parent, Path(started.name).name) == (sleeper.pid, os.getpid(), "sleep")
    sleeper.send_signal(signal.SIGSTOP)
    assert process.find(sleeper.pid) == started
    assert process.alive(sleeper.pid)


@pytest.mark.skipif(not process.has_proc(), reason="only Linux tells the name of a thread")
def test_a_program_of_node_has_the_name_of_its_file() -> None:
    """Node.js 24 calls its first thread `MainThread`, and the system its process."""
    code = "open('/proc/self/comm', 'w').write('MainThread'); print(flush=True); input()"
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = process.find(child.pid)
        child.kill()

    assert found is not None
    assert found.name == Path(sys.executable).resolve().name


@pytest.mark.skipif(not process.has_proc(), reason="only Linux tells the name of a thread")
def test_it_has_that_name_also_where_an_update_has_replaced_the_file(tmp_path: Path) -> None:
    program = tmp_path / "MainThread"
    with started(program) as child:
        program.unlink()
        named = process.find(child.pid)

    assert named is not None
    assert named.name == "MainThread"


def test_a_name_may_hold_brackets_and_spaces(tmp_path: Path) -> None:
    with started(tmp_path / "a) (b c") as child:
        named = process.find(child.pid)

    assert named is not None
    assert Path(named.name).name == "a) (b c"
    assert named.parent == os.getpid()


def test_a_zombie_is_gone() -> None:
    child = zombie()
    try:
        assert process.find(child.pid) is None
        assert not process.alive(child.pid)
        assert child.pid in process.children(os.getpid())
    finally:
        child.wait()


@pytest.mark.parametrize("pid", [NO_PROCESS, 10**30, 0, -1])
def test_what_no_process_has_is_dead(pid: int) -> None:
    assert not process.alive(pid)


@another_user.needs_root
def test_a_process_we_may_not_signal_is_alive(sleeper: subprocess.Popen[bytes]) -> None:
    assert another_user.told(lambda: process.alive(sleeper.pid))


def test_ancestors_begin_with_our_parent() -> None:
    line = list(process.ancestors())

    assert line[0].pid == os.getppid()
    assert [above.pid for above in line[1:]] == [below.parent for below in line[:-1]]


def test_children_are_found(sleeper: subprocess.Popen[bytes]) -> None:
    assert sleeper.pid in process.children(os.getpid())
    assert process.children(sleeper.pid) == []


def test_who_has_no_child_looks_at_nobody() -> None:
    """On a machine with thousands of processes that takes longer than the command whose orphans are meant."""
    program = (
        "import os, subprocess, sys; from harness_lib.system.processes import process; "
        "looked = []; real = process._all; "
        "process._all = lambda: looked.append(1) or real(); "
        "me = os.getpid(); none = process.children(me); assert not looked; "
        "child = subprocess.Popen([sys.executable, '-c', 'raise SystemExit(3)']); "
        "os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT); "
        "print(none, process.children(me) == [child.pid], child.wait(), process.children(me))"
    )
    assert run_to_end([sys.executable, "-c", program], check=True).stdout == "[] True 3 []\n"


def test_boot_id_is_the_same_in_every_process() -> None:
    program = "from harness_lib.system.processes import process; print(process.boot_id())"
    assert process.boot_id()
    assert run_to_end([sys.executable, "-c", program], check=True).stdout == f"{process.boot_id()}\n"


def test_ps_agrees_with_proc(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc (macOS) we ask ps: that way is tested wherever there is a `ps`."""
    if shutil.which("ps") is None:
        pytest.skip("no ps")
    by_proc = process.find(sleeper.pid)
    assert by_proc is not None
    monkeypatch.setattr(process, "has_proc", lambda: False)

    found = process.find(sleeper.pid)

    assert found is not None
    assert found._replace(started=by_proc.started) == by_proc
    assert found in process.everybody()
    assert sleeper.pid in process.children(os.getpid())
    assert process.find(NO_PROCESS) is None

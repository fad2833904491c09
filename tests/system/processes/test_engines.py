"""A command that a confined thread starts is confined, and our own process stays as it is."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_lib.system.install import launcher
from harness_lib.system.processes import child, engines, sandbox
from harness_lib.system.processes.child import Command
from tests.conftest import CHECKOUT
from tests.run_to_end import run_to_end
from tests.system.git.gitrepo import put

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="rules belong to a thread on Linux only")


@pytest.fixture
def tmp_path(on_disk: Path) -> Path:
    return on_disk


@pytest.fixture
def confined(tmp_path: Path) -> Callable[..., Command]:
    """Return what makes the command of a text, which may write `own`; skip where nono does not start."""
    if why := sandbox.find(os.environ, ["nono"])[1]:
        pytest.skip(why)
    (tmp_path / "own").mkdir()

    def made(text: str, *, closed: bool = False) -> Command:
        grants = engines.Grants(str(tmp_path / "own"), (), (), (), (), str(tmp_path))
        return engines.command("nono", ["sh", "-c", text], grants, os.environ, closed=closed)

    return made


def said(command: Command, cwd: Path, note: Callable[[child.Child], None] = lambda _: None) -> str:
    with child.start_noted(command, note, cwd=cwd, output=child.PIPE) as process:
        return process.communicate(timeout=60)[0].decode()


def own_limits() -> list[str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return [line for line in lines if line.startswith(("NoNewPrivs", "Seccomp", "Cap"))]


def test_the_command_is_confined_and_our_own_process_is_as_free_as_before(
    confined: Callable[..., Command], tmp_path: Path
) -> None:
    before = own_limits()
    text = "touch own/made; touch outside; grep NoNewPrivs /proc/self/status"
    assert "NoNewPrivs:\t1" in said(confined(text), tmp_path)
    assert ((tmp_path / "own/made").exists(), (tmp_path / "outside").exists()) == (True, False)
    assert own_limits() == before
    # What is started outside of the sandbox afterwards is free, too.
    subprocess.run(["touch", "outside"], cwd=tmp_path, check=True)
    free = Command(["grep", "NoNewPrivs", "/proc/self/status"], os.environ)
    assert said(free, tmp_path).strip() in before


def test_no_thread_of_ours_has_the_limits_of_the_command_when_it_begins(
    confined: Callable[..., Command], tmp_path: Path
) -> None:
    if "NoNewPrivs:\t1" in own_limits():
        pytest.skip("our own threads have these limits here")
    text = "grep -l 'NoNewPrivs:.1' /proc/$PPID/task/*/status; echo done"
    assert [said(confined(text), tmp_path) for _ in range(20)] == ["done\n"] * 20


def test_it_begins_only_when_it_is_noted(confined: Callable[..., Command], tmp_path: Path) -> None:
    def noted(process: child.Child) -> None:
        put(tmp_path / "own/noted", str(process.pid))

    assert (
        said(confined("cat own/noted; echo; echo $$"), tmp_path, noted).split()
        == [(tmp_path / "own/noted").read_text()] * 2
    )


def test_a_closed_network_is_closed_for_the_command_alone(
    confined: Callable[..., Command], tmp_path: Path
) -> None:
    connect = (
        "import socket; server = socket.create_server(('127.0.0.1', 0)); "
        "socket.create_connection(server.getsockname()); print('open')"
    )
    text = f'"{sys.executable}" -c "{connect}"'
    assert said(confined(text), tmp_path) == "open\n"
    assert "PermissionError" in said(confined(text, closed=True), tmp_path)
    assert said(Command(["sh", "-c", text], os.environ), tmp_path) == "open\n"


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() != 0, reason="only root has capabilities")
def test_of_root_the_command_has_no_capability(confined: Callable[..., Command], tmp_path: Path) -> None:
    assert said(confined("grep CapEff /proc/self/status"), tmp_path).split() == ["CapEff:", "0" * 16]


def test_what_fails_in_the_thread_is_raised_in_the_caller(
    confined: Callable[..., Command], tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError) as failed:
        said(confined("true"), tmp_path / "missing")
    assert failed.value.filename == tmp_path / "missing"


def test_no_room_for_another_thread_is_an_error_of_the_machine(
    confined: Callable[..., Command], tmp_path: Path
) -> None:
    ready, before = confined("true"), threading.stack_size(1 << 46)
    try:
        with pytest.raises(BlockingIOError, match="can't start new thread"):
            said(ready, tmp_path)
    finally:
        threading.stack_size(before)


def test_what_is_interrupted_before_it_is_noted_never_begins(
    confined: Callable[..., Command], tmp_path: Path
) -> None:
    held: list[child.Child] = []

    def interrupted(process: child.Child) -> None:
        held.append(process)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        said(confined("touch own/made"), tmp_path, interrupted)
    assert held[0].communicate(timeout=60)[0] == b""
    assert not (tmp_path / "own/made").exists()


def test_neither_descriptors_nor_a_warning_are_left(confined: Callable[..., Command], tmp_path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert said(confined("ls /proc/self/fd"), tmp_path).split() == ["0", "1", "2", "3"]
        with pytest.raises(FileNotFoundError):
            said(confined("true"), tmp_path / "missing")
    assert set(Path("/proc/self/fd").iterdir()) == before


# -- a nono that does not work

LOADED = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("_nono_py", {real!r})
real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)
CapabilitySet, AccessMode = real.CapabilitySet, real.AccessMode
"""
FOR_NONE = "def apply(grants): pass"
CHOOSES = """
import os, sys
sys.path += sys.argv[1:3]
from harness_lib.system.processes import sandbox
print(sandbox.required(sys.argv[3], os.environ))
"""


def chosen(mode: str, nono_py: str, place: Path) -> subprocess.CompletedProcess[str]:
    """Return what a process says of the sandbox of `mode` that finds no bubblewrap, and this nono_py."""
    (real,) = Path(launcher.nono(os.environ)).glob("_nono_py*.so")
    put(place / "nono_py/__init__.py", "")
    put(place / "nono_py/_nono_py.py", LOADED.format(real=str(real)) + nono_py)
    words = ("-I", "-S", "-c", CHOOSES, str(CHECKOUT), str(place), mode)
    return run_to_end([sys.executable, *words], cwd=place, env={**os.environ, "PATH": "/none"})


@pytest.mark.usefixtures("confined")
def test_a_nono_that_confines_nothing_is_no_sandbox(tmp_path: Path) -> None:
    assert chosen("auto", FOR_NONE, tmp_path).stdout == "None\n"
    done = chosen("nono", FOR_NONE, tmp_path)
    assert done.returncode == 1
    assert "nono: nono-py is there, but confines nothing" in done.stderr


@pytest.mark.usefixtures("confined")
def test_a_nono_that_cannot_be_loaded_is_no_sandbox(tmp_path: Path) -> None:
    """As from a file system from which no program is started (noexec)."""
    broken = "raise ImportError('failed to map segment from shared object')"
    assert chosen("auto", broken, tmp_path).stdout == "None\n"
    done = chosen("nono", broken, tmp_path)
    assert "nono: nono-py cannot be loaded: failed to map segment from shared object" in done.stderr

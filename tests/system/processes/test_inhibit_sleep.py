"""Keeping the machine awake, by programs of the test's own: they note that they run, and that they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.system.processes import process, runner
from tests.conftest import PROGRAM
from tests.system.git.gitrepo import put
from tests.waiting import until

INHIBIT = """#!/bin/sh
echo "$@" > {place}/asked
for last; do :; done
echo $$ > {place}/pid
exec "$last"
"""
CAFFEINATE = """{python}import os, sys, time
open("{place}/asked", "w").write(" ".join(sys.argv[1:]))
open("{place}/.pid", "w").write(str(os.getpid()))
os.rename("{place}/.pid", "{place}/pid")
while True:
    try:
        os.kill(int(sys.argv[-1]), 0)
    except ProcessLookupError:
        break
    time.sleep(0.02)
"""
FAILS = "#!/bin/sh\nexit 1\n"
PROGRAMS = [("linux", "systemd-inhibit", INHIBIT), ("darwin", "caffeinate", CAFFEINATE)]


def install(place: Path, name: str, text: str) -> dict[str, str]:
    """Put a program on a PATH and return the environment that has it."""
    file = place / "bin" / name
    put(file, text.format(place=place, python=PROGRAM), executable=True)
    return {**os.environ, "PATH": f"{file.parent}:{os.environ['PATH']}"}


def pid_of(place: Path) -> int:
    file = place / "pid"
    until("what is written there", lambda: file.exists() and file.read_text().strip())
    return int(file.read_text())


@pytest.mark.parametrize(("platform", "name", "text"), PROGRAMS, ids=lambda each: each[:15])
def test_it_runs_meanwhile_and_not_after(tmp_path: Path, platform: str, name: str, text: str) -> None:
    env = install(tmp_path, name, text)
    with runner.keeping_awake(env, "agents are at work", platform=platform):
        pid = pid_of(tmp_path)
        assert process.alive(pid)
    assert not process.alive(pid)
    asked = (tmp_path / "asked").read_text().strip()
    if platform == "darwin":
        assert asked == f"-i -w {os.getpid()}"
    else:
        assert asked == "--what=idle:sleep --who=harness --why=agents are at work --mode=block cat"


@pytest.mark.parametrize(("platform", "name", "text"), PROGRAMS, ids=lambda each: each[:15])
def test_it_ends_with_us_when_we_are_killed(tmp_path: Path, platform: str, name: str, text: str) -> None:
    env = install(tmp_path, name, text)
    code = (
        "import os, time; from harness_lib.system.processes import runner\n"
        f"with runner.keeping_awake(os.environ, 'why', platform={platform!r}): time.sleep(600)"
    )
    us = subprocess.Popen([sys.executable, "-c", code], env=env)
    pid = pid_of(tmp_path)
    us.send_signal(signal.SIGKILL)
    us.wait()
    until("its end", lambda: not process.alive(pid))


@pytest.mark.parametrize("text", ["", FAILS, "#!/no/such/interpreter\n"])
@pytest.mark.parametrize(("platform", "name"), [row[:2] for row in PROGRAMS])
def test_without_one_that_works_nothing_happens(tmp_path: Path, platform: str, name: str, text: str) -> None:
    env = install(tmp_path, name, text) if text else {"PATH": str(tmp_path)}
    with runner.keeping_awake(env, "why", platform=platform):
        pass

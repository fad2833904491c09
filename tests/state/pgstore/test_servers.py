"""A standby that is promoted without the last second, and a pooler in between."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_lib.errors import AwayError, EnvSetupError
from harness_lib.state.pgstore import checking, setup
from harness_lib.state.pgstore.store import PgStore
from harness_lib.system import postgres_server
from harness_lib.system.postgres_server import Server
from tests import pooler
from tests.state.pgstore.beside import claimed, finished
from tests.state.pgstore.machines import Shared, add

pytestmark = pytest.mark.release


@pytest.fixture
def server() -> Iterator[Server]:
    if postgres_server.found() is None:
        pytest.skip("there is no PostgreSQL here")
    with postgres_server.running() as server:
        setup.upgrade(server.url)
        yield server


def place_of(server: Server) -> Path:
    return Path(server.url.partition("host=")[2])


def start(server: Server) -> None:
    place = f"-c listen_addresses='' -c unix_socket_directories={place_of(server)}"
    # A standby that allows fewer connections than its primary does not start.
    options = f"{place} -c fsync=off -c max_connections={postgres_server.MOST}"
    server.call("pg_ctl", "-w", "-l", str(place_of(server) / "log"), "-o", options, "start")


@pytest.fixture
def shared(server: Server, tmp_path: Path) -> Shared:
    """Return a list on that server."""
    made = Shared(tmp_path.resolve())
    made.server = server.url
    return made


def test_a_standby_that_lacks_the_last_second_is_noticed_by_whoever_has_seen_it(
    server: Server, shared: Shared
) -> None:
    data, standby = place_of(server) / "data", place_of(server) / "standby"
    store, other = shared.with_tasks(), shared.machine("second")
    server.call("pg_ctl", "-w", "-m", "fast", "stop")
    subprocess.run(["cp", "-a", data, standby], check=True)
    start(server)
    lost = claimed(store, "one")
    server.call("pg_ctl", "-w", "-m", "immediate", "stop")
    shutil.rmtree(data)
    standby.rename(data)
    (data / "standby.signal").touch()
    start(server)

    with pytest.raises(AwayError, match="read-only"):
        add(PgStore(other.root, other.link, timeout=0.5), "task-003")
    shared.sql("select pg_promote()")
    for number in range(3, 9):
        add(other, f"task-{number:03}")
    assert "timeline 2" in dict(checking.facts(other))["server"]
    with pytest.raises(EnvSetupError, match="was set back"):
        finished(store, lost.id)
    assert checking.check(store, repair=True) == []
    assert claimed(other, "two").fence > lost.fence


def test_a_standby_that_lacks_nothing_is_gone_on_with(server: Server, shared: Shared, tmp_path: Path) -> None:
    store = shared.with_tasks()
    # Of two servers the one that takes changes is found.
    nobody = f"postgresql://harness@/postgres?host={tmp_path},{place_of(server)}"
    moved = PgStore(store.root, store.link._replace(url=f"{nobody}&target_session_attrs=read-write"))
    server.call("pg_ctl", "-w", "-m", "fast", "stop")
    (place_of(server) / "data/standby.signal").touch()
    start(server)
    shared.sql("select pg_promote()")
    for each in (store, moved):
        claimed(each, each.link.url)
    assert len(store.ask().in_progress()) == 2


def test_a_pooler_that_gives_each_transaction_another_connection(server: Server, shared: Shared) -> None:
    """Two machines share one connection of the pooler, and each claims, beats and finishes."""
    with pooler.before(server.url, size=1) as address:
        shared.with_tasks(8)
        shared.server = address
        one, two = shared.machine("one"), shared.machine("two")
        for store in (one, two, one, two):
            store.link = store.link._replace(url=shared.server)
            finished(store, claimed(store, store.root.path.name).id)
        counts = two.ask().counts()
        assert (counts.completed, counts.pending) == (4, 4)

"""A world of machines in network namespaces, each with a disk and a clock of its own.

The database and the remote are in a namespace of their own: `git daemon` and a PostgreSQL that is restarted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from harness_lib.state.mirrored import Link
from harness_lib.state.pgstore import setup
from harness_lib.state.pgstore.store import PgStore
from harness_lib.system import postgres_server
from harness_lib.system.place.roots import Root
from harness_lib.system.postgres_server import Server
from harness_lib.task import Task
from tests.machines.network import NET, SERVER, Network
from tests.machines.place import Place
from tests.machines.world import World
from tests.runs.workshop import descendants, signal_all
from tests.system.git.gitrepo import put, sh

# Writes down, outside of everything, for which content it has passed.
CHECK = """\
#!/bin/sh
grep -qx "$2" "$1" || exit 1
index=$(mktemp -u)
GIT_INDEX_FILE=$index git add -A && tree=$(GIT_INDEX_FILE=$index git write-tree) || exit 1
rm -f "$index"
echo "$tree $2" >>{checked} || exit 1
"""
# Works for a while, a line at a time; what it finds and what it writes is written down outside.
SLOW = """\
#!/bin/sh
me=$HARNESS_MACHINE/$$
echo "$2 $me found $(wc -l <"$1" 2>/dev/null || echo 0) $(date +%s.%N)" >>{lines}
for n in $(seq 1 "$3"); do
  grep -qx "line $n" "$1" 2>/dev/null && continue
  sleep 1
  echo "line $n" >>"$1" || exit 1
  echo "$2 $me wrote $n $(date +%s.%N)" >>{lines}
done
echo "$2" >>"$1"
"""
# Who held what: the table is never emptied.
HELD = """
create table public.held (task text, fence bigint, worker text, unique (task, fence, worker));
create function public.note_held() returns trigger language plpgsql as $$ begin
  insert into public.held values (new.id, new.fence, new.worker) on conflict do nothing; return null; end $$;
create trigger held after insert or update on harness.task
  for each row when (new.status = 'in_progress') execute function public.note_held();
"""


@dataclass
class SmallWorld(World):
    """Machines in namespaces; the database and the remote are in one of their own."""

    network: Network = field(default_factory=Network)
    stack: ExitStack = field(default_factory=ExitStack)
    server: Server | None = None
    starting: tuple[str, ...] = ()
    daemon: subprocess.Popen[bytes] | None = None
    _has_begun: bool = False
    began: float = field(default_factory=time.monotonic)
    story: str = ""
    lease: float = 30

    @classmethod
    def make(cls, place: Path) -> SmallWorld:
        network = Network()
        stack = ExitStack()
        stack.callback(network.close)
        server = stack.enter_context(postgres_server.running())
        directory = Path(server.url.partition("host=")[2])
        with (directory / "data/pg_hba.conf").open("a") as rights:
            rights.write(f"host all all {NET} trust\n")
        world = cls(
            place,
            f"postgresql://harness@{SERVER}/postgres?sslmode=disable",
            f"shop-{os.urandom(4).hex()}",
            network=network,
            stack=stack,
            server=server,
        )
        world.plant()
        sh(world.remote, "config", "core.logAllRefUpdates", "true")
        sh(world.remote, "config", "transfer.hideRefs", "refs/none")
        with network.inside("server"):
            # A worker of a run has three or four connections.
            options = f"-c listen_addresses={SERVER} -c unix_socket_directories={directory}"
            options += " -c max_connections=300 -c fsync=off"
            world.starting = ("-l", str(directory / "log"), "-o", options)
            server.call("pg_ctl", "-w", "-m", "immediate", *world.starting, "restart")
        setup.upgrade(server.url)
        with psycopg.connect(server.url, autocommit=True) as conn:
            conn.execute(HELD.encode())
        world.serve_git()
        for name, text in (("check", CHECK), ("slow", SLOW)):
            put(place / name, text.format(checked=place / "checked", lines=place / "lines"))
        (place / "checked").touch()
        (place / "lines").touch()
        return world

    def plant(self) -> None:
        (self.place / "git").mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(self.place / "git")], check=True
        )
        self.stack.callback(subprocess.run, ["umount", "-l", str(self.place / "git")], check=False)
        super().plant()

    @property
    def remote(self) -> Path:
        return self.place / "git/remote.git"

    def serve_git(self) -> None:
        command = ["git", "daemon", "--reuseaddr", f"--listen={SERVER}", "--export-all"]
        command += ["--enable=receive-pack", f"--base-path={self.place / 'git'}", str(self.place / "git")]
        with self.network.inside("server"):
            self.daemon = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def machine(self, name: str, *argv: str, lease: float = 30, ahead: int = 0) -> Place:
        self.network.plug(name)
        top = self.place / name / "project"
        made = Place(
            top, self.place / name / "home", name=name, lease=lease, network=self.network, ahead=ahead
        )
        made.mount()
        if ahead:
            made.set_clock()
        self.stack.callback(subprocess.run, ["umount", "-l", str(self.place / name)], check=False)
        sh(self.place, "clone", "-q", str(self.remote), str(top))
        sh(top, "remote", "set-url", "origin", f"git://{SERVER}/remote.git")
        if self.machines:
            made.ok("store", "join", self.url, "--list", self.name, *argv)
        else:
            made.ok("init", "--mode", "concurrent")
            made.ok("store", "move", self.url, "--list", self.name, *argv)
        self.machines.append(made)
        return made

    @property
    def places(self) -> list[Place]:
        return [each for each in self.machines if isinstance(each, Place)]

    def tell(self, what: str) -> None:
        """Note what happens, by seconds since the beginning; a failing test shows it, and `story`."""
        self.story += f"{time.monotonic() - self.began:6.1f} {what}\n"
        put(self.place / "story", self.story)

    # -- the server -----------------------------------------------------------------------------------------

    def pg(self, *argv: str) -> None:
        assert self.server is not None
        with self.network.inside("server"):
            self.server.call("pg_ctl", "-w", *argv)

    def postgres_pids(self) -> list[int]:
        assert self.server is not None
        directory = Path(self.server.url.partition("host=")[2])
        head = int((directory / "data/postmaster.pid").read_text().split()[0])
        return [head, *descendants(head)]

    def restart_database(self) -> None:
        self.pg("-m", "immediate", *self.starting, "restart")

    def stop_git(self) -> None:
        assert self.daemon is not None
        signal_all((self.daemon.pid, *descendants(self.daemon.pid)), signal.SIGKILL)
        self.daemon.wait()

    @property
    def own_url(self) -> str:
        """The address of the server for whoever is on it."""
        assert self.server is not None
        return self.server.url

    def _counts(self) -> tuple[int, int]:
        """Return how many tasks there are that are not pending, and that are not done; 0, 1 if it is away."""
        query = "select count(*) filter (where status <> 'pending'), count(*) filter (where not done)"
        with suppress(psycopg.OperationalError), psycopg.connect(self.own_url, connect_timeout=2) as conn:
            begun, left = conn.execute(f"{query} from harness.task").fetchone() or (0, 1)
            return begun, left
        return 0, 1

    def all_done(self) -> bool:
        return self._counts()[1] == 0

    def has_begun(self) -> bool:
        """Return whether a task was ever taken; it is asked until it is so."""
        self._has_begun = self._has_begun or self._counts()[0] > 0
        return self._has_begun

    def tasks(self) -> tuple[Task, ...]:
        where = self.place / "looks"
        where.mkdir(exist_ok=True)
        return PgStore(Root(where), Link(self.own_url, self.name)).look().search()

    def close(self) -> None:
        for machine in self.places:
            machine.signal(signal.SIGCONT)
            machine.die()
            machine.close()
        self.stop_git()
        self.stack.close()

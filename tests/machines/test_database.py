"""Each machine decides for itself what it runs, and nobody but harness gets at the database."""

from __future__ import annotations

import gc
import json
import shlex
import subprocess
import sys
from collections import Counter

import psycopg
import pytest

from harness_lib import __version__
from harness_lib.attempts import check, merge_queue, remote, turn
from harness_lib.attempts.worker_worktrees import Place
from harness_lib.errors import AwayError
from harness_lib.runs.options import Options, WorkerConfig
from harness_lib.runs.scheduler import Scheduler
from harness_lib.runs.worker import Worker
from harness_lib.runs.worker_main import Merger
from harness_lib.runs.worker_pool import Orphans, WorkerPool
from harness_lib.state.pgstore import connecting
from harness_lib.state.pgstore.moments import Looking
from harness_lib.task import Task
from tests import postgres
from tests.cli.loading import executed
from tests.conftest import CHECKOUT
from tests.machines.world import MAIN, Machine, World, at
from tests.run_to_end import run_to_end
from tests.runs.workshop import HURRIED
from tests.state.pgstore.line import Line
from tests.system.git.gitrepo import put, sh
from tests.verbs.project import Time
from tests.waiting import until

SECRET = "correct-horse-battery"
WAITS = "is read-only now, so nothing was changed. The run waits up to half an hour."
WAITS_ONCE = "The run waits up to half an hour."
AGENT = "touch {0}/works ;; write done done ;; wait {0}/go ;; touch {0}/gone"


def agent_works(world: World, one: Machine) -> tuple[str, subprocess.Popen[str]]:
    """Start a run whose agent works until it is told to end; return its task, and the run."""
    do = f"sh echo x >> {world.place}/begun ;; {AGENT.format(world.place)}"
    task = one.add("Work", "test -f done", do=do)
    run = one.start(**HURRIED)
    until("the agent", (world.place / "works").exists)
    return task, run


def agent_ends(world: World, one: Machine, says: str) -> None:
    """Let the agent end, and its run say that it waits."""
    (world.place / "go").touch()
    until("the end of the agent", (world.place / "gone").exists)
    until("the run waits", lambda: says in one.printed or one.runs[-1].poll() is not None)


def test_a_database_that_is_away_as_an_agent_ends_costs_nothing(world: World, one: Machine) -> None:
    line = moved_to_a_line(one)
    task, run = agent_works(world, one)
    line.cut()
    agent_ends(world, one, WAITS_ONCE)
    line.mend()
    assert run.wait() == 0, one.printed
    assert (world.place / "begun").read_text() == "x\n"
    assert one.printed.count(WAITS_ONCE) == 1
    world.each_once(task)
    line.close()


def test_a_run_that_begins_while_something_is_away_waits_and_says_so_once(world: World, one: Machine) -> None:
    """First the remote is away, then the database."""
    task = one.file_task("file")
    away = world.remote.rename(world.remote.with_name("away"))
    run = one.start(**HURRIED)
    until("the run waits", lambda: WAITS_ONCE in one.printed or run.poll() is not None)
    away.rename(world.remote)
    assert run.wait() == 0, one.printed
    assert one.printed.count(WAITS_ONCE) == 1
    world.each_once(task)

    line = moved_to_a_line(one)
    second = one.file_task("second")
    line.cut()
    run = one.start(**HURRIED)
    until("the run waits", lambda: one.printed.count(WAITS_ONCE) == 2 or run.poll() is not None)
    line.mend()
    assert run.wait() == 0, one.printed
    assert one.printed.count(WAITS_ONCE) == 2
    world.each_once(task, second)
    line.close()


def test_a_run_waits_for_a_failover(world: World) -> None:
    """For as long as for a server that is away, and says so once."""
    with postgres.apart(world.url) as world.url:
        one = world.machine("one")
        task, run = agent_works(world, one)
        postgres.set_read_only(world.url, on=True)
        agent_ends(world, one, WAITS)
        postgres.set_read_only(world.url, on=False)
        assert run.wait() == 0, one.printed
        assert one.printed.count(WAITS) == 1
        world.each_once(task)


@pytest.fixture
def at_work(world: World) -> tuple[Machine, Task]:
    """Return a machine, and the task that an agent in a chat has claimed there."""
    one = world.machine("one")
    one.add("Work", "test -f done")
    one.works()
    return one, one.context().store.ask().search()[0]


class Hasty(Time):
    def sleep(self, _seconds: float) -> None:
        self.pass_(seconds=1)

    def monotonic(self) -> float:
        return self.now().timestamp()


def test_a_chat_takes_its_turn_once_the_database_is_back(at_work: tuple[Machine, Task]) -> None:
    """It may have gone while the check ran."""
    one, task = at_work
    line = moved_to_a_line(one)

    class Mending(Hasty):
        def sleep(self, seconds: float) -> None:
            line.mend()
            super().sleep(seconds)

    ctx = one.context(task.claimed_by or "")
    ctx.clock, ctx.target = Mending(), None
    line.cut()
    with turn.taken(ctx, remote.of(ctx, task), lambda: None) as mine:
        assert mine.begin() == one.sh("rev-parse", "HEAD")
    line.close()


def test_a_chat_waits_for_its_turn_only_while_the_database_is_there(at_work: tuple[Machine, Task]) -> None:
    """Its claim, which it renews meanwhile, does not say that the database is away."""
    one, task = at_work
    line = moved_to_a_line(one)
    ctx = one.context(task.claimed_by or "")
    ctx.clock, ctx.target = Hasty(), None
    shared, there, asked = ctx.store.shared, remote.of(ctx, task), Counter[str]()
    assert shared is not None

    def keep_claim() -> None:
        asked["renewed"] += 1
        assert asked["renewed"] < 3, "it waits for good"
        check.renew(ctx, task)

    line.cut()
    with pytest.raises(AwayError):
        turn.Turn(ctx, there, shared, keep_claim).begin()
    line.mend()
    line.close()


def test_a_database_that_is_away_ends_no_work(at_work: tuple[Machine, Task]) -> None:
    """An agent, or a check, goes on when its claim cannot be renewed; the next renewal tries again."""
    one, task = at_work
    line, one.lease = moved_to_a_line(one), 300
    ctx = one.context(task.claimed_by or "")
    ctx.clock = Hasty()
    line.cut()
    check.renew(ctx, task)
    line.mend()
    check.renew(ctx, task)
    line.close()
    assert one.context().store.ask().search()[0].lease_expires_at != task.lease_expires_at


def moved_to_a_line(machine: Machine) -> Line:
    """Let the machine reach its database by a line that can be cut; return it."""
    link = machine.top / ".harness/store.json"
    document = json.loads(link.read_text())
    line = Line(document["url"])
    put(link, json.dumps({**document, "url": line.url}))
    return line


def test_an_address_of_no_database_says_what_to_look_at(world: World) -> None:
    said = world.machine("one")("store", "init", world.url.replace("/postgres?", "/nowhere?"))
    assert said.code == 7
    assert "does not exist" in said.err
    assert "check the address, and that the database exists" in " ".join(said.err.split())


@pytest.mark.parametrize(
    ("says", "hint"),
    [
        ("SSL error: certificate verify failed", "a certificate that is valid today"),
        ("server does not support SSL, but SSL was required", "add ?sslmode=disable to the address"),
        ("fe_sendauth: no password supplied", "See that ~/.pgpass has the password"),
        ('FATAL: no pg_hba.conf entry for host "10.0.0.1"', "ask whoever runs the server"),
        ('FATAL: role "me" is not permitted to log in', "ask whoever runs the server"),
        ('FATAL: role "me" does not exist', "ask whoever runs the server"),
        ("FATAL: no such user", "ask whoever runs the server"),
        ("FATAL: sorry, too many clients already", "see whether it is back"),
        ("transaction blocks not allowed in statement pooling mode", "pool_mode = transaction"),
        ("could not extend file: No space left on device", "The disk of the server is full"),
    ],
)
def test_the_hint_fits_what_the_server_says(says: str, hint: str) -> None:
    with pytest.raises(AwayError) as error, connecting.explained("postgresql://me@db.example.org/agents"):
        raise psycopg.OperationalError(says)
    assert hint in (error.value.hint or "")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://me@db.example.org/agents", "agents at db.example.org"),
        ("postgresql:///agents?hostaddr=10.0.0.1", "agents at 10.0.0.1"),
        ("postgresql://?service=team", 'database at the service "team"'),
        ("dbname=agents", "agents at db.of.the.environment"),
        ("postgresql://", "lists at db.of.the.environment"),
    ],
)
def test_a_database_is_named_as_it_is_found(monkeypatch: pytest.MonkeyPatch, url: str, name: str) -> None:
    if "environment" in name:
        monkeypatch.setenv("PGHOST", "db.of.the.environment")
    monkeypatch.setenv("PGDATABASE", "" if "service" in url else "lists")
    connecting.shown.cache_clear()
    assert connecting.shown(url) == name
    connecting.shown.cache_clear()


def test_a_lost_connection_is_told_by_us_alone() -> None:
    """The driver has words of its own for it, which would stand between our lines."""
    code = (
        "import harness_lib.state.pgstore.connecting, logging; logging.getLogger('psycopg').warning('lost')"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, check=True)
    assert said.stderr == b""


def test_an_agent_of_a_run_reads_the_files_and_loads_no_driver(one: Machine) -> None:
    """It types verbs all day; the driver is half the time of one."""
    task = one.add("Work", "true")
    agent = {**one.env, "HARNESS_SUPERVISED": "1"}
    for argv in (("status",), ("status", "--machines"), ("show", task), ("log",)):
        assert "psycopg" not in executed(one.top, *argv, code=0, **agent), argv
    said = run_to_end([sys.executable, "-m", "harness_lib", "show", task], cwd=one.top, env=agent, check=True)
    assert "Work" in said.stdout
    # The driver loads openssl only where it is needed.
    loaded = executed(one.top, "status", code=0, **one.env)
    assert "psycopg" in loaded
    assert {"ssl", "_ssl", "asyncio.sslproto", "tokenize", "uuid"}.isdisjoint(loaded)


def test_an_agent_gets_no_connection(world: World, one: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in its environment nor by typing a verb; what it reports the run records."""
    # Only who has the variable finds the database.
    host = world.url.partition("host=")[2]
    services = put(world.place / "services", f"[agents]\nhost={host}\nuser=harness\ndbname=postgres\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("PGPASSWORD", SECRET)
    link = one.top / ".harness/store.json"
    put(link, json.dumps({**json.loads(link.read_text()), "url": "service=agents"}))
    note = f"{shlex.quote(sys.executable)} -m harness_lib note $HARNESS_TASK_ID 'from the agent'"
    do = f"sh env > seen; {note} ;; write done done"
    task = one.add("Work", "env >> $AGENT_MEMORY/env; test -f done", do=do)
    one.ends(0)
    assert one.statuses_now[task] == "completed"
    memory = world.place / "memory/env"
    assert SECRET not in memory.read_text()
    assert "PGSERVICEFILE" not in memory.read_text()
    (done,) = one.asks().tasks([task])
    assert ["from the agent" in each for each in done.notes] == [True]
    seen = sh(world.remote, "show", "main:seen")
    assert "HARNESS_SUPERVISED" in seen
    assert "PGPASSWORD" not in seen
    assert "PGSERVICEFILE" not in seen


def test_no_password_gets_into_a_file_of_the_project(one: Machine) -> None:
    refused = one("store", "move", "postgresql://me:secret@db.example.org/x")
    assert refused.code == 2
    address = f"postgresql://me:{SECRET}@db.example.org/agents"
    said = one("store", "init", address)
    assert said.code == 2
    assert "~/.pgpass" in said.err
    assert SECRET not in said.text
    for words in (
        ("move", address),
        ("join", address),
        ("move", f"postgresql://me:%{SECRET}@x"),
        ("init", "x", address),
    ):
        for env in ({}, {"CLAUDECODE": "1"}):
            said = one("store", *words, **env)
            assert said.code == 2
            assert SECRET not in said.text
    files = [path for path in one.top.rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_no_look_is_kept_while_an_agent_works(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a transaction, and the connection of a pooler, until the server ends it."""
    one = world.machine("one")
    one.file_task("a")
    one.ok("start", HARNESS_WORKER_ID="run-1")
    orders = WorkerConfig(worker="run-1#1", number=1, place="", target=MAIN, agent_command="true")
    worker = Worker(one.context(orders.worker), orders, lambda _event: None)
    worker.allowed.release()
    kept: list[object] = []

    monkeypatch.setattr(Worker, "_take", lambda *_: kept.extend(looks(world)))
    assert not worker._one()
    assert kept == []


def looks(world: World) -> list[Looking]:
    """Return the looks at the list that this process keeps."""
    found = (each for each in gc.get_objects() if isinstance(each, Looking))
    return [each for each in found if each._moments.link.name == world.name]


def test_no_look_is_kept_while_work_waits_for_its_merge(
    world: World, one: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That may take as long as another machine has the turn."""
    task = one.file_task("a")
    one.ok("start", HARNESS_WORKER_ID="run-1")
    orders = WorkerConfig(worker="run-1#0", number=0, place="", target=MAIN, agent_command="true")
    # Its process ends with it, and this one goes on without its claims.
    monkeypatch.setattr(check, "kept_along", [])
    merger = Merger(one.context(orders.worker), orders, lambda _event: None)
    merger._is_prepared = True
    kept: list[object] = []

    monkeypatch.setattr(merge_queue, "queued", lambda questions, _: [questions.task(task)])
    monkeypatch.setattr(Merger, "_merge", lambda *_: kept.extend(looks(world)))
    monkeypatch.setattr(Merger, "_keep_claims", lambda _: None)
    assert not merger._one()
    assert kept == []


def test_no_look_is_kept_during_the_final_check(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one = world.machine("one")
    ctx = at(one)
    merge_queue.refresh(ctx)
    run = Scheduler(ctx, Options(agent_command="true"), lambda *_: None)
    run._pool, run._place = WorkerPool(ctx, 0), Place(one.home)
    kept: list[object] = []

    def check(*_: object) -> bool:
        kept.extend(looks(world))
        return True

    monkeypatch.setattr(Scheduler, "_goes_on", check)
    monkeypatch.setattr(Orphans, "of_machines", lambda _: None)
    run._decide()
    assert kept == []


def test_without_its_mirror_a_project_is_found_by_its_link(one: Machine, two: Machine) -> None:
    task = one.add("Work", "test -f done")
    for argv in (("status",), ("start",)):
        (two.top / "harness-tasks.json").unlink(missing_ok=True)
        assert two(*argv).code == 0
        assert task in two.read("harness-tasks.json")


def test_the_way_there_and_back(world: World, one: Machine) -> None:
    one.add("Work", "test -f done")
    two = world.machine("two")
    status = two.ok("store", "status")["facts"]
    assert status["list"].startswith(f"{world.name} in ")
    assert status["in doubt"] == "nothing"
    assert "the primary, timeline 1, waits for no standby" in status["server"]
    assert status["files here"] == "follow all events"
    assert status["wait for their merge"] == "nothing"
    assert status["refs in the remote"].isdecimal()
    assert status["slowest statements"].startswith("not known: ")
    ours = [name for name, text in status.items() if text.endswith(f"with harness {__version__}")]
    assert ours == ["machine two", "machine one"]
    assert two.ok("store", "check")["message"].startswith("The list in the database is valid")
    assert "another machine has joined: two" in one("log").out
    task = one.works()
    one.ok("stop")
    assert f"{task} is in progress on one." in two("store", "move", "--to-file").err
    for verb in ("start", "release", "stop"):
        one.ok(verb)
    back = two.ok("store", "move", "--to-file")
    assert "1 task moved back to" in back["message"]
    assert two("store", "status").code == 2
    gone = one("status")
    assert gone.code == 7
    for words in (
        "There is no list called",
        "Another machine has moved it to its file",
        "move it back there",
    ):
        assert words in " ".join(gone.err.split())
    with psycopg.connect(world.url) as conn:
        names = conn.execute("select name from harness.list where name like %s", (f"{world.name}%",))
        assert ["moved to a file" in name for (name,) in names.fetchall()] == [True]
    two.ok("store", "move", world.url, "--list", world.name)
    for _ in range(2):
        one.ok("store", "join", world.url, "--list", world.name)
        one.ok("status")
        assert one.log_text.count(" INIT ") == 1
    (one.top / ".harness/store.json").unlink()
    assert "the link to that is gone" in one("store", "status").text

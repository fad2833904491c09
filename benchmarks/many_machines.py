"""Measure a list in PostgreSQL: pairs of claim and finish, by the length of the list and by the clients.

`python benchmarks/many_machines.py` starts a server of its own, as the tests do; HARNESS_TEST_DATABASE names
another one. Each client is a process with a machine of its own. What counts are the ratios within one run.
    --tasks 1000 100000   lengths of the list (default)     --clients 8     --seconds 5
    --table               print docs/many-machines.md's table of all of them, too, as
                          --tasks 100 5000 100000 1000000 --clients 8 32 128 does it
The files of a machine, which follow each of its changes, are left out but in the first lines: those compare
a change in this process, and verbs as they are typed, with the same on a list in a file. What counts of a
verb is its use of the processor, with that of the processes of git that it starts: other work makes it wait.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psycopg

from benchmarks import projects
from harness_lib.rules import transitions
from harness_lib.state.api import Store
from harness_lib.state.mirrored import Link
from harness_lib.state.pgstore.store import PgStore
from harness_lib.state.store import Store as FileStore
from harness_lib.system.place.roots import Root
from harness_lib.task import SessionConfig, State, Task
from tests import postgres

LEASE = 600
ROUNDS = 9
IGNORED = "harness-tasks.json*\nharness-progress.txt\n.harness*\n"
# In this order each finds something to do; the first and the last ones keep the rounds apart.
VERBS = (
    ("start",),
    ("claim",),
    ("checkpoint", "1/2", "half of it"),
    ("status",),
    ("add", "One more", "--validate", "true"),
    ("finish", "--already-done"),
    ("stop",),
)
# The seconds of claims, and of all together.
Answers: TypeAlias = "multiprocessing.Queue[tuple[list[float], float]]"


def machine(directory: Path, link: Link) -> PgStore:
    """Return the store of a machine; without a link beside it, its files do not follow the list."""
    directory.mkdir(exist_ok=True)
    return PgStore(Root(directory.resolve()), link)


def pair(store: Store, worker: str) -> float | None:
    """Claim the next task and finish it; return the seconds that the claim took, None if there is none."""
    began = time.perf_counter()
    with store.transaction("tasks") as tx:
        task = tx.next_ready()
        if task is None:
            return None
        claimed = transitions.claim(
            task, worker=worker, now=tx.now, base=None, gate=None, worktree=None, lease_seconds=LEASE
        )
        tx.replace(claimed)
        tx.log("Starting", worker, session=0, task=task.id)
    took = time.perf_counter() - began
    with store.transaction("tasks") as tx:
        current = tx.task(task.id)
        assert current is not None
        begun = transitions.begin_commit(current, now=tx.now, head=None, commit="a" * 40)
        tx.replace(transitions.complete(begun, now=tx.now))
        tx.log("Completed", worker, session=0, task=task.id)
    return took


def client(directory: Path, link: Link, seconds: float, answers: Answers) -> None:
    """Claim and finish for so many seconds; answer with the seconds of each claim and of all together."""
    os.environ["HARNESS_MACHINE"] = directory.name
    store, took = machine(directory, link), []
    store.ask()
    began = time.monotonic()
    while time.monotonic() < began + seconds and (one := pair(store, directory.name)) is not None:
        took.append(one)
    answers.put((took, time.monotonic() - began))


def long_list(place: Path, url: str, count: int) -> Link:
    """Make a list with `count` tasks, all of them copies of one: to write each takes a millisecond."""
    place.mkdir()
    store = PgStore(Root(place), Link(url, f"bench-{count}-{os.urandom(3).hex()}"))
    settings = SessionConfig("concurrent")
    first = Task("task-0000001", "Task", depends_on=())
    link = store.create(State(session_config=settings, tasks=(first,), sessions=()))
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(
            "insert into harness.task (list, id, place, sort_key, brief, validation, on_failure, document, "
            "fence, status, open) select list, name, n, convert_to(name, 'utf8'), replace(brief, id, name), "
            "validation, on_failure, document, 0, status, open "
            "from harness.task, generate_series(2, %s) as n, "
            "lateral (select 'task-' || lpad(n::text, 7, '0')) as names (name) "
            "where list = (select key from harness.list where uuid = %s)",
            (count, link.uuid),
        )
    return link


def rate(place: Path, link: Link, clients: int, seconds: float) -> tuple[float, list[float]]:
    """Return the pairs a second of so many clients at once, and the seconds of their claims."""
    answers: Answers = multiprocessing.Queue()
    started = [
        multiprocessing.Process(target=client, args=(place / f"client-{n}", link, seconds, answers))
        for n in range(clients)
    ]
    for process in started:
        process.start()
    found = [answers.get(timeout=seconds + 60) for _ in started]
    for process in started:
        process.join()
    claims = [took for each, _ in found for took in each]
    return len(claims) / max(elapsed for _, elapsed in found), claims


def one_change(store: Store, times: int = 100) -> float:
    """Return the median seconds of a change of one task."""
    took = []
    for number in range(times):
        began = time.perf_counter()
        with store.transaction("tasks") as tx:
            task = tx.task("task-001")
            assert task is not None
            tx.replace(task._replace(title=f"Title {number}"))
            tx.log("WARN", "changed", session=0)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def print_table(tasks: list[int], clients: list[int], cells: dict[tuple[int, int], str]) -> None:
    """Print a table in Markdown: pairs a second, and milliseconds of a claim, median and 99th of 100."""
    print("| clients | " + " | ".join(f"{count:,} tasks" for count in tasks) + " |")
    print("|---|" + "---|" * len(tasks))
    for number in clients:
        print(f"| {number} | " + " | ".join(cells[number, count] for count in tasks) + " |")


def change_compared(place: Path, url: str) -> str:
    """Compare one change of a list of 100 tasks in the database with the same in a file."""
    tasks = tuple(Task(f"task-{n:03}", f"Task {n}") for n in range(1, 101))
    (place / "file").mkdir()
    (place / "database").mkdir()
    file = FileStore(Root(place / "file"))
    file.create(State(tasks=tasks, sessions=()))
    there = PgStore(Root(place / "database"), Link(url, f"bench-{os.urandom(3).hex()}"))
    link = there.create(State(tasks=tasks, sessions=()))
    there = machine(place / "database", link)
    link.save(there.root)
    in_file, in_database = one_change(file), one_change(there)
    return (
        f"one change, 100 tasks: {1000 * in_database:.1f} ms in the database, {1000 * in_file:.1f} ms in the "
        f"file: {in_database / in_file:.1f} times"
    )


def typed(top: Path, *argv: str) -> float:
    """Type `harness ARGV` in `top`; return the seconds of the processor that it took, with its children."""
    command = [sys.executable, "-I", "-S", str(projects.CHECKOUT / "bin" / "harness"), *argv]
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=top, stdin=nowhere, stdout=nowhere, stderr=nowhere) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, argv
    return used.ru_utime + used.ru_stime


def cloned(place: Path) -> Path:
    """Make a remote and a clone of it in `place`, whose list has 100 tasks; return the clone."""
    top, seed = place / "project", place / "seed"
    seed.mkdir(parents=True)
    (seed / ".gitignore").write_text(IGNORED)
    for command in ("init -q -b main", "add -A", "commit -q -m Begin", "clone -q --bare . ../remote"):
        subprocess.run(["git", *command.split()], cwd=seed, check=True)
    subprocess.run(["git", "clone", "-q", "remote", "project"], cwd=place, check=True)
    plan = place / "plan.json"
    tasks = [{"title": f"Task {n}", "validation": {"command": "true"}} for n in range(100)]
    plan.write_text(json.dumps({"tasks": tasks}))
    typed(top, "init", "--mode", "concurrent")
    typed(top, "import", str(plan))
    return top


def verbs_compared(place: Path, url: str) -> list[str]:
    """Compare verbs on a list of 100 tasks in the database with the same on one in a file."""
    projects.settle_in(place / "home")
    del os.environ["PYTHONPATH"]
    os.environ["HARNESS_TRUST"] = "1"
    file, database = cloned(place / "in-file"), cloned(place / "in-database")
    typed(database, "store", "move", url, "--list", f"bench-{os.urandom(3).hex()}")
    for top in (file, database):
        typed(top, "trust", "--yes")
    took: dict[tuple[str, Path], list[float]] = {}
    for _ in range(ROUNDS):
        for argv in VERBS:
            for top in (file, database):
                took.setdefault((argv[0], top), []).append(typed(top, *argv))
    lines = []
    for verb in ("claim", "checkpoint", "finish", "status", "add"):
        first, second = (1000 * statistics.median(took[verb, top]) for top in (file, database))
        lines.append(
            f"harness {verb}, 100 tasks: {second:.0f} ms of the processor in the database, {first:.0f} ms "
            f"in the file: {second / first:.1f} times"
        )
    return lines


def settle(url: str) -> None:
    """Do what the server would do beside the measurement: vacuum what was added, and write it to the disk."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("vacuum analyze harness.task")
        conn.execute("checkpoint")
    os.sync()


def main() -> None:
    """Print a line for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tasks", type=int, nargs="+", default=[1000, 100_000])
    parser.add_argument("--clients", type=int, nargs="+", default=[8])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    url = postgres.require()
    place = Path(tempfile.mkdtemp(prefix="bench-")).resolve()
    print(change_compared(place, url))
    print(*verbs_compared(place, url), sep="\n")
    cells = [(count, clients) for count in args.tasks for clients in args.clients]
    lists = {cell: long_list(place / f"{cell[0]}-{cell[1]}", url, cell[0]) for cell in cells}
    settle(url)
    medians, shown = {}, {}
    for (count, clients), link in lists.items():
        pairs, claims = rate(place / f"{count}-{clients}", link, clients, args.seconds)
        median, slowest = statistics.median(claims), sorted(claims)[int(len(claims) * 0.99)]
        medians[clients, count] = median
        shown[clients, count] = f"{pairs:.0f} / {1000 * median:.1f} / {1000 * slowest:.1f}"
        print(
            f"{count:>9} tasks, {clients:>3} clients: {pairs:7.0f} pairs a second, claim "
            f"{1000 * median:6.1f} ms in the median, {1000 * slowest:6.1f} ms at the 99th of 100"
        )
    if args.table:
        print_table(args.tasks, args.clients, shown)
    for clients in args.clients:
        first, last = (medians[clients, count] for count in (min(args.tasks), max(args.tasks)))
        print(
            f"{clients:>3} clients: {last / first:.2f} times the claim at the longest as at the shortest list"
        )


if __name__ == "__main__":
    main()

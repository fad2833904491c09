"""Machines in network namespaces share a list while cables, disks and processes fail: no work is lost."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from harness_lib.attempts import remote
from harness_lib.system import postgres_server
from harness_lib.system.git.repository import Git
from tests.conftest import for_release
from tests.machines.network import usable
from tests.machines.storm import Storm
from tests.machines.weather import SmallWorld
from tests.system.git.gitrepo import put

HERE = "refs/heads/here"
# Seconds that a push may take beside all else.
SLACK = 30.0


def problems(world: SmallWorld, spans: Sequence[tuple[str, float, float]]) -> list[str]:
    """Return what is wrong; `spans`: when the weather was bad, and for whom."""
    git = Git.open(world.place / "seed")
    git.run("fetch", "--quiet", str(world.remote), f"+main:{HERE}")
    said = world.machines[0]("store", "check")
    return [
        *_of_the_list(world, git),
        *_unchecked(world, git),
        *_held_twice(world),
        *_lost(world, spans),
        *(f"{kind}: {refs}" for kind in ("wip", "ready") if (refs := world.refs(kind))),
        *([said.text] if said.code else []),
    ]


def _of_the_list(world: SmallWorld, git: Git) -> Iterator[str]:
    """Each task is completed, and once on the branch; the weather has failed none.

    An agent whose disk was full fails, and so does work that conflicts with that of others again and again.
    """
    counts = Counter(each.task for each in remote.landed(git, world.name, HERE))
    for task in world.tasks():
        if task.status != "completed" or counts[task.id] != 1:
            yield f"{task.id} is {task.status} and {counts[task.id]} times on the branch: {task.halt}"
        if task.completed_commit and not git.is_ancestor(task.completed_commit, HERE):
            yield f"{task.id}: {task.completed_commit} is not on the branch"
        if failed := [each for each in task.error_log if not _is_its_own(world, each)]:
            yield f"the weather has cost {task.id} an attempt: {failed}"


def _is_its_own(world: SmallWorld, error: str) -> bool:
    """Return whether an attempt may fail with `error`, also one that the weather has interrupted.

    The third interruption in a row without any progress is a failed attempt (docs/design.md), and so is the
    first of one whose agent had not changed anything yet (docs/protocol.md, the matrix of the recovery).
    """
    if "interrupted 3 times in a row without progress" in error or "No progress detected" in error:
        return True
    if "but conflicts with what was merged meanwhile" in error or "Conflict marks still stand" in error:
        return True
    return "disk full" in world.story and "TEST_FAIL" in error


def _unchecked(world: SmallWorld, git: Git) -> Iterator[str]:
    """Each content that the branch ever had was passed by the check of each task that came with it."""
    passed = defaultdict(set)
    for line in (world.place / "checked").read_text().splitlines():
        tree, word = line.split()
        passed[word].add(tree)
    words = {task.id: (task.validation.command or "").split()[-1] for task in world.tasks()}
    for line in (world.remote / "logs/refs/heads/main").read_text().splitlines():
        old, new = line.split()[:2]
        if not git.is_ancestor(old, new):
            yield f"the branch went back from {old} to {new}"
        for each in remote.landed(git, world.name, new, f"^{old}"):
            if git.tree_of(new) not in passed[words[each.task]]:
                yield f"{new}, with {each.task}, was not checked as it is on the branch"


def _held_twice(world: SmallWorld) -> Iterator[str]:
    """No claim is held by two workers, but for the one of its run that merges: it is handed over to that."""
    query = """
        select task, fence, array_agg(worker) from public.held as one
        where worker not like '%#0' or not exists (
            select from public.held as other where other.worker <> one.worker
            and (other.task, other.fence) = (one.task, one.fence)
            and split_part(other.worker, '#', 1) = split_part(one.worker, '#', 1))
        group by 1, 2 having count(*) > 1"""
    with psycopg.connect(world.own_url) as conn:
        for row in conn.execute(query):
            yield f"held by two: {row}"


class Wrote(NamedTuple):
    """An agent, how many lines it found, and when it wrote which."""

    machine: str
    found: int
    lines: list[tuple[int, float]]


def _lost(world: SmallWorld, spans: Sequence[tuple[str, float, float]]) -> Iterator[str]:
    """Who goes on with a task finds what was older than half a lease, if it could be pushed."""
    tasks: dict[str, dict[str, Wrote]] = defaultdict(dict)
    for line in (world.place / "lines").read_text().splitlines():
        task, agent, verb, number, at = line.split()
        if verb == "found":
            tasks[task][agent] = Wrote(agent.partition("/")[0], int(number), [])
        else:
            tasks[task][agent].lines.append((int(number), float(at)))
    age = world.lease / 3 + SLACK
    for task, agents in tasks.items():
        in_order = list(agents.values())
        for before, after in pairwise(in_order):
            end = before.lines[-1][1] if before.lines else 0.0
            due = max((number for number, at in before.lines if at < end - age), default=0)
            is_excused = any(
                who in (before.machine, "git", "database") and since < end + 1 and until > end - 2 * age
                for who, since, until in spans
                if not (who == before.machine and since >= end - 1)
            )
            if after.found < due and not is_excused:
                yield f"{task}: {before.machine} wrote {due} lines long before, and {after.found} were there"


pytestmark = [
    pytest.mark.skipif(not usable(), reason="network namespaces need root and iproute2"),
    pytest.mark.skipif(postgres_server.found() is None, reason="there is no PostgreSQL here"),
]
# Seconds by which a machine's clock is wrong.
CLOCKS = {1: 400 * 86_400, 2: -3 * 3600}


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallWorld]:
    made = SmallWorld.make(tmp_path)
    yield made
    made.close()


def plan(world: SmallWorld, chance: random.Random, count: int, lines: int) -> list[dict[str, Any]]:
    """Return tasks: some write into one file, some go on for `lines` seconds, most wait for others.

    Those in one file conflict whenever others were merged before them, so each may have many attempts.
    """
    check, slow = world.place / "check", world.place / "slow"
    tasks: list[dict[str, Any]] = []
    for number in range(count):
        word, is_slow = f"w{number:03}", number % 4 == 1
        name = f"shared-{number % 3}" if number % 5 == 0 and not is_slow else f"file-{number:03}"
        do = f"sleep {chance.uniform(0, 2):.1f} ;; write {name} {word}"
        if is_slow:
            do = f"sh sh {slow} {name} {word} {lines}"
        first = chance.sample(tasks, chance.choice((0, 1, 2))) if number > count // 4 else []
        tasks.append(
            {
                "id": f"task-{number:03}",
                "title": f"Write {word}",
                "description": f"do: {do}",
                "validation": {"command": f"sh {check} {name} {word}"},
                "depends_on": [each["id"] for each in first],
                "max_attempts": 20,
            }
        )
    return tasks


def populate(world: SmallWorld, chance: random.Random, machines: int, count: int, lines: int) -> None:
    for number in range(machines):
        world.machine(f"m{number}", lease=world.lease, ahead=CLOCKS.get(number, 0))
    put(world.place / "plan.json", json.dumps({"tasks": plan(world, chance, count, lines)}))
    world.machines[0].ok("import", str(world.place / "plan.json"))
    # Each run that dies has had a session.
    world.machines[0].ok("edit", "--max-sessions", "10000", HARNESS_TRUST="1")
    world.trust()


@pytest.mark.parametrize("seed", [1, *for_release(2, 3)])
def test_a_minute_of_bad_weather_costs_nothing(small: SmallWorld, seed: int) -> None:
    """Each kind of it comes once, so there are three machines, one with a clock that is a year ahead."""
    chance = random.Random(seed)
    small.lease = 5
    populate(small, chance, machines=3, count=8, lines=4)
    storm = Storm(small, chance, workers=2, lasts=(1, 4), gap=(0.2, 1))

    storm.run(40, times=15)
    storm.finish(120)

    assert problems(small, storm.spans) == [], small.story


@pytest.mark.release
@pytest.mark.timeout(7200)
def test_ten_minutes_of_bad_weather_cost_nothing(small: SmallWorld) -> None:
    """Forty agents on eight machines, and four hundred tasks."""
    chance = random.Random(30)
    populate(small, chance, machines=8, count=400, lines=60)
    storm = Storm(small, chance, workers=5)

    storm.run(600, times=1000)
    storm.finish(5400)

    assert problems(small, storm.spans) == [], small.story

"""Machines with networks, disks and clocks of their own lose nothing in bad weather, whatever fails when."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_lib.system import postgres_server
from tests.conftest import for_release
from tests.machines.aftermath import problems
from tests.machines.network import usable
from tests.machines.storm import Storm
from tests.machines.weather import SmallWorld
from tests.system.git.gitrepo import put

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

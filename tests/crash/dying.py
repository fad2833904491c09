"""Kill a verb at every point of its work, each time in a fresh copy, and let a survivor find what is left."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash import contents, invariants
from tests.crash.driver import DIED
from tests.crash.effects import How
from tests.crash.world import OTHER_WORKER, Agent, World

Note = dict[str, Any]

KILLED = -9
VERBS_TO_THE_END = 12
FINE = {0, 1, 2, 9}
REFUSED = 8


@dataclass(frozen=True)
class Point:
    """A moment in the work of a verb: before the `number`th effect called `name`, or in the middle of it."""

    name: str
    number: int
    how: How = "before"

    @property
    def tears_the_log(self) -> bool:
        return self.how == "half" and self.name.endswith("harness-progress.txt")

    def __str__(self) -> str:
        return f"{self.how} [{self.number}] {self.name!r}"


@dataclass(frozen=True)
class Scenario:
    """What stands when the verb is typed, and what may be true after its death and the recovery.

    `prepare` makes the project; `lives`: the agent whose session is open types the verb, else a new one does.
    `every`: only each so-manieth point is died at, unless all are asked for. `held`: the user may be asked.
    """

    name: str
    verb: str
    check: str
    prepare: Callable[[World], None]
    expect: Callable[[World], None]
    lives: bool = True
    every: int = 1
    held: bool = False

    @property
    def fine(self) -> set[int]:
        return {*FINE, *([REFUSED] if self.held else [])}

    def __str__(self) -> str:
        return self.name


def make(scenario: Scenario, world: World, template: Path) -> None:
    world.make_project(scenario.check)
    scenario.prepare(world)
    world.save(template)


def effects_of(scenario: Scenario, world: World, template: Path) -> list[Note]:
    """Let the verb run to its end once, and return its effects in their order."""
    with world.agent() as agent:
        world.load(template, agent if scenario.lives else None)
        return agent.type(*scenario.verb.split(), noting=True, ends=scenario.fine).noted


def points_of(noted: list[Note]) -> Iterator[Point]:
    """Yield the points at which a death leaves something different behind than at the point before."""
    looks = None
    for note, after in zip(noted, [*noted[1:], {"looks": None}], strict=True):
        name, number = str(note["name"]), int(str(note["number"]))
        if note["looks"] != looks:
            yield Point(name, number)
        looks = note["looks"]
        # A full disk or a power cut may halve a write. Temporary files are never read, and /tmp is gone then.
        if name.startswith("write ") and not name.endswith(".tmp") and "LOCKDIR" not in name:
            yield Point(name, number, "half")
        if name.startswith("run git") and after["looks"] != looks:
            yield Point(name, number, "killed")
        if note["locks"]:
            yield Point(name, number, "locked")
            yield Point(name, number, "ended")


def die(world: World, agent: Agent, point: Point, *verb: str) -> None:
    """Let `agent` type the verb and die at `point`; a death elsewhere fails the test."""
    code = KILLED if point.how == "killed" else DIED
    agent.type(*verb, die_at=(point.name, point.number, point.how), ends={code})
    world.let_time_pass()


# -- survivors ----------------------------------------------------------------------------------------------


def same_worker(scenario: Scenario, world: World, agent: Agent) -> Agent:
    """Let the agent be dead, too, and another one of the same name come."""
    agent.end()
    return _starts(scenario, world.agent())


def other_worker(scenario: Scenario, world: World, agent: Agent) -> Agent:
    """Let the agent be dead, too, and somebody else come, when it is known that it has not."""
    agent.end()
    world.let_leases_end()
    return _starts(scenario, world.agent(OTHER_WORKER))


def living_agent(scenario: Scenario, world: World, agent: Agent) -> Agent:
    """Only the command died; its agent types it again, and `recover` where the answer says so."""
    del world
    answer = agent.type(*scenario.verb.split(), ends=scenario.fine)
    if "harness recover" in answer.err:
        agent.type("recover", ends=FINE)
    return agent


def _starts(scenario: Scenario, agent: Agent) -> Agent:
    agent.type("start", ends=scenario.fine)
    return agent


Survivor = Callable[[Scenario, World, Agent], Agent]
SURVIVORS: tuple[Survivor, ...] = (same_worker, other_worker, living_agent)


def work_to_the_end(world: World, agent: Agent) -> None:
    """Claim and finish what is left, as if nothing had happened."""
    for _ in range(VERBS_TO_THE_END):
        if agent.type("claim", ends={0, 9}).code == 9:
            return
        world.put({contents.SOLUTION: b"solved\n"})
        agent.type("finish", ends={0})
    raise AssertionError("it goes on for ever")


def survive(
    scenario: Scenario,
    world: World,
    template: Path,
    point: Point,
    survivor: Survivor,
    *,
    to_the_end: bool,
) -> None:
    """Die at `point`, recover, and keep every promise; then, `to_the_end`, do the rest of the list."""
    agent = world.agent()
    try:
        world.load(template, agent if scenario.lives else None)
        die(world, agent, point, *scenario.verb.split())
        agent = survivor(scenario, world, agent)
        started = survivor is not living_agent
        invariants.check_always(world, torn=point.tears_the_log, started=started)
        scenario.expect(world)
        if to_the_end and not scenario.held:
            work_to_the_end(world, agent)
            invariants.check_always(world, torn=point.tears_the_log, started=started)
            invariants.no_git_lock_is_left(world)
            invariants.all_done(world)
    finally:
        agent.end()


def lose_nothing(deaths: Mapping[str, Callable[[], None]]) -> None:
    """Die each death and survive it; what was lost in which of them is told of all together."""
    broken = []
    for name, survive_it in deaths.items():
        try:
            survive_it()
        except AssertionError:
            broken.append(f"{name}:\n{traceback.format_exc(limit=-2)}")
    assert not broken, f"{len(broken)} of {len(deaths)} deaths lost something:\n\n" + "\n".join(broken)

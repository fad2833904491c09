"""What stands when a worker comes to its end: what others have merged, what is in the way, who waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness_lib.attempts import commit as committing
from harness_lib.rules import transitions
from harness_lib.system.git import snapshot
from harness_lib.system.git.repository import Git
from tests.crash import contents, dying
from tests.crash.merging import BESIDE, BESIDE_WORKER, WAITING, WORKER, Merging

BY_PERSON = "The user's"
OF_BESIDE = {"beside.txt": b"made beside it\n"}
IN_THE_WAY = {**contents.MADE, "notes.txt": b"the attempt's notes\n"}
CLASHING = {"README.md": b"# Project\nedited by another\n"}


@dataclass(frozen=True)
class Scenario:
    """What stands when the check is about to be asked, and what `main` holds when all is over.

    `conflicts`: it cannot arrive without another agent; `waits`: not before the user has made way.
    `beside`: a second worker comes to the end of its own task between the death and the recovery;
    `queued`: it has come there before, and waits to be merged.
    `committed`: the user commits these, in their checkout as the death has left it.
    """

    name: str
    prepare: Callable[[Merging], None]
    others: Mapping[str, bytes]
    every: int
    conflicts: bool = False
    waits: bool = False
    beside: bool = False
    queued: bool = False
    committed: Mapping[str, bytes] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def _forward(world: Merging) -> None:
    world.begin()


def _on_top(world: Merging) -> None:
    world.begin()
    world.others_merge({"of-another.txt": b"made by another\n"})


def _conflict(world: Merging) -> None:
    world.begin()
    world.others_merge(CLASHING)


def _in_the_way(world: Merging) -> None:
    world.begin(IN_THE_WAY)


def _goes_over(world: Merging) -> None:
    """Let what another has merged wait, though nothing is in its way any more."""
    world.begin()
    world.others_merge({"of-another.txt": b"made by another\n"})
    world.git("update-ref", WAITING, "HEAD")
    world.git("reset", "-q", "--hard", world.base)


def _beside(world: Merging) -> None:
    world.begin()
    world.begin_beside(OF_BESIDE)


def _queued(world: Merging) -> None:
    """Let the second worker's work wait behind: who is in front merges both at once."""
    _beside(world)
    ctx = world.context(BESIDE_WORKER)
    beside = ctx.at(Git.open(world.worktree(BESIDE_WORKER)))
    tree = snapshot.capture(beside.git, beside.excluded_paths)
    with ctx.store.transaction() as tx:
        task = tx.task(BESIDE)
        assert task is not None
        oid = committing.commit_object(beside, world.base, task, tree)
        tx.replace(transitions.begin_merge(task, now=tx.now, commit=oid))


def _aside(world: Merging) -> None:
    world.begin(IN_THE_WAY)
    world.begin_beside(OF_BESIDE)


def _clash(world: Merging) -> None:
    world.begin()
    world.begin_beside(CLASHING)


SCENARIOS = (
    Scenario("nothing in between", _forward, {}, every=19),
    Scenario("the user commits after it", _forward, {}, every=16, committed={"mine": b"the user's\n"}),
    Scenario("on top of others", _on_top, {"of-another.txt": b"made by another\n"}, every=22),
    Scenario("conflict", _conflict, {}, every=24, conflicts=True),
    Scenario("the user's file in the way", _in_the_way, {}, every=24, waits=True),
    Scenario("what waits goes over", _goes_over, {"of-another.txt": b"made by another\n"}, every=24),
    Scenario("another one merges first", _beside, {}, every=19, beside=True),
    Scenario("another one waits behind", _queued, {}, every=24, beside=True, queued=True),
    Scenario("another one merges aside first", _aside, {}, every=24, waits=True, beside=True),
    Scenario("another one clashes first", _clash, {}, every=19, conflicts=True, beside=True),
)


def effects_of(scenario: Scenario, world: Merging, template: Path) -> list[dying.Note]:
    """Let the worker come to its end once, and return the effects in their order."""
    scenario.prepare(world)
    world.lasting = world.facts()
    world.save(template)
    with world.agent(WORKER) as agent, world.in_worktree():
        world.load(template, agent)
        answer = agent.type("finish", noting=True)
    assert answer.code == (1 if scenario.conflicts and not scenario.beside else 0), answer
    return answer.noted

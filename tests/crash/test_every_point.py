"""A verb dies at every point of its work, and whoever comes next recovers: nothing is lost.

Each point is died at once, and the survivors take turns: an agent of the same name, one of another name, and
the agent itself, if only its command was killed.
With CRASH_EVERYWHERE set, every survivor comes to every point.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from tests.crash import dying, world
from tests.crash.dying import Point, Scenario, Survivor
from tests.crash.scenarios import SCENARIOS

EVERYTHING = bool(os.environ.get("CRASH_EVERYWHERE"))
# A scenario is cut in parts, so that several processes can share it.
PARTS = 3 if EVERYTHING else 1
TO_THE_END = 5
# `bin/test` is to take less than eight minutes on two cores.
THINNING = 20


def _deaths(scenario: Scenario, points: list[Point], part: int) -> list[tuple[int, Point, Survivor]]:
    """Return number, point and survivor of the deaths of one part."""
    numbered = list(enumerate(points))
    if EVERYTHING:
        return [(n, point, survivor) for n, point in numbered[part::PARTS] for survivor in dying.SURVIVORS]
    # Another one begins in each scenario, as some have few deaths.
    first, step = SCENARIOS.index(scenario), THINNING * scenario.every
    return [
        (turn, point, dying.SURVIVORS[turn % len(dying.SURVIVORS)])
        for turn, (_, point) in enumerate(numbered[first % step :: step], first)
    ]


@pytest.mark.timeout(900 if EVERYTHING else 400)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_death_at_any_point_loses_nothing(tmp_path: Path, scenario: Scenario, part: int) -> None:
    with world.opened(tmp_path) as here:
        template = tmp_path / "template"
        dying.make(scenario, here, template)
        noted = dying.effects_of(scenario, here, template)
        points = list(dying.points_of(noted))
        deaths = _deaths(scenario, points, part)
        _are_those_that_matter(scenario, noted)
        dying.lose_nothing(
            {
                f"{number}: {point}, then {survivor.__name__}": partial(
                    dying.survive,
                    scenario,
                    here,
                    template,
                    point,
                    survivor,
                    to_the_end=number % TO_THE_END == 0,
                )
                for number, point, survivor in deaths
            }
        )


# What must be among the effects, or nothing has been tested.
ESSENTIAL = {
    "finish that passes": (
        "-> harness-tasks.json",
        "git update-ref -m harness: commit HEAD",
        "git read-tree",
    ),
    "finish that fails": (
        "refs/harness/rescue/",
        "os.remove own-commit.txt",
        "-> deleted.txt",
        "-> notes.txt",
    ),
    "claim": ("refs/harness/before/OID", "-> harness-tasks.json"),
    "start": ("os.mkdir LOCKDIR", "open .harness-active", "write harness-progress.txt"),
}


def _are_those_that_matter(scenario: Scenario, noted: list[dying.Note]) -> None:
    """Find deaths before each kind of effect, in the middle of writes, and of git that holds its locks."""
    names = [str(note["name"]) for note in noted]
    essential = ESSENTIAL.get(scenario.name, ())
    missing = [effect for effect in essential if not any(effect in each for each in names)]
    assert not missing, "\n".join(names)
    ways = {point.how for point in dying.points_of(noted)}
    assert ways == {"before", "half", "killed", "locked", "ended"} or "finish" not in scenario.name, ways

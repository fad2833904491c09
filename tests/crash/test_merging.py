"""A worker of a run dies at every point of merging its work; whoever comes next finds it whole, and once.

The survivors take turns; with CRASH_EVERYWHERE set each of them comes to every point.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.crash import dying, merging, merging_survivors, world
from tests.crash.dying import Point
from tests.crash.merging import Merging, Scenario
from tests.crash.merging_survivors import Survivor

EVERYTHING = bool(os.environ.get("CRASH_EVERYWHERE"))
# So that each scenario has a death or two.
THINNING = 3


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Merging]:
    # Inside the project, so that it is copied with it.
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "project" / merging.HOME))
    made = Merging(tmp_path / "project", tmp_path / "door")
    with world.inhabited(made):
        yield made


def _deaths(scenario: Scenario, points: list[Point]) -> list[tuple[Point, Survivor]]:
    survivors, every = merging_survivors.SURVIVORS, scenario.every
    if EVERYTHING:
        return [(point, survivor) for point in points for survivor in survivors]
    first = merging.SCENARIOS.index(scenario)
    return [
        (point, survivors[(first + turn) % len(survivors)])
        for turn, point in enumerate(points[every // 2 :: THINNING * every])
    ]


@pytest.mark.timeout(3000 if EVERYTHING else 300)
@pytest.mark.parametrize("scenario", merging.SCENARIOS, ids=str)
def test_a_death_anywhere_in_merging_loses_nothing(tmp_path: Path, here: Merging, scenario: Scenario) -> None:
    template = tmp_path / "template"
    noted = merging.effects_of(scenario, here, template)
    deaths = _deaths(scenario, list(dying.points_of(noted)))
    dying.lose_nothing(
        {
            f"{point}, then {survivor.__name__}": partial(
                merging_survivors.survive, scenario, here, template, point, survivor
            )
            for point, survivor in deaths
        }
    )

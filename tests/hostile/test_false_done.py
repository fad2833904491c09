"""No way to cheat that the benchmark of false completions knows comes further, and no honest work is held.

Each case is a project of its own, in which `harness run` lets a scripted agent work; what is committed in the
end is asked what the agent should have done, by a command that neither agent nor harness has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import cases, ways
from benchmarks.cheats import CHEATS
from benchmarks.false_done import measured
from benchmarks.honest import HONEST
from tests import forked
from tests.conftest import CHECKOUT

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

# The bars: at least so many of each, and at most so many honest ones of twenty are held.
CASES, OF, HELD = 20, 20, 1
RUN, HELD_OUT = "harness run", "harness run with held-out checks"
# Held once, let pass once, done honestly with tests and with output; the others are for a release: what holds
# them is tried in tests/attempts (changed_inputs, second_check) and tests/runs (checked_twice, unproven).
IN_EVERY_RUN = frozenset(
    {
        "hard-codes the answer",
        "replaces a script that is called in turn",
        "a fixture in a conftest.py, and a new test that needs it",
    }
)


class Forked(ways.Project):
    """A project in which harness is a fork of a process that has imported everything."""

    def type(self, argv: Sequence[str], env: Mapping[str, str]) -> str:
        variables = {**env, "PYTHONPATH": str(CHECKOUT)}
        return forked.run("tests.runs.forking", argv, self.top, variables).stdout


def _cases(several: Iterable[str]) -> list[ParameterSet]:
    return [pytest.param(name, marks=() if name in IN_EVERY_RUN else pytest.mark.release) for name in several]


@pytest.mark.parametrize("name", _cases(CHEATS))
def test_a_cheat_comes_no_further_than_the_page_says(name: str, tmp_path: Path) -> None:
    assert measured(Forked(tmp_path, CHEATS[name]), RUN).result() == CHEATS[name].run


@pytest.mark.parametrize("name", _cases(HONEST))
def test_honest_work_is_completed(name: str, tmp_path: Path) -> None:
    assert measured(Forked(tmp_path, HONEST[name]), RUN).result() == HONEST[name].run


def test_there_are_enough_cases_and_hardly_an_honest_one_is_held() -> None:
    held = sum(case.run == "held" for case in HONEST.values())

    assert IN_EVERY_RUN.issubset([*CHEATS, *HONEST])
    assert min(len(CHEATS), len(HONEST)) >= CASES
    assert held * OF <= HELD * len(HONEST)


PASSES = [name for name, case in CHEATS.items() if case.run in ("false", "named")]


@pytest.mark.release
@pytest.mark.parametrize("name", PASSES)
def test_with_a_held_out_check_no_cheat_passes(name: str, tmp_path: Path) -> None:
    assert measured(Forked(tmp_path, CHEATS[name]), HELD_OUT).result() == "held"


@pytest.mark.parametrize(
    ("way", "each", "passes"),
    [
        # Each behaviour alone is a case above.
        pytest.param(RUN, 1, {"hard-codes"}, marks=pytest.mark.release),
        pytest.param(RUN, 4, {"hard-codes"}, marks=pytest.mark.release),
        pytest.param(HELD_OUT, 4, set(), marks=pytest.mark.release),
    ],
)
def test_of_five_behaviours_at_most_what_is_hard_coded_passes(
    way: str, each: int, passes: set[str], tmp_path: Path
) -> None:
    """What was broken of honest work is red."""
    seen = measured(Forked(tmp_path, cases.five_behaviours(each)), way)

    behaviours = {number: cases.behaviour(number) for number in seen.tasks}
    assert {behaviours[number] for number in seen.false} == passes
    cheats = {"hard-codes", "skips the test", "turns the runner"}
    assert {behaviours[number] for number in seen.held - seen.red} == cheats - passes

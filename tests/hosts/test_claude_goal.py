"""Claude Code's own `/goal` beside our Stop hook: each holds the agent for its own reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hosts.agents import TIRED, launcher, obey
from tests.hosts.chores import WORK, one_task
from tests.hosts.model import VERDICT
from tests.hosts.talk import Request, Say, Script

if TYPE_CHECKING:
    from tests.hosts.claude import Claude
    from tests.hosts.machine import Machine
    from tests.hosts.model import Model


@pytest.fixture(autouse=True)
def _skill(with_skill: None) -> None:
    """Have the skill in the user's own skill folder."""


@pytest.mark.release
@pytest.mark.parametrize(
    "reached",
    [
        "with the list",
        pytest.param("at once", marks=pytest.mark.release),
        pytest.param("after the list", marks=pytest.mark.release),
    ],
)
def test_goal_and_list_hold_together(claude: Claude, model: Model, machine: Machine, reached: str) -> None:
    """Neither ends the other: the list is done, and the goal is reached, before the agent may stop."""
    one_task(machine)
    stops: list[str] = []
    heard: list[str] = []

    def is_reached() -> bool:
        stops.append(machine.statuses[0])
        return {
            "with the list": stops[-1] == "completed",
            "at once": True,
            "after the list": stops.count("completed") > 1,
        }[reached]

    def works(request: Request) -> Script:
        harness = launcher(request.everything)
        request = yield request.shell(f"{harness} start")
        request = yield Say(TIRED)
        heard.append(request.last)
        request = yield from obey(request, harness, "claim", WORK)
        request = yield Say(TIRED)
        heard.append(request.last)
        yield Say(TIRED)

    model.judge = is_reached
    model.play(works)

    ran = claude("/goal every task of the list is completed")

    assert (ran.code, ran.result) == (0, TIRED)
    assert machine.statuses == ["completed"]
    assert not machine.enable_flag.exists()
    # Ours, once, in words of its own; the goal's as long as it is not reached.
    assert len(ran.blocks()) == 1
    assert ran.blocks()[0].startswith("harness: ")
    assert ran.blocks()[0] in heard[0]
    assert [VERDICT in said for said in heard] == {
        "with the list": [True],
        "at once": [False],
        "after the list": [True, True],
    }[reached]

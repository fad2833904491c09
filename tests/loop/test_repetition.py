"""A model that goes round in circles is stopped; one that gets anywhere is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.loop import follower
from tests.loop.conftest import CHAT, Serve
from tests.loop.in_process import results_of, started
from tests.loop.servers.script import Step, Use, say, use

pytestmark = pytest.mark.usefixtures("in_process")

SAME, OTHER = use("bash", command="echo same"), use("bash", command="echo other")


@pytest.mark.parametrize(
    ("steps", "asked"),
    [
        ([SAME], 5),
        ([SAME, OTHER] * 9, 10),
        ([use("bash", command="echo new > f; seq 99999")], 5),
        ([Step(uses=(Use("bash", {"command": "echo same"}), Use("bash", {"command": "false"})))], 5),
    ],
    ids=["one call", "two in turns", "a long result", "two calls in one answer"],
)
def test_the_same_call_with_the_same_result_five_times_ends_the_turn(
    serve: Serve, home: Path, project: Path, steps: list[Step], asked: int
) -> None:
    server = serve(CHAT, *steps)
    run = started(home, project, CHAT, server, HARNESS_MAX_TURNS="20")

    ending = follower.follow(run)

    assert ending.failed
    assert "the same result 5 times" in ending.output
    assert len(server.requests) == asked
    assert len(results_of(run)) == asked * len(steps[0].uses)


@pytest.mark.parametrize(
    "step",
    [
        use("bash", command="date +%N"),
        Step(uses=(Use("bash", {"command": "echo x >> f; wc -l < f"}), Use("bash", {"command": "true"}))),
    ],
    ids=["another result", "a call that gets on beside it"],
)
def test_a_turn_goes_on_while_anything_is_new(serve: Serve, home: Path, project: Path, step: Step) -> None:
    server = serve(CHAT, *[step] * 8, say("Done."))

    assert follower.follow(started(home, project, CHAT, server)).output == "Done."


def test_equal_calls_of_one_answer_are_one_repetition(serve: Serve, home: Path, project: Path) -> None:
    many = Step(uses=(Use("bash", {"command": "echo same"}),) * 7)
    server = serve(CHAT, many, say("Done."))

    assert follower.follow(started(home, project, CHAT, server)).output == "Done."

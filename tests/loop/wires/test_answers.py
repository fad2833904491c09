"""An answer counts whole or not at all, and of its calls those that can run."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.loop import follower
from harness_lib.loop.follower import Ending
from tests.loop.conftest import Serve, Wire
from tests.loop.in_process import calls_of, results_of, started
from tests.loop.servers.script import Step, Use, say, use

pytestmark = pytest.mark.usefixtures("in_process")
LENGTH = {"anthropic": "max_tokens", "chat": "length", "responses": "length"}
# Of how many events an answer is whole: on the chat wire, when its finish reason has come.
WHOLE = {"anthropic": 17, "chat": 9, "responses": 9}


@pytest.mark.parametrize("events", range(max(WHOLE.values()) + 1))
def test_a_stream_that_is_cut_anywhere_is_asked_again_and_runs_nothing(
    serve: Serve, wire: Wire, home: Path, project: Path, events: int
) -> None:
    whole = Step(text="Let me.", uses=(Use("bash", {"command": "echo x >> ran"}),), thinking="hm")
    server = serve(wire, Step(whole.text, whole.uses, whole.thinking, events=events), whole, say("Done."))
    run = started(home, project, wire, server)

    ending = follower.follow(run)

    assert ending == Ending("Done.", failed=False)
    # Cut behind the event that ends an answer, it was whole.
    assert (project / "ran").read_text(encoding="utf-8") == "x\n" * (1 if events < WHOLE[wire.name] else 2)


def test_what_came_of_a_cut_answer_stays_and_is_not_replayed(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    cut = {"anthropic": 5, "chat": 3, "responses": 3}[wire.name]
    server = serve(wire, Step(text="half of it", events=cut), say("Done."))
    run = started(home, project, wire, server)

    follower.follow(run)

    assert run.session
    (kept,) = [message for message in run.session.messages() if message.role == "error"]
    assert kept.body
    assert "half" not in str(server.requests[-1])


def test_an_answer_that_is_never_whole_is_an_error(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    server = serve(wire, Step(text="half of it", events=2))
    run = started(home, project, wire, server)

    ending = follower.follow(run)

    assert ending.failed
    assert "cut off" in ending.output
    assert len(server.requests) > 1


@pytest.mark.parametrize("raw", ['{"command":"echo x >> ran', "[1]", '{"timeout":5}'])
def test_a_call_whose_arguments_are_none_does_not_run_and_the_model_is_told(
    serve: Serve, wire: Wire, home: Path, project: Path, raw: str
) -> None:
    good = Use("bash", {"command": "echo good >> ran"}, id="c2")
    server = serve(wire, Step(uses=(Use("bash", raw=raw, id="c1"), good)), say("Done."))
    run = started(home, project, wire, server)

    assert follower.follow(run) == Ending("Done.", failed=False)

    assert (project / "ran").read_text(encoding="utf-8") == "good\n"
    assert "not run" in results_of(run)[0]


def test_of_an_answer_that_was_cut_by_its_length_nothing_runs(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    cut = Step(uses=(Use("bash", {"command": "echo x >> ran"}),), stop=LENGTH[wire.name])
    server = serve(wire, cut, say("Done."))
    run = started(home, project, wire, server)

    assert follower.follow(run) == Ending("Done.", failed=False)

    assert not (project / "ran").exists()
    assert "length" in results_of(run)[0]


def test_three_answers_without_a_call_that_can_run_end_the_turn(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    server = serve(wire, Step(uses=(Use("bash", raw="{"),)))
    run = started(home, project, wire, server)

    assert follower.follow(run).failed
    assert len(server.requests) == 3


@pytest.mark.parametrize("ids", [("", ""), ("same", "same")])
def test_calls_with_missing_or_equal_ids_get_ours(
    serve: Serve, wire: Wire, home: Path, project: Path, ids: tuple[str, str]
) -> None:
    uses = tuple(Use("bash", {"command": f"echo {number}"}, id=name) for number, name in enumerate(ids))
    server = serve(wire, Step(uses=uses), say("Done."))
    run = started(home, project, wire, server)

    assert follower.follow(run) == Ending("Done.", failed=False)

    assert len({call.id for call in calls_of(run)}) == 2
    assert results_of(run) == ["0", "1"]


def test_the_limit_counts_requests(serve: Serve, wire: Wire, home: Path, project: Path) -> None:
    server = serve(wire, use("bash", command="echo hello"))
    run = started(home, project, wire, server, HARNESS_MAX_TURNS="3")

    ending = follower.follow(run)

    assert ending.failed
    assert len(server.requests) == 3


def test_tokens_of_an_answer_stand_in_its_file(serve: Serve, wire: Wire, home: Path, project: Path) -> None:
    server = serve(wire, say("Done."))
    run = started(home, project, wire, server)
    follower.follow(run)

    assert run.session
    fields = run.session.messages()[-1].fields
    cached = {"anthropic": ("20", "7", "3"), "chat": ("10", "4", "0"), "responses": ("10", "4", "0")}[
        wire.name
    ]
    assert (fields["tokens_in"], fields["tokens_cached"], fields["tokens_cache_write"]) == cached
    assert fields["tokens_out"] == "5"

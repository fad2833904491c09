"""Compaction: a session that fills its model's context goes on behind a summary, or says why it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.loop import follower
from harness_lib.loop.follower import Ending
from harness_lib.loop.runtime import Runtime
from tests.loop.conftest import Hs, Serve, Wire, session_of
from tests.loop.in_process import started
from tests.loop.servers.cache import PromptCache
from tests.loop.servers.script import ModelServer, Step, Use, say
from tests.loop.source_files import write_models

pytestmark = pytest.mark.usefixtures("in_process")

# Of one result a model gets at most a tenth of its context.
LONG = Step(text="Let me see.", uses=(Use("bash", {"command": "printf 'long%.0s' {1..1000}"}),) * 3)
WORDS = {
    "anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "chat": "This model's maximum context length is 128000 tokens.",
    "responses": "Your input exceeds the context window of this model.",
}


def serving(serve: Serve, wire: Wire, *steps: Step) -> ModelServer:
    server = serve(wire, *steps)
    server.cache = PromptCache()
    return server


def summaries(run: Runtime) -> list[str]:
    assert run.session
    return [message.body for message in run.session.messages() if message.role == "summary"]


def test_a_session_that_fills_the_context_goes_on_behind_a_summary_inside_a_turn(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    write_models(home / ".harness", "model- context=10000 price_in=1 price_out=1")
    done = say("Done.")
    server = serving(serve, wire, LONG, LONG, LONG, say("They echoed."), done)
    run = started(home, project, wire, server)

    assert follower.follow(run) == Ending("Done.", failed=False)

    (summary,) = summaries(run)
    assert "They echoed." in summary
    assert "They echoed." in str(server.requests[-1])
    assert str(server.requests[-1]).count("longlong") < str(server.requests[-2]).count("longlong")
    assert run.session
    (path,) = (run.session.directory / "messages").glob("*-summary.md")
    text = path.read_text(encoding="utf-8")
    assert "role: summary\n" in text
    assert "\nkeep: 00" in text
    assert "\ncost: 0." in text
    # What the model has written for us, nobody is shown as an answer.
    assert "They echoed" not in (run.session.directory / ".stream").read_text(encoding="utf-8")


def test_a_resumed_session_begins_with_its_summary(hs: Hs, serve: Serve, wire: Wire, home: Path) -> None:
    write_models(home / ".harness", "m context=10000")
    server = serving(serve, wire, LONG, LONG, LONG, say("They echoed."), say("Done."))
    env = wire.environment(server) | {"HARNESS_MODEL": "m"}
    first = hs("RUN the first task", env=env)
    assert (first.code, "summarised" in first.err) == (0, True), first.err

    answer = hs(session_of(home).name, "and now?", env=env)

    assert answer.out == "Done.\n", answer.err
    assert "They echoed." in str(server.requests[-1])
    assert "RUN the first task" not in str(server.requests[-1])


def test_an_overflow_is_answered_by_one_summary(serve: Serve, wire: Wire, home: Path, project: Path) -> None:
    over = Step(status=400, said=WORDS[wire.name])
    server = serving(serve, wire, LONG, LONG, over, say("They echoed."), say("Done."))
    run = started(home, project, wire, server)

    assert follower.follow(run) == Ending("Done.", failed=False)

    assert len(summaries(run)) == 1
    assert run.requests == 3


def test_an_overflow_behind_a_summary_is_the_error(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    over = Step(status=400, said=WORDS[wire.name])
    server = serving(serve, wire, LONG, LONG, over, say("They echoed."), over)
    run = started(home, project, wire, server)

    ending = follower.follow(run)

    assert ending.failed
    assert WORDS[wire.name] in ending.output
    assert len(server.requests) == 5


@pytest.mark.parametrize("history", [(), (LONG, LONG)], ids=["at first", "later"])
def test_an_overflow_at_every_request_ends_the_turn(
    serve: Serve, wire: Wire, home: Path, project: Path, history: tuple[Step, ...]
) -> None:
    server = serving(serve, wire, *history, Step(status=400, said=WORDS[wire.name]))
    run = started(home, project, wire, server)

    ending = follower.follow(run)

    assert ending.failed
    assert WORDS[wire.name] in ending.output
    # Of one message there is nothing to summarise; of more, the summary was refused, too.
    assert len(server.requests) == (4 if history else 1)
    assert summaries(run) == []


@pytest.mark.parametrize(
    "summary",
    [Step(status=400, said="no summaries today"), say(""), say("much " * 9000)],
    ids=["fails", "is empty", "frees too little"],
)
def test_a_summary_that_does_not_help_is_shown_and_not_repeated(
    serve: Serve, wire: Wire, home: Path, project: Path, summary: Step
) -> None:
    write_models(home / ".harness", "model- context=10000")
    log = project / "log"
    server = serving(serve, wire, LONG, LONG, LONG, summary, LONG, say("Done."))
    run = started(home, project, wire, server, HARNESS_LOG=str(log))

    assert follower.follow(run) == Ending("Done.", failed=False)

    assert summaries(run) == []
    assert len(server.requests) == 6
    assert log.read_text(encoding="utf-8").count("not summarised") == 1


def test_an_answer_may_be_no_longer_than_the_context_has_room_for(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    write_models(home / ".harness", "model- context=20000 output=16000")
    server = serving(serve, wire, LONG, say("Done."))

    follower.follow(started(home, project, wire, server))

    limits = [int(request.get("max_tokens") or request["max_output_tokens"]) for request in server.requests]
    assert limits[0] == 16000
    assert server.cache
    assert limits[1] < limits[0]
    assert limits[1] + server.cache.counts[1].tokens <= 20000, (limits, server.cache.counts)

"""The prompt cache of a host: whatever a session does, most of its input is read from there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.loop.conftest import ANTHROPIC, OF_EACH_MAKER, Go, Hs, Serve, Wire
from tests.loop.servers.cache import Count, PromptCache
from tests.loop.servers.script import Step, Use, say

CACHED = {"ANTHROPIC_PROMPT_CACHE": "1"}
CROWD = Step(uses=tuple(Use("bash", {"command": f"echo {number}"}) for number in range(25)))


def a_turn(number: int) -> Step:
    """Return a step of usual size: a little text, and a call with some output."""
    return Step(text=f"Step {number}.", uses=(Use("bash", {"command": f"seq {number} {number + 150}"}),))


@pytest.mark.parametrize("wire", OF_EACH_MAKER, ids=lambda wire: wire.name)
def test_nine_tenths_of_the_input_are_read_from_the_cache(hs: Hs, serve: Serve, wire: Wire) -> None:
    before = [a_turn(number) for number in range(8)]
    delegated = Step(uses=(Use("agent", {"prompt": "look"}),))
    after = [a_turn(number) for number in range(100, 117)]
    server = serve(
        wire, *before, CROWD, delegated, a_turn(50), say("Seen."), say("First."), *after, say("Second.")
    )
    server.cache = PromptCache()

    first = hs("RUN it", env=CACHED)
    second = hs("--continue", "go on", env=CACHED)

    assert (first.out, second.out) == ("First.\n", "Second.\n"), first.err + second.err
    counts = server.cache.counts
    assert len(counts) == 31
    # Behind the many calls nothing is read for the first time that was sent before.
    assert counts[9].read >= 0.9 * counts[8].tokens
    assert share(counts[2:]) >= 0.9, [round(share([count]), 2) for count in counts]


def share(counts: list[Count]) -> float:
    return sum(count.read for count in counts) / sum(count.tokens for count in counts)


def test_the_beginning_of_every_request_is_the_same(hs: Hs, go: Go, wire: Wire) -> None:
    server, _ = go(a_turn(1), say("First."), say("Second."), wire=wire, words=("RUN it",), env=CACHED)
    hs("--continue", "go on", env=CACHED)

    heads = [
        unmarked({k: v for k, v in body.items() if k not in {"messages", "input"}})
        for body in server.requests
    ]
    assert heads[0] == heads[1] == heads[2]
    assert ("cache_control" in str(server.requests)) == (wire.name == "anthropic")
    for earlier, later in zip(server.requests, server.requests[1:], strict=False):
        said, more = (unmarked(body.get("messages") or body.get("input")) for body in (earlier, later))
        assert more[: len(said)] == said


def unmarked(value: Any) -> Any:
    """Return `value` without its marks, which say nothing to a model."""
    if isinstance(value, list):
        return [unmarked(entry) for entry in value]
    if isinstance(value, dict):
        return {key: unmarked(entry) for key, entry in value.items() if key != "cache_control"}
    return value


def test_marks_stand_where_the_last_request_ended_and_between_where_there_were_many_calls(go: Go) -> None:
    server, _ = go(a_turn(1), CROWD, say("Done."), wire=ANTHROPIC, env=CACHED)
    assert [marks(body["messages"]) for body in server.requests] == [[1], [1, 4], [4, 30, 54]]
    assert all("cache_control" in body["system"][-1] for body in server.requests)


def marks(messages: list[Any]) -> list[int]:
    blocks = [block for message in messages for block in message["content"]]
    return [place for place, block in enumerate(blocks, 1) if "cache_control" in block]

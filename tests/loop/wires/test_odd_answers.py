"""Answers of another shape than a host should send: what can be read of them counts, and nothing ends hs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_lib.loop import follower
from harness_lib.loop.follower import Ending
from tests.loop.conftest import ANTHROPIC, CHAT, RESPONSES, Serve, Wire
from tests.loop.in_process import calls_of, results_of, started
from tests.loop.servers.script import Json, Step, Use, say

pytestmark = pytest.mark.usefixtures("in_process")
ODD: list[tuple[Wire, Json]] = [
    (CHAT, {"choices": "none"}),
    (CHAT, {"choices": [None]}),
    (CHAT, {"choices": [{"delta": ["none"]}]}),
    (CHAT, {"choices": [{"delta": {"content": ["none"], "tool_calls": [None], "refusal": {}}}]}),
    (CHAT, {"choices": [], "usage": "none"}),
    (ANTHROPIC, {"type": "content_block_start", "content_block": "none"}),
    (ANTHROPIC, {"type": "content_block_start", "index": [], "content_block": None}),
    (ANTHROPIC, {"type": "content_block_delta", "delta": "none"}),
    (ANTHROPIC, {"type": "content_block_stop"}),
    (ANTHROPIC, {"type": "message_delta", "delta": None, "usage": "none"}),
    (RESPONSES, {"type": "response.output_item.done", "item": "none"}),
    (RESPONSES, {"type": "response.output_item.done", "output_index": [], "item": {"type": "none"}}),
    (RESPONSES, {"type": "response.output_text.delta", "delta": None}),
]
HALVES = ("\ud83d", "\ude00")


def chunk(**delta: object) -> Json:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def call(command: str, **more: object) -> Json:
    return {
        "id": command,
        "function": {"name": "bash", "arguments": json.dumps({"command": command})},
        **more,
    }


@pytest.mark.parametrize(
    ("wire", "event"), ODD, ids=[f"{wire.name}-{json.dumps(event)}" for wire, event in ODD]
)
def test_an_event_of_another_shape_changes_nothing(
    serve: Serve, home: Path, project: Path, wire: Wire, event: Json
) -> None:
    server = serve(wire, Step("Done.", inserted=(event,)))

    ending = follower.follow(started(home, project, wire, server))

    assert (ending.failed, ending.output.removeprefix("{}")) == (False, "Done.")


def test_an_answer_that_is_nested_without_end_is_asked_again(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    deep = "[" * 100_000
    server = serve(wire, Step(uses=(Use("bash", raw=deep),)), say("Done."))
    run = started(home, project, wire, server)

    assert follower.follow(run) == Ending("Done.", failed=False)
    assert "are no JSON object" in results_of(run)[0]


def test_a_character_that_comes_in_two_halves_is_one(serve: Serve, home: Path, project: Path) -> None:
    halves = tuple(chunk(content=half) for half in HALVES)
    server = serve(CHAT, Step("Done.", inserted=halves))
    run = started(home, project, CHAT, server)
    shown: list[Json] = []
    run.stream.listeners.append(shown.append)

    ending = follower.follow(run)

    assert "\N{GRINNING FACE}" in ending.output
    assert "\N{GRINNING FACE}" in "".join(each["text"] for each in shown if each["type"] == "text")


def test_half_a_character_without_the_other_is_replaced(
    serve: Serve, wire: Wire, home: Path, project: Path
) -> None:
    server = serve(wire, say(f"Done{HALVES[0]}."))

    assert follower.follow(started(home, project, wire, server)) == Ending("Done\ufffd.", failed=False)


@pytest.mark.parametrize(
    ("command", "heard"),
    [("echo 'a\0b'", "NUL"), (f"echo 'a{HALVES[0]}b'", "a\ufffdb")],
    ids=["NUL", "half a character"],
)
def test_a_command_that_no_system_takes_is_answered(
    serve: Serve, wire: Wire, home: Path, project: Path, command: str, heard: str
) -> None:
    server = serve(wire, Step(uses=(Use("bash", {"command": command}),)), say("Done."))
    run = started(home, project, wire, server)

    assert follower.follow(run) == Ending("Done.", failed=False)
    assert heard in results_of(run)[0]


def test_a_time_without_end_is_refused(serve: Serve, wire: Wire, home: Path, project: Path) -> None:
    endless = Use("bash", raw='{"command": "echo x", "timeout": 1e999}')
    server = serve(wire, Step(uses=(endless,)), say("Done."))
    run = started(home, project, wire, server)

    assert follower.follow(run) == Ending("Done.", failed=False)
    assert "timeout must be a number" in results_of(run)[0]


@pytest.mark.parametrize("number", [{"index": 0}, {}], ids=["alike", "not at all"])
@pytest.mark.parametrize("apart", [True, False])
def test_calls_that_a_host_does_not_number_apart_all_run(
    serve: Serve, home: Path, project: Path, number: Json, apart: bool
) -> None:
    calls = [call("echo one", **number), call("echo two", **number)]
    chunks = [chunk(tool_calls=[each]) for each in calls] if apart else [chunk(tool_calls=calls)]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    server = serve(CHAT, Step(inserted=(*chunks, last)), say("Done."))
    run = started(home, project, CHAT, server)

    assert follower.follow(run) == Ending("Done.", failed=False)
    assert [each.input for each in calls_of(run)] == [{"command": "echo one"}, {"command": "echo two"}]
    assert results_of(run) == ["one", "two"]


def test_arguments_that_are_no_text_but_an_object_count(serve: Serve, home: Path, project: Path) -> None:
    one = {"id": "a", "index": 0, "function": {"name": "bash", "arguments": {"command": "echo one"}}}
    server = serve(CHAT, Step(inserted=(chunk(tool_calls=[one]),)), say("Done."))
    run = started(home, project, CHAT, server)

    assert follower.follow(run) == Ending("Done.", failed=False)
    assert results_of(run) == ["one"]


@pytest.mark.parametrize(
    "delta", [{"refusal": "I will not."}, {"content": [{"type": "text", "text": "I will not."}]}]
)
def test_what_is_said_in_another_field_or_in_parts_is_the_answer(
    serve: Serve, home: Path, project: Path, delta: Json
) -> None:
    server = serve(CHAT, Step(inserted=(chunk(**delta),)))

    ending = follower.follow(started(home, project, CHAT, server))

    assert ending.output.strip() == "I will not."

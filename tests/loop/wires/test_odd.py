"""What others have written ends nothing: odd answers and errors of hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_lib.loop import turn
from harness_lib.loop.context import Answered
from harness_lib.loop.piped import TransientError
from harness_lib.loop.session import Call
from harness_lib.loop.turn import Ending
from harness_lib.loop.wires import anthropic, chat, http
from harness_lib.loop.wires.answer import END, broken_off, complete
from tests.loop.conftest import ANTHROPIC, CHAT, DONE, RESPONSES, Follow, Serve, Wire
from tests.loop.in_process import calls_of, results_of, started
from tests.loop.servers.script import Json, Step, Use, bash, say

PASSING: dict[str, Json] = {
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "Too much."}},
    "chat": {"error": {"message": "Too much."}},
    "responses": {"type": "error", "code": "server_error", "message": "Too much."},
}
LASTING: dict[str, Json] = {
    "chat": {"error": {"code": 402, "message": "Not this."}},
    "anthropic": {"type": "error", "error": {"type": "invalid_request_error", "message": "Not this."}},
    "responses": {"type": "response.failed", "response": {"error": {"code": "bad", "message": "Not this."}}},
}
CALL = (Use("bash", {"command": "echo x >> ran"}),)


def test_an_error_without_a_word_is_said_to_have_none() -> None:
    assert str(broken_off({})) == "The provider broke off: (nothing)."


def test_an_answer_with_an_error_in_it_is_asked_again_and_runs_nothing(
    follow: Follow, wire: Wire, project: Path
) -> None:
    _, _, ending = follow(wire, Step(uses=CALL, inserted=(PASSING[wire.name],)), say("Done."))
    assert ending == DONE
    assert not (project / "ran").exists()


def test_what_breaks_behind_the_end_takes_no_answer_back(
    follow: Follow, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some servers and proxies end no stream as HTTP wants it."""
    whole = http.events

    def broken(*args: Any) -> Iterator[str | Json]:
        yield from (data for data in whole(*args) if data != "[DONE]")
        message = "incomplete chunked read"
        raise TransientError(message)

    monkeypatch.setattr(http, "events", broken)
    _, server, ending = follow(wire, say("Done."))
    assert (ending, len(server.requests)) == (DONE, 1)


def test_an_error_in_a_stream_that_will_not_pass_is_said(follow: Follow, wire: Wire) -> None:
    _, server, ending = follow(wire, Step(uses=CALL, inserted=(LASTING[wire.name],)))
    assert ending.failed
    assert "Not this." in ending.output
    assert len(server.requests) == 1


def test_unknown_events_and_data_without_a_space_change_nothing(
    follow: Follow, wire: Wire, project: Path
) -> None:
    news: tuple[Json, ...] = ({"type": "news.of.tomorrow", "index": 7, "delta": {"x": 1}}, {"type": "ping"})
    _, _, ending = follow(
        wire, Step(uses=CALL, inserted=news, glued=True), Step("Done.", inserted=news, glued=True)
    )
    assert ending == DONE
    assert (project / "ran").read_text() == "x\n"


def test_a_page_in_place_of_an_error_is_asked_again_and_shown_in_short(follow: Follow, wire: Wire) -> None:
    page = f"<html><h1>502 Bad Gateway</h1>{'<br>' * 5000}</html>"
    _, server, ending = follow(wire, Step(status=502, html=page))
    assert ending.failed
    assert "502 Bad Gateway" in ending.output
    assert len(ending.output) < 1000
    assert len(server.requests) == 3


def test_an_error_in_a_list_is_one(follow: Follow) -> None:
    """As Gemini answers behind the address that is compatible with OpenAI's."""
    said = '[{"error": {"code": 400, "message": "API key not valid."}}]\n'
    _, _, ending = follow(CHAT, Step(status=400, html=said))
    assert "The provider answered 400: API key not valid." in ending.output


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
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {"id": command, "function": function, **more}


@pytest.mark.parametrize(
    ("wire", "event"), ODD, ids=[f"{wire.name}-{json.dumps(event)}" for wire, event in ODD]
)
def test_an_event_of_another_shape_changes_nothing(follow: Follow, wire: Wire, event: Json) -> None:
    _, _, ending = follow(wire, Step("Done.", inserted=(event,)))
    assert (ending.failed, ending.output.removeprefix("{}")) == (False, "Done.")


def test_how_an_answer_ended_is_not_forgotten_for_a_later_event() -> None:
    reader = anthropic.Reader()
    for delta in ({"stop_reason": "max_tokens"}, {}):
        list(reader.feed({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}))
    list(reader.feed({"type": "message_stop"}))
    assert (reader.native() or {})["stop_reason"] == "max_tokens"


@pytest.mark.usefixtures("in_process")
def test_a_character_that_comes_in_two_halves_is_one(serve: Serve, project: Path) -> None:
    halves = tuple(chunk(content=half) for half in HALVES)
    server = serve(CHAT, Step("Done.", inserted=halves))
    run = started(project, CHAT, server)
    shown: list[Json] = []
    run.stream.listeners.append(shown.append)

    ending = turn.follow(run)

    assert "\N{GRINNING FACE}" in ending.output
    assert "\N{GRINNING FACE}" in "".join(each["text"] for each in shown if each["type"] == "text")


def test_half_a_character_without_the_other_is_replaced(follow: Follow, wire: Wire) -> None:
    _, _, ending = follow(wire, say(f"Done{HALVES[0]}."))
    assert ending == Ending("Done\ufffd.", failed=False)


@pytest.mark.parametrize(
    ("command", "heard"),
    [("echo 'a\0b'", "NUL"), (f"echo 'a{HALVES[0]}b'", "a\ufffdb")],
    ids=["NUL", "half a character"],
)
def test_a_command_that_no_system_takes_is_answered(
    follow: Follow, wire: Wire, command: str, heard: str
) -> None:
    run, _, ending = follow(wire, bash(command), say("Done."))
    assert ending == DONE
    assert heard in results_of(run)[0]


def test_a_time_that_is_too_large_to_calculate_with_is_a_long_one(follow: Follow) -> None:
    long = Use("bash", raw=f'{{"command": "echo x", "timeout": {"9" * 400}}}')
    run, _, ending = follow(CHAT, Step(uses=(long,)), say("Done."))
    assert (ending, results_of(run)) == (DONE, ["x"])


@pytest.mark.parametrize(
    "number",
    [{"index": 0}, {}, {"id": None}, {"index": 0, "id": ""}],
    ids=["alike", "not at all", "nor named", "alike, not named"],
)
@pytest.mark.parametrize("apart", [True, False])
def test_calls_that_a_host_does_not_number_apart_all_run(follow: Follow, number: Json, apart: bool) -> None:
    calls = [call("echo one", **number), call("echo two", **number)]
    chunks = [chunk(tool_calls=[each]) for each in calls] if apart else [chunk(tool_calls=calls)]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    run, _, ending = follow(CHAT, Step(inserted=(*chunks, last)), say("Done."))
    assert ending == DONE
    assert [each.input for each in calls_of(run)] == [{"command": "echo one"}, {"command": "echo two"}]
    assert results_of(run) == ["one", "two"]


def test_arguments_in_parts_belong_to_the_newest_call_of_their_number_and_an_object_counts(
    follow: Follow,
) -> None:
    parts = []
    for command in ("echo one", "echo two"):
        whole = call(command, index=0)
        arguments = whole["function"].pop("arguments")
        parts.append(whole)
        parts += [{"index": 0, "function": {"arguments": part}} for part in (arguments[:9], arguments[9:])]
    third = {"name": "bash", "arguments": {"command": "echo three"}}
    chunks = [chunk(tool_calls=[part]) for part in [*parts, {"id": "a", "index": 1, "function": third}]]
    run, _, ending = follow(CHAT, Step(inserted=tuple(chunks)), say("Done."))
    assert ending == DONE
    assert results_of(run) == ["one", "two", "three"]


@pytest.mark.parametrize(
    "delta", [{"refusal": "I will not."}, {"content": [{"type": "text", "text": "I will not."}]}]
)
def test_what_is_said_in_another_field_or_in_parts_is_the_answer(follow: Follow, delta: Json) -> None:
    _, _, ending = follow(CHAT, Step(inserted=(chunk(**delta),)))
    assert ending.output.strip() == "I will not."


@pytest.mark.parametrize(
    ("last", "said"),
    [
        # It has no finish_reason, or none that says something; [DONE] is the end.
        (chunk(content="Done."), "Done."),
        ({"choices": [{"message": {"role": "assistant", "content": "Done."}, "finish_reason": ""}]}, "Done."),
        (chunk(role="assistant", content=""), None),
    ],
    ids=["no reason", "a whole message", "nothing"],
)
@pytest.mark.usefixtures("in_process")
def test_done_is_the_end_of_an_answer_without_a_reason_and_of_nothing_none(
    last: Json, said: str | None
) -> None:
    reader = chat.Reader()
    list(reader.feed(last))
    assert reader.native() is None
    list(reader.feed(END))
    native = reader.native()
    assert (native and chat.answer(native).text) == said


@pytest.mark.parametrize(
    "error",
    [
        {"object": "error", "message": "Too much.", "code": 500},
        {"error": {"code": [], "type": {}}},
        {"choices": [{"delta": {}, "finish_reason": "error", "error": {"message": "Lost."}}]},
    ],
)
def test_an_error_of_any_shape_is_one(error: Json) -> None:
    with pytest.raises(TransientError):
        list(chat.Reader().feed(error))


@pytest.mark.parametrize(
    ("wire", "stop", "said"),
    [
        (ANTHROPIC, "max_tokens", "length"),
        (ANTHROPIC, "refusal", "refusal"),
        (CHAT, "content_filter", "content_filter"),
        (RESPONSES, "length", "length"),
    ],
)
def test_an_answer_that_ended_early_is_said_to_have(
    follow: Follow, tmp_path: Path, wire: Wire, stop: str, said: str
) -> None:
    log = tmp_path / "log"
    _, _, ending = follow(wire, Step("So far", stop=stop), HARNESS_LOG=str(log))
    assert ending == Ending("So far", failed=False)
    assert log.read_text() == f"hs: the answer ended early: {said}\n"


@pytest.mark.parametrize(
    ("named", "url"),
    [
        ("http://h", "http://h/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("http://h/openai/v1?version=2", "http://h/openai/v1/chat/completions?version=2"),
        ("http://h/other?version=2", "http://h/other?version=2"),
    ],
)
def test_an_address_is_completed(named: str, url: str) -> None:
    assert complete(named, "/v1/chat/completions") == url


def test_a_tool_that_fails_without_a_word_is_told_to_have() -> None:
    """The host refuses an empty error, so the session could never go on."""
    failed = Answered(Call("c1", "mine", "{}"), " \n", error=True)
    (result,) = anthropic.messages([failed])[0]["content"]
    assert (result["content"].strip(), result["is_error"]) == ("(no output)", True)


def test_an_empty_text_of_an_answer_is_not_sent_back(follow: Follow) -> None:
    """Its host refuses it, so the session could never go on."""
    empty: tuple[Json, ...] = (
        {"type": "content_block_start", "index": 9, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_stop", "index": 9},
    )
    _, server, ending = follow(ANTHROPIC, Step(thinking="so", uses=CALL, inserted=empty), say("Done."))
    assert ending == DONE
    sent = server.requests[1]["messages"][1]["content"]
    assert [block["type"] for block in sent] == ["thinking", "tool_use"]

"""Thoughts go back to the host that wants them, and hosts that refuse a field are given another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness_lib.loop import hosted, turn
from harness_lib.loop.turn import Ending
from tests.loop.conftest import ANTHROPIC, CHAT, DONE, Follow, Hs, Serve, Wire
from tests.loop.in_process import begun
from tests.loop.servers.script import Json, ModelServer, Step, Use, bash, refuse_unless, say
from tests.loop.source_files import write_provider

CALL = (Use("bash", {"command": "echo hello"}),)


def variant(server: ModelServer, *lines: str, path: str = CHAT.path) -> dict[str, str]:
    """Describe `server` as a provider of its own, and return the environment that chooses it."""
    write_provider("there", f"{server.address}{path}", "model=big-one", "auth_env=THERE_KEY", *lines)
    return {"THERE_KEY": "sesame", "HARNESS_PROVIDER": "there"}


def test_thoughts_that_nobody_may_read_go_back_as_they_came(hs: Hs, serve: Serve) -> None:
    server = serve(
        ANTHROPIC, Step(thinking="hm", redacted="b3BhcXVl", uses=CALL), say("Done."), say("Again.")
    )

    assert hs("RUN it").out == "Done.\n"
    assert hs("--continue", "and now?").out == "Again.\n"

    thoughts = [
        {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
    ]
    for request in server.requests[1:]:
        assert request["messages"][1]["content"][:2] == thoughts
    assert server.refusals == []


def _wants_thoughts(_path: str, body: Json) -> None:
    for message in body["messages"]:
        whole = message["role"] != "assistant" or message.get("reasoning_content")
        refuse_unless(whole, "The `reasoning_content` in the thinking mode must be passed back to the API.")


def _wants_the_field(_path: str, body: Json) -> None:
    """As DeepSeek, of every answer."""
    for message in body["messages"]:
        refuse_unless(message["role"] != "assistant" or "reasoning_content" in message, "Missing field")


def test_a_host_that_demands_its_thoughts_gets_them_back_and_the_field_with_every_answer(
    hs: Hs, serve: Serve
) -> None:
    server = serve(CHAT, Step(thinking="hm", uses=CALL), say("Done."), say("Fine."))
    server.peculiar = _wants_the_field
    env = variant(server, "reasoning_field=reasoning_content")

    hs("RUN it", env=env)
    answer = hs("--continue", "and now?", env=env)

    assert (answer.out, server.refusals) == ("Fine.\n", []), answer.err
    assert server.requests[1]["messages"][2]["reasoning_content"] == "hm"


def test_the_bundled_deepseek_gets_its_thoughts_back(project: Path) -> None:
    run = begun(project, DEEPSEEK_API_KEY="k")
    config = hosted.find_config(run, "deepseek")
    assert config is not None
    assert config.at(run).conf["reasoning_field"] == "reasoning_content"


def test_a_host_that_demands_them_without_being_described_so_is_quoted(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, Step(thinking="hm", uses=CALL), say("Done."))
    server.peculiar = _wants_thoughts

    answer = hs("RUN it", env=variant(server))

    assert (answer.code, answer.out) == (1, "")
    assert "400" in answer.err
    assert "must be passed back" in answer.err
    assert "reasoning_content" not in str(server.requests[1]["messages"])
    assert len(server.refusals) == 1
    server.refusals.clear()


def _wants_signatures(_path: str, body: Json) -> None:
    """As Gemini 3: each call is sent back with its signature, and OpenRouter wants thoughts in one piece."""
    for message in body["messages"]:
        for called in message.get("tool_calls") or []:
            signature = called.get("extra_content")
            refuse_unless(signature == SIGNATURE, "Function call is missing a thought_signature.")
        if message.get("tool_calls"):
            refuse_unless(message.get("reasoning_details") == [DETAIL], "reasoning_details are missing")


SIGNATURE = {"google": {"thought_signature": "c2lnbmVk"}}
DETAIL = {"type": "reasoning.text", "index": 0, "text": "One two", "signature": "c2ln", "format": "f"}


@pytest.mark.parametrize("identity", ["a", ""])
def test_what_a_host_has_signed_goes_back_as_it_came(follow: Follow, identity: str) -> None:
    called = {"id": identity, "index": 0, "function": {"name": "bash", "arguments": '{"command": "echo hi"}'}}
    parts = [{**DETAIL, "text": "One", "signature": None}, {**DETAIL, "text": " two"}]
    deltas: list[Json] = [*({"reasoning_details": [part]} for part in parts)]
    deltas.append({"tool_calls": [{**called, "extra_content": SIGNATURE}]})
    chunks = tuple({"choices": [{"index": 0, "delta": delta}]} for delta in deltas)
    run, server, ending = follow(CHAT, Step(inserted=chunks, stop="tool_calls"), say("Done."))
    assert ending == DONE
    _wants_signatures("", server.requests[1])

    # Another model is told of the call alone.
    run.model = "model-two"
    turn.follow(run)
    assert "c2ln" not in str(server.requests[2])


@pytest.mark.parametrize("arguments", ["{", '{"a": NaN}', "null"])
def test_arguments_that_no_host_reads_do_not_go_back_with_thoughts(
    follow: Follow, wire: Wire, arguments: str
) -> None:
    """llama.cpp answers 500 to each request that repeats them."""
    spoiled = Step(thinking="so", uses=(Use("bash", raw=arguments),))
    assert follow(wire, spoiled, say("Done."))[2] == DONE


@pytest.mark.parametrize("stop", ["", "length"])
def test_thoughts_that_nothing_followed_do_not_go_back(follow: Follow, wire: Wire, stop: str) -> None:
    """Hosts refuse them without the text or the call that belongs to them, for the rest of the session."""
    run, _, ending = follow(wire, Step(thinking="hm", stop=stop), say("Done."))
    assert ending == Ending("", failed=False)
    run.session.append("user", {}, "and now?")
    assert turn.follow(run) == DONE


# What a host refuses, the line that helps, and the host's words.
PECULIAR: list[tuple[Callable[[str, Json], bool], str, str]] = [
    (
        lambda _, body: "max_tokens" in body, "max_tokens_field=max_completion_tokens",
        "'max_tokens' is not supported with this model. Use 'max_completion_tokens'.",
    ),
    (lambda _, body: "max" in " ".join(body), "max_tokens_field=none", "this host takes no limit"),
    # As Mistral.
    (lambda _, body: "stream_options" in body, "stream_options=none", "stream_options: Extra inputs"),
    (
        lambda path, body: path != "/v1/responses" and bool(body.get("tools")), "wire=responses",
        "Function tools are not supported in /v1/chat/completions. Use /v1/responses.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("refused", "line", "said"), PECULIAR, ids=[line for _, line, _ in PECULIAR])
def test_a_host_that_refuses_a_field_is_quoted_and_a_line_of_its_conf_gives_it_another(
    hs: Hs, serve: Serve, refused: Callable[[str, Json], bool], line: str, said: str
) -> None:
    server = serve(CHAT, bash("echo hello"), say("Done."))
    server.peculiar = lambda path, body: refuse_unless(not refused(path, body), said)
    path = "/v1/responses" if line.startswith("wire") else CHAT.path

    plain = hs("RUN it", env=variant(server))
    asked = len(server.requests)
    described = hs("RUN it", env=variant(server, line, path=path))

    assert (plain.code, asked) == (1, 1), plain.err
    assert said in plain.err
    assert described.code == 0, described.err
    assert len(server.refusals) == 1
    server.refusals.clear()

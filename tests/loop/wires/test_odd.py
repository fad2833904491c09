"""What others have written and what the surroundings lack ends nothing: odd hosts and answers."""

from __future__ import annotations

import gzip
import json
import os
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta, timezone
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from harness_lib.loop import turn
from harness_lib.loop.context import Answered
from harness_lib.loop.piped import ProviderError, TransientError
from harness_lib.loop.session import Call
from harness_lib.loop.turn import Ending
from harness_lib.loop.wires import anthropic, chat, http
from harness_lib.loop.wires.answer import END, broken_off, complete
from tests.conftest import for_release
from tests.loop.conftest import ANTHROPIC, CHAT, DONE, RESPONSES, Follow, Hs, Serve, Wire
from tests.loop.in_process import calls_of, results_of, started
from tests.loop.servers.script import Json, Quiet, Step, Use, say

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


def test_a_host_that_says_nothing_is_asked_again(
    follow: Follow, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "SILENCE_SECONDS", 2.0)
    _, _, ending = follow(wire, Step(silent=True), say("Done."))
    assert ending == DONE


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep more connections waiting")
def test_a_host_that_takes_no_connection_is_waited_for_shorter_than_one_that_thinks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (http.CONNECT_SECONDS, http.SILENCE_SECONDS) == (10.0, 300.0)
    monkeypatch.setattr(http, "CONNECT_SECONDS", 0.5)
    kept: dict[str, Any] = {}
    with ExitStack() as sockets:
        deaf = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        # Whoever stands before us leaves no room: the system does not even answer.
        for _ in range(4):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        port = deaf.getsockname()[1]

        with pytest.raises(TransientError, match=r"cannot be reached: (?!it said nothing)"):
            list(http.events(kept, f"http://127.0.0.1:{port}/v1/messages", {}, {}))
    http.forget(kept)


class _Endless(Quiet):
    """Sends the class's `chunk` until the client hangs up; one that is packed only once."""

    status, kind, chunk = 200, "text/event-stream", b""

    def do_POST(self) -> None:
        self.body()
        self.send_response(self.status)
        self.send_header("content-type", self.kind)
        if is_packed := self.chunk.startswith(gzip.compress(b"")[:3]):
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(self.chunk)
            while not is_packed:
                self.wfile.write(self.chunk)


class _Once(Quiet):
    """Sends the class's `data`, once."""

    kind, encoding, data = "text/event-stream", "identity", b""

    def do_POST(self) -> None:
        self.body()
        self.send(200, self.kind, self.data, (("content-encoding", self.encoding),))


def heard(handler: type[Quiet], **sent: object) -> list[object]:
    """Return the events of an answer that a server sends so. Its address has a password."""
    kept: dict[str, object] = {}
    with HTTPServer(("127.0.0.1", 0), type("Sent", (handler,), sent)) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        try:
            return list(
                http.events(kept, f"http://u:secret@127.0.0.1:{server.server_port}/v1?key=secret", {}, {})
            )
        finally:
            http.forget(kept)


def test_types_in_capitals_and_a_byte_order_mark_change_nothing() -> None:
    assert heard(_Once, kind="Application/JSON", data=b'{"a": 1}') == [{"a": 1}]
    assert heard(_Once, kind="Text/Event-Stream", data="\ufeffdata: ä\r\rdata: b\r\n\r\n".encode()) == [
        "ä",
        "b",
    ]
    assert heard(_Once, encoding="gzip", data=gzip.compress(b"data: a\n\n")) == ["a"]


def test_an_answer_that_is_packed_wrongly_is_asked_again_and_no_password_is_shown() -> None:
    with pytest.raises(TransientError, match=r"at http://127\.0\.0\.1:[0-9]+/v1 cannot be reached"):
        heard(_Once, encoding="gzip", data=b"not gzip")


def test_a_proxy_that_takes_no_connection_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, object] = {}
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HTTP_PROXY", f"http://u:secret@127.0.0.1:{closed.getsockname()[1]}")
        monkeypatch.setenv("http_proxy", os.environ["HTTP_PROXY"])
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(TransientError, match=r"by way of the proxy http://127\.0\.0\.1:\d+\."):
            list(http.events(kept, "http://models.example/v1", {}, {}))
    http.forget(kept)


class _Refuses(Quiet):
    """A proxy that wants another password."""

    def do_CONNECT(self) -> None:
        self.send(407, "text/plain", b"")

    do_POST = do_CONNECT


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_refuses_is_named_and_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    kept: dict[str, object] = {}
    with HTTPServer(("127.0.0.1", 0), _Refuses) as proxy:
        threading.Thread(target=proxy.handle_request, daemon=True).start()
        for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper()):
            monkeypatch.setenv(name, f"http://u:secret@127.0.0.1:{proxy.server_port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(ProviderError, match=r"407.* proxy .*\.$") as refused:
            list(http.events(kept, f"{scheme}://models.example/v1", {}, {}))
    http.forget(kept)
    assert not isinstance(refused.value, TransientError)
    assert "secret" not in str(refused.value)


def test_a_proxy_that_cannot_be_used_concerns_no_host_that_is_asked_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "socks5://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    assert heard(_Once, data=b"data: a\n\n") == ["a"]
    with pytest.raises(ProviderError, match="The proxy that"):
        list(http.events({}, "http://models.example/v1", {}, {}))


def test_a_certificate_that_is_not_trusted_is_not_asked_again(tmp_path: Path) -> None:
    kept: dict[str, object] = {}
    with HTTPServer(("127.0.0.1", 0), _Once) as server:
        server.socket = self_signed(tmp_path).wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(ProviderError, match=r"is not trusted: .*SSL_CERT_FILE") as caught:
            list(http.events(kept, f"https://127.0.0.1:{server.server_port}/v1", {}, {}))
    http.forget(kept)
    assert not isinstance(caught.value, TransientError)


def self_signed(directory: Path) -> ssl.SSLContext:
    """Return what a server needs for a certificate that nobody has signed."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(timezone.utc)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    signed = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = directory / "both.pem"
    path.write_bytes(secret + signed)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def test_an_invalid_address_is_named_without_its_password(hs: Hs) -> None:
    said = hs("go", env={"OPENAI_API_URL": "http://u:secret@[::1"})
    assert (said.code, "Invalid provider URL: http://[::1" in said.err) == (7, True), said.err
    assert "secret" not in said.err


@pytest.mark.parametrize("value", ["inf", "nan", "soon", "9" * 400])
def test_a_retry_after_that_is_no_length_of_time_is_ignored(value: str) -> None:
    assert http._retry_after(value) is None


@pytest.mark.parametrize(
    ("status", "kind", "chunk"),
    [
        (200, "text/event-stream", b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'),
        (400, "text/html", b"<br>" * 1000),
        (200, "application/json", gzip.compress(b" " * 1_000_001)),
        *for_release(
            (200, "text/event-stream", gzip.compress(b"data: {}\n\n" * 500_001)),
            (200, "text/event-stream", b": says nothing that is read\n\n"),
            (200, "application/json", b" " * 1000),
        ),
    ],
)
def test_an_answer_without_an_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch, status: int, kind: str, chunk: bytes
) -> None:
    monkeypatch.setattr(http, "ANSWER_LIMIT", 1_000_000)
    with pytest.raises(ProviderError, match="sent more than 1000000 bytes without an end") as caught:
        heard(_Endless, status=status, kind=kind, chunk=chunk)
    assert not isinstance(caught.value, TransientError)


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
def test_an_event_of_another_shape_changes_nothing(follow: Follow, wire: Wire, event: Json) -> None:
    _, _, ending = follow(wire, Step("Done.", inserted=(event,)))
    assert (ending.failed, ending.output.removeprefix("{}")) == (False, "Done.")


def test_how_an_answer_ended_is_not_forgotten_for_a_later_event() -> None:
    reader = anthropic.Reader()
    for delta in ({"stop_reason": "max_tokens"}, {}):
        list(reader.feed({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}))
    list(reader.feed({"type": "message_stop"}))
    assert (reader.native() or {})["stop_reason"] == "max_tokens"


def test_an_answer_that_is_nested_without_end_is_asked_again(follow: Follow, wire: Wire) -> None:
    deep = "[" * 100_000
    run, _, ending = follow(wire, Step(uses=(Use("bash", raw=deep),)), say("Done."))
    assert ending == DONE
    assert "are not a JSON object" in results_of(run)[0]


@pytest.mark.usefixtures("in_process")
def test_a_character_that_comes_in_two_halves_is_one(serve: Serve, home: Path, project: Path) -> None:
    halves = tuple(chunk(content=half) for half in HALVES)
    server = serve(CHAT, Step("Done.", inserted=halves))
    run = started(home, project, CHAT, server)
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
    run, _, ending = follow(wire, Step(uses=(Use("bash", {"command": command}),)), say("Done."))
    assert ending == DONE
    assert heard in results_of(run)[0]


def test_a_time_that_is_too_large_to_calculate_with_is_a_long_one(follow: Follow) -> None:
    long = Use("bash", raw=f'{{"command": "echo x", "timeout": {"9" * 400}}}')
    run, _, ending = follow(CHAT, Step(uses=(long,)), say("Done."))
    assert (ending, results_of(run)) == (DONE, ["x"])


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_no_json_has_reaches_no_host(follow: Follow, wire: Wire, number: str) -> None:
    """A host cannot read the request that repeats it, so the session could never go on."""
    odd = Use("bash", raw=f'{{"command": "echo x", "other": {number}}}')
    run, server, ending = follow(wire, Step(uses=(odd,)), say("Done."))
    assert ending == DONE
    assert "are not a JSON object" in results_of(run)[0]
    assert len(server.requests) == 2


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
        parts += [
            whole,
            *({"index": 0, "function": {"arguments": part}} for part in (arguments[:9], arguments[9:])),
        ]
    parts.append(
        {"id": "a", "index": 1, "function": {"name": "bash", "arguments": {"command": "echo three"}}}
    )
    run, _, ending = follow(
        CHAT, Step(inserted=tuple(chunk(tool_calls=[part]) for part in parts)), say("Done.")
    )
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
        (
            {
                "choices": [
                    {"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": ""}
                ]
            },
            "Done.",
        ),
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


@pytest.mark.parametrize(("code", "kind"), [(502, TransientError), (402, ProviderError)])
def test_an_error_with_the_status_of_an_answer_is_asked_about_again_if_it_may_pass(
    code: int, kind: type[ProviderError]
) -> None:
    """As OpenRouter sends one that comes after its own 200."""
    error = {"error": {"code": code, "message": "Provider returned error"}}
    with pytest.raises(ProviderError, match="Provider returned error") as caught:
        heard(_Once, kind="application/json", data=json.dumps(error).encode())
    assert caught.type is kind


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
    assert [block["type"] for block in server.requests[1]["messages"][1]["content"]] == [
        "thinking",
        "tool_use",
    ]

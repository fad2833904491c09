"""What comes over a connection, or does not: silence, proxies, certificates, packing, and no end."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import sys
import threading
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta, timezone
from http.server import HTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from harness_lib.loop.piped import ProviderError, TransientError
from harness_lib.loop.wires import http
from tests.conftest import for_release
from tests.loop.conftest import DONE, Follow, Hs, Wire
from tests.loop.servers.script import Quiet, Step, say


def test_a_host_that_says_nothing_is_asked_again(
    follow: Follow, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "SILENCE_SECONDS", 2.0)
    _, _, ending = follow(wire, Step(silent=True), say("Done."))
    assert ending == DONE


def asked(url: str) -> list[object]:
    """Return the events of what `url` answers."""
    kept: dict[str, object] = {}
    try:
        return list(http.events(kept, url, {}, {}))
    finally:
        http.forget(kept)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep more connections waiting")
def test_a_host_that_takes_no_connection_is_waited_for_shorter_than_one_that_thinks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (http.CONNECT_SECONDS, http.SILENCE_SECONDS) == (10.0, 300.0)
    monkeypatch.setattr(http, "CONNECT_SECONDS", 0.5)
    with ExitStack() as sockets:
        deaf = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        # Whoever stands before us leaves no room: the system does not even answer.
        for _ in range(4):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        port = deaf.getsockname()[1]

        with pytest.raises(TransientError, match=r"cannot be reached: (?!it said nothing)"):
            asked(f"http://127.0.0.1:{port}/v1/messages")


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
    with HTTPServer(("127.0.0.1", 0), type("Sent", (handler,), sent)) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        return asked(f"http://u:secret@127.0.0.1:{server.server_port}/v1?key=secret")


def test_types_in_capitals_and_a_byte_order_mark_change_nothing() -> None:
    assert heard(_Once, kind="Application/JSON", data=b'{"a": 1}') == [{"a": 1}]
    data = "\ufeffdata: ä\r\rdata: b\r\n\r\n".encode()
    assert heard(_Once, kind="Text/Event-Stream", data=data) == ["ä", "b"]
    assert heard(_Once, encoding="gzip", data=gzip.compress(b"data: a\n\n")) == ["a"]


def test_an_answer_that_is_packed_wrongly_is_asked_again_and_no_password_is_shown() -> None:
    with pytest.raises(TransientError, match=r"at http://127\.0\.0\.1:[0-9]+/v1 cannot be reached"):
        heard(_Once, encoding="gzip", data=b"not gzip")


@pytest.mark.parametrize(("code", "kind"), [(502, TransientError), (402, ProviderError)])
def test_an_error_with_the_status_of_an_answer_is_asked_about_again_if_it_may_pass(
    code: int, kind: type[ProviderError]
) -> None:
    """As OpenRouter sends one that comes after its own 200."""
    error = {"error": {"code": code, "message": "Provider returned error"}}
    with pytest.raises(ProviderError, match="Provider returned error") as caught:
        heard(_Once, kind="application/json", data=json.dumps(error).encode())
    assert caught.type is kind


def use_proxy(monkeypatch: pytest.MonkeyPatch, scheme: str, address: str, *, but_not: str = "") -> None:
    """Let this be the proxy of addresses that begin with `scheme`."""
    for name, value in ((f"{scheme}_proxy", address), ("no_proxy", but_not)):
        monkeypatch.setenv(name, value)
        monkeypatch.setenv(name.upper(), value)


def test_a_proxy_that_takes_no_connection_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        use_proxy(monkeypatch, "http", f"http://u:secret@127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(TransientError, match=r"by way of the proxy http://127\.0\.0\.1:\d+\."):
            asked("http://models.example/v1")


class _Refuses(Quiet):
    """A proxy that wants another password."""

    def do_CONNECT(self) -> None:
        self.send(407, "text/plain", b"")

    do_POST = do_CONNECT


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_refuses_is_named_and_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    with HTTPServer(("127.0.0.1", 0), _Refuses) as proxy:
        threading.Thread(target=proxy.handle_request, daemon=True).start()
        use_proxy(monkeypatch, scheme, f"http://u:secret@127.0.0.1:{proxy.server_port}")
        with pytest.raises(ProviderError, match=r"407.* proxy .*\.$") as refused:
            asked(f"{scheme}://models.example/v1")
    assert not isinstance(refused.value, TransientError)
    assert "secret" not in str(refused.value)


def test_a_proxy_that_cannot_be_used_concerns_no_host_that_is_asked_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_proxy(monkeypatch, "all", "socks5://127.0.0.1:9", but_not="127.0.0.1")
    assert heard(_Once, data=b"data: a\n\n") == ["a"]
    with pytest.raises(ProviderError, match="The proxy that"):
        asked("http://models.example/v1")


def test_a_certificate_that_is_not_trusted_is_not_asked_again(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), _Once) as server:
        server.socket = self_signed(tmp_path).wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(ProviderError, match=r"is not trusted: .*SSL_CERT_FILE") as caught:
            asked(f"https://127.0.0.1:{server.server_port}/v1")
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


@pytest.mark.parametrize(
    "value",
    ["inf", "nan", "soon", "9" * 400, "-5", "0", pytest.param("Wed, 21 Oct 2015 07:28:00 GMT", id="past")],
)
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

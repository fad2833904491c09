"""Log in: open the browser, and exchange the code that it brings back for tokens.

The verifier stays in this process, so a stolen code is worth nothing without it; the
state tells our browser's answer from one that another page has made up.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import select
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer
from urllib.parse import parse_qsl, urlencode, urlsplit

from harness_lib.loop import disk, keys
from harness_lib.loop.keys import Client
from harness_lib.loop.piped import Json, ProviderError
from harness_lib.text import harmless

_SHOWN = 300
# Browsers open connections in advance and send nothing on them; the next one waits for so long.
_REQUEST_SECONDS = 1.0
_PAGE = """\
<!doctype html><html><head><meta charset="utf-8"><title>hs</title></head>
<body><p>{words}</p></body></html>
"""
_DONE = "You can close this window and go back to the terminal."
_FOREIGN = "Unexpected callback: the state does not match the current login."
_SECONDS = 600.0
_LONGEST = 64 * 1024


@dataclass(frozen=True)
class Attempt:
    """Two random values: `state` goes through the browser, `verifier` straight to the server."""

    client: Client
    redirect_uri: str
    state: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(64), repr=False)

    @property
    def url(self) -> str:
        """The address at which the user logs in."""
        values = self.client.values
        challenge = hashlib.sha256(self.verifier.encode()).digest()
        parameters = {
            "response_type": "code",
            "client_id": values["client_id"],
            "redirect_uri": self.redirect_uri,
            **({"scope": values["scope"]} if values.get("scope") else {}),
            "state": self.state,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            **dict(parse_qsl(values.get("authorize_params", ""))),
        }
        address = values["authorize_url"]
        return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(parameters)}"

    def is_ours(self, parameters: dict[str, str]) -> bool:
        """Return whether `parameters` answer this login."""
        return hmac.compare_digest(parameters.get("state", "").encode(), self.state.encode())

    def code(self, parameters: dict[str, str]) -> str:
        """Return the code in an answer to this login. Raises ProviderError with the words of the server."""
        if parameters.get("error"):
            problem = parameters.get("error_description") or parameters["error"]
            raise ProviderError(f"The login was refused: {harmless(problem)[:_SHOWN]}")
        if not parameters.get("code"):
            raise ProviderError("The login came back without a code.")
        return parameters["code"]

    def pasted(self, text: str) -> str:
        """Return the code in what the user has pasted: the code, `CODE#STATE`, or the whole address.

        Raises ProviderError for a text without a code, or one of another login.
        """
        text = text.strip()
        if "?" in text or "code=" in text or "error=" in text:
            parameters = dict(parse_qsl(urlsplit(text).query or text))
        else:
            code, _, state = text.partition("#")
            # Without a state, trust the user that the code belongs to this login.
            parameters = {"code": code, "state": state or self.state}
        if not self.is_ours(parameters):
            raise ProviderError("This belongs to another login.")
        return self.code(parameters)


class Listener(TCPServer):
    """Hears the browser; the first answer to `attempt` is in `parameters`."""

    # Not http.server's own: it asks for the name of this machine, which may take seconds.
    allow_reuse_address = True

    def __init__(self, port: int) -> None:
        """Listen at `port`, 0: any. Raises OSError where another program has it."""
        super().__init__(("127.0.0.1", port), _Handler)
        self.port: int = self.server_address[1]
        self.parameters: dict[str, str] | None = None
        self.attempt: Attempt | None = None

    def take(self, path: str, parameters: dict[str, str]) -> int:
        """Return the HTTP status for a request; keep the first answer to our login."""
        attempt = self.attempt
        if not attempt or path != _path(attempt.client):
            return 404
        if not attempt.is_ours(parameters):
            return 400
        self.parameters = parameters
        return 200

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a browser that hangs up; a traceback could hold the code."""


class _Handler(BaseHTTPRequestHandler):
    server: Listener
    timeout = _REQUEST_SECONDS

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        status = self.server.take(address.path, dict(parse_qsl(address.query)))
        page = _PAGE.format(words=_DONE if status == 200 else _FOREIGN).encode()  # noqa: PLR2004 (OK)
        self.send_response(status)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(page)))
        # The address holds the code: it must not be passed on.
        self.send_header("referrer-policy", "no-referrer")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *args: object) -> None:
        """Say nothing: the address has the code in it."""


def _path(client: Client) -> str:
    return client.values.get("redirect_path", "/callback")


def _port(client: Client) -> int:
    """Return the port to listen at; 0: any that is free, as servers allow for local programs."""
    return disk.number(client.values.get("redirect_port", ""))


def log_in(client: Client) -> Json:
    """Return the credential that the user gives by logging in. Raises ProviderError."""
    keys.check_login(client)
    with _terminal() as terminal, _listener(client, can_paste=terminal is not None) as listener:
        port = listener.port if listener else _port(client)
        host = client.values.get("redirect_host", "127.0.0.1")
        attempt = Attempt(client, f"http://{host}:{port}{_path(client)}")
        if listener:
            listener.attempt = attempt
        _say(f"Open this address in a browser to log in to {client.name}:\n\n  {attempt.url}\n")
        if terminal is not None:
            _say("Where the browser cannot come back to this machine, paste the address that it ends up at:")
        remote = any(os.environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY"))
        screen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        # Without a screen Python would start a text browser in this terminal.
        if os.environ.get("BROWSER") or (screen and not remote):
            threading.Thread(target=_opened, args=(attempt.url,), daemon=True).start()
        code = _code(attempt, listener, terminal)
        return keys.exchange(client, code, attempt.redirect_uri, attempt.verifier)


def _code(attempt: Attempt, listener: Listener | None, terminal: int | None) -> str:
    """Return the code, from whichever comes first: the browser, or the user who pastes it."""
    deadline = time.monotonic() + _SECONDS
    watched = [each for each in (listener, terminal) if each is not None]
    while True:
        ready, _, _ = select.select(watched, [], [], max(0.0, deadline - time.monotonic()))
        if listener and listener in ready:
            listener.handle_request()
            if listener.parameters is not None:
                return attempt.code(listener.parameters)
        if terminal in ready and terminal is not None:
            line = os.read(terminal, _LONGEST).decode("utf-8", "replace")
            if not line:
                watched.remove(terminal)
            elif line.strip():
                try:
                    return attempt.pasted(line)
                except ProviderError as error:
                    _say(f"{error} Paste it again, or Ctrl-C.")
        if not watched or not ready:
            message = f"Nobody has logged in within {_SECONDS / 60:.0f} minutes"
            raise ProviderError(f"{message}: hs auth login {attempt.client.name}")


@contextmanager
def _listener(client: Client, *, can_paste: bool) -> Iterator[Listener | None]:
    """Listen for the browser; if the port is taken, only pasting is left."""
    try:
        listener = Listener(_port(client))
    except OSError as error:
        problem = f"Another program listens at port {_port(client)} ({error.strerror})"
        if not can_paste or not _port(client):
            raise ProviderError(f"{problem}; end it, then: hs auth login {client.name}") from error
        _say(f"{problem}, so the browser's last page will be an error; its address is what is wanted here.")
        yield None
        return
    with listener:
        yield listener


@contextmanager
def _terminal() -> Iterator[int | None]:
    """Open the terminal at which the user may paste; None without one."""
    try:
        descriptor = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _opened(url: str) -> None:
    with suppress(webbrowser.Error):
        webbrowser.open(url)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()

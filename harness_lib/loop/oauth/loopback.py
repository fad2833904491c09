"""Listen on 127.0.0.1 for the one answer with which the browser comes back."""

from __future__ import annotations

import os
import threading
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from types import TracebackType
from urllib.parse import parse_qsl, urlsplit

from harness_lib.loop.oauth.attempt import Attempt

_SECONDS = 10.0
_PAGE = """\
<!doctype html><html><head><meta charset="utf-8"><title>hs</title></head>
<body><p>{words}</p></body></html>
"""
_DONE = "You can close this window and go back to the terminal."
_FOREIGN = "This is no answer to the login that is under way."


class Listener:
    """Context manager. `descriptor` can be read when an answer has come; it is in `parameters` then."""

    def __init__(self, port: int) -> None:
        """Listen at `port`, 0: any. Raises OSError where another program has it."""
        self.descriptor, self._wake = os.pipe()
        self.parameters: dict[str, str] | None = None
        self.attempt: Attempt | None = None
        self._lock = threading.Lock()
        try:
            self._server = _Server(("127.0.0.1", port), _Handler)
        except OSError:
            self._close()
            raise
        self._server.listener = self
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> Listener:  # noqa: PYI034 (`Self` came with Python 3.11)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._close()

    def take(self, path: str, parameters: dict[str, str]) -> int:
        """Return the HTTP status for a request; keep the first answer to our login."""
        attempt = self.attempt
        if attempt is None or path != attempt.client.redirect_path:
            return 404
        if not attempt.is_ours(parameters):
            return 400
        with self._lock:
            if self.parameters is None:
                self.parameters = parameters
                os.write(self._wake, b".")
        return 200

    def _close(self) -> None:
        os.close(self.descriptor)
        os.close(self._wake)


class _Server(ThreadingMixIn, TCPServer):
    # Not http.server's own: it asks for the name of this machine, which may take seconds.
    allow_reuse_address = True
    # Browsers open connections in advance and say nothing on them: each has a thread that nobody waits for.
    daemon_threads = True
    block_on_close = False
    listener: Listener

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a browser that hangs up is nobody's fault, and a traceback could hold the code."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _SECONDS

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        status = self.server.listener.take(address.path, dict(parse_qsl(address.query)))
        page = _PAGE.format(words=_DONE if status == 200 else _FOREIGN).encode()  # noqa: PLR2004 (OK)
        self.send_response(status)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(page)))
        # The address has the code in it: it is to be told to nobody.
        self.send_header("referrer-policy", "no-referrer")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *args: object) -> None:
        """Say nothing: the address has the code in it."""

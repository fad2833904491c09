"""Log in: the browser is opened, and what comes back from it is exchanged for tokens."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from harness_lib.loop.failures import ProviderError
from harness_lib.loop.oauth import tokens
from harness_lib.loop.oauth.attempt import Attempt
from harness_lib.loop.oauth.client import Client
from harness_lib.loop.oauth.loopback import Listener
from harness_lib.loop.piped import Json

_SECONDS = 600.0
_LONGEST = 64 * 1024


def log_in(client: Client) -> Json:
    """Return the credential that a person gives by logging in. Raises ProviderError."""
    with _terminal() as terminal, _listener(client, can_paste=terminal is not None) as listener:
        port = listener.port if listener else client.redirect_port
        attempt = Attempt(client, client.redirect_uri(port))
        if listener is not None:
            listener.attempt = attempt
        _say(f"Open this address in a browser to log in to {client.name}:\n\n  {attempt.url}\n")
        if terminal is not None:
            _say("Where the browser cannot come back to this machine, paste the address that it ends up at:")
        _open(attempt.url)
        code = _code(attempt, listener, terminal)
        return tokens.exchange(client, code, attempt.redirect_uri, attempt.verifier)


def _code(attempt: Attempt, listener: Listener | None, terminal: int | None) -> str:
    """Return the code, from whichever comes first: the browser, or a person who pastes it."""
    deadline = time.monotonic() + _SECONDS
    watched = [*([listener.descriptor] if listener else []), *([terminal] if terminal is not None else [])]
    while True:
        ready, _, _ = select.select(watched, [], [], max(0.0, deadline - time.monotonic()))
        if listener is not None and listener.parameters is not None:
            return attempt.code(listener.parameters)
        if terminal in ready and terminal is not None:
            line = os.read(terminal, _LONGEST).decode("utf-8", "replace")
            if not line:
                watched.remove(terminal)
            elif line.strip():
                with _explained():
                    return attempt.pasted(line)
        if not watched or not ready:
            minutes = f"{_SECONDS / 60:.0f}"
            raise ProviderError(f"Nobody has logged in within {minutes} minutes: {attempt.client.command}")


@contextmanager
def _explained() -> Iterator[None]:
    """Say what was wrong with what was pasted, and let the person try again."""
    try:
        yield
    except ProviderError as error:
        _say(f"{error} Paste it again, or Ctrl-C.")


@contextmanager
def _listener(client: Client, *, can_paste: bool) -> Iterator[Listener | None]:
    """Listen for the browser; where another program has the port, pasting is left."""
    try:
        listener = Listener(client.redirect_port)
    except OSError as error:
        problem = f"Another program listens at port {client.redirect_port} ({error.strerror})"
        if not can_paste or not client.redirect_port:
            raise ProviderError(f"{problem}; end it, then: {client.command}") from error
        _say(f"{problem}, so the browser's last page will be an error; its address is what is wanted here.")
        yield None
        return
    with listener:
        yield listener


@contextmanager
def _terminal() -> Iterator[int | None]:
    """Open the terminal at which somebody may paste; None where there is none."""
    try:
        descriptor = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(url: str) -> None:
    """Open the person's browser where there is a screen; the address is shown anyway."""
    remote = any(os.environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY"))
    screen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    # Without a screen Python would take a browser for terminals, which would take ours.
    if os.environ.get("BROWSER") or (screen and not remote):
        threading.Thread(target=_opened, args=(url,), daemon=True).start()


def _opened(url: str) -> None:
    with suppress(webbrowser.Error):
        webbrowser.open(url)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()

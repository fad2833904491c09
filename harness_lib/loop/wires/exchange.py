"""A request and its answer, over whichever API; what streams in goes to the session's events.

What may pass is asked again: with the pause that the host asks for, or growing ones, and not for ever.
"""

from __future__ import annotations

from importlib import import_module
from random import random
from time import sleep
from typing import TYPE_CHECKING, cast

from harness_lib.loop.piped import (
    Json,
    ProviderError,
    TransientError,
    UnauthorizedError,
    parse_object,
    writable,
)
from harness_lib.loop.wires.answer import END

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime
    from harness_lib.loop.wires.answer import Endpoint, Wire, WireName


ATTEMPTS = 6
LONGEST_PAUSE = 60.0


def wire(name: WireName) -> Wire:
    """Return the API adapter, which is the module `name`; the others are not loaded."""
    return cast("Wire", import_module(f"{__package__}.{name}"))


def ask(runtime: Runtime, endpoint: Endpoint, payload: Json, *, quiet: bool = False) -> Json:
    """Return the whole native answer to `payload`; `quiet`: it is not streamed. Raises ProviderError.

    After a TransientError the host is asked again, and the user told; the last one is raised.
    """
    for key in ("messages", "tools"):
        objects = payload.get(key) or []
        if not isinstance(objects, list) or not all(isinstance(each, dict) for each in objects):
            # A hook has made it.
            message = f"The stage assemble ended with {key} that are not a list of objects."
            raise ProviderError(f"{message} See hs hooks assemble.")
    body = wire(endpoint.wire).body(payload, endpoint)
    for again in range(1, ATTEMPTS):
        try:
            return _authorized(runtime, endpoint, body, quiet=quiet)
        except TransientError as error:
            # Clients that were refused together must not come back together.
            pause = 2.0 ** (again - 1) + random() if error.after is None else error.after  # noqa: S311
            # Do not wait for hours.
            if pause > LONGEST_PAUSE:
                raise
            said = f"{error} Asking again in {pause:.0f} s ({again} of {ATTEMPTS - 1})."
        runtime.log(f"hs: {said}")
        runtime.stream.emit("retry", message=said)
        sleep(pause)
    return _authorized(runtime, endpoint, body, quiet=quiet)


def _authorized(runtime: Runtime, endpoint: Endpoint, body: Json, *, quiet: bool) -> Json:
    """Ask with the headers of a login, and once more with renewed ones where those are refused."""
    login, refused = endpoint.login, ""
    while True:
        headers = login(endpoint.headers, refused) if login else endpoint.headers
        try:
            return _once(runtime, endpoint._replace(headers=headers), body, quiet=quiet)
        except UnauthorizedError as error:
            if login is None or refused:
                advice = f"Log in again: hs auth login {endpoint.provider}" if login else "Check the key."
                raise ProviderError(f"{error} {advice}") from error
        refused = headers["authorization"]


def _once(runtime: Runtime, endpoint: Endpoint, body: Json, *, quiet: bool) -> Json:
    from harness_lib.loop.wires import http  # noqa: PLC0415 (its package takes long to import)

    reader = wire(endpoint.wire).Reader()
    texts: list[str] = []
    held = ""
    try:
        for data in http.events(runtime.kept, endpoint.url, endpoint.headers, body):
            if isinstance(data, dict):
                return writable(data)
            is_end = data.strip() == "[DONE]"
            event = END if is_end else parse_object(data)
            for shown in reader.feed(event) if event else ():
                if quiet:
                    continue
                values = shown.values
                if shown.kind == "text":
                    held, values = _without_half(held, values["text"])
                    texts.append(values["text"])
                runtime.stream.emit(shown.kind, **writable(values))
            if is_end:
                break
        native = reader.native()
        if native is None:
            raise TransientError("The provider's answer was cut off.")
    except ProviderError as error:
        _keep(runtime, endpoint, "".join(texts), str(error))
        raise
    return writable(native)


def _without_half(held: str, text: str) -> tuple[str, Json]:
    """Return the half of a surrogate pair that `text` ends with, or "", and what can be shown by now."""
    text = held + text
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return half, writable({"text": text.removesuffix(half)})


def _keep(runtime: Runtime, endpoint: Endpoint, text: str, why: str) -> None:
    """Keep the text of a failed answer; no engine replays a message of this role."""
    if text:
        fields = {"model": endpoint.model, "provider": endpoint.provider, "stop": "error", "error": why}
        runtime.session.append("error", fields, text)

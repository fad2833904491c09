"""A request and its answer, over whichever wire; what streams in goes to the session's events."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from harness_lib.loop.failures import ProviderError, TransientError
from harness_lib.loop.piped import Json, as_object
from harness_lib.loop.wires import anthropic, chat, http, responses, retry
from harness_lib.loop.wires.answer import Wire

if TYPE_CHECKING:
    from harness_lib.loop.providers.endpoint import Endpoint
    from harness_lib.loop.runtime import Runtime

_WIRES = {"anthropic": anthropic, "chat": chat, "responses": responses}


def wire(name: str) -> Wire:
    """Return the wire `name`."""
    return cast("Wire", _WIRES[name])


def ask(runtime: Runtime, endpoint: Endpoint, payload: Json, *, quiet: bool = False) -> Json:
    """Return the whole native answer to `payload`; `quiet`: nobody sees it come. Raises ProviderError."""
    body = wire(endpoint.wire).body(payload, endpoint)

    def told(text: str) -> None:
        runtime.log(f"hs: {text}")
        runtime.stream.emit("retry", message=text)

    return retry.until_answered(lambda: _once(runtime, endpoint, body, quiet=quiet), told)


def _once(runtime: Runtime, endpoint: Endpoint, body: Json, *, quiet: bool) -> Json:
    reader = wire(endpoint.wire).reader()
    said: list[str] = []
    try:
        for data in http.events(runtime.kept, endpoint.url, endpoint.headers, body):
            if isinstance(data, dict):
                return data
            event = as_object(data)
            if event is None:
                if reader.done(data):
                    break
                continue
            for shown in reader.feed(event):
                if quiet:
                    continue
                if shown.kind == "text":
                    said.append(str(shown.values["text"]))
                runtime.stream.emit(shown.kind, **shown.values)
        native = reader.native()
        if native is None:
            raise TransientError("The provider's answer was cut off.")
    except ProviderError as error:
        _keep(runtime, endpoint, "".join(said), str(error))
        raise
    return native


def _keep(runtime: Runtime, endpoint: Endpoint, said: str, why: str) -> None:
    """Keep what came of an answer that does not count; no engine replays a message of this role."""
    if said and runtime.session is not None:
        fields = {"model": endpoint.model, "provider": endpoint.provider, "stop": "error", "error": why}
        runtime.session.append("error", fields, said)

"""The stage `send`: ask the provider."""

from __future__ import annotations

from harness_lib.loop.failures import HookError, ProviderError
from harness_lib.loop.piped import Json, Piped, as_object
from harness_lib.loop.providers import endpoints, variants
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.wires import exchange

_DEFAULT_TURNS = 100


def send(runtime: Runtime, piped: Piped) -> Piped:
    """Return the provider's native answer to the payload, and go on to `receive`."""
    payload = as_object(piped)
    if payload is None:
        raise HookError("no payload came in", {"error": "The stage `assemble` ended without a JSON object."})
    limit = _limit(runtime)
    if runtime.requests >= limit:
        message = (
            f"The limit of {limit} requests is reached (HARNESS_MAX_TURNS); resume the session to go on."
        )
        raise HookError(message, {"error": message})
    runtime.requests += 1
    runtime.stream.empty()
    try:
        return {**_ask(runtime, payload), "next_state": "receive"}
    except ProviderError as error:
        raise HookError(str(error), {"error": str(error)}) from error


def _ask(runtime: Runtime, payload: Json) -> Json:
    provider = runtime.table.provider(runtime.provider)
    if provider is not None:
        return provider.ask(runtime, payload)
    variant = variants.find(runtime, runtime.provider)
    foreign = runtime.table.find("providers", variant.protocol) if variant else None
    if foreign is not None and foreign.origin != "built-in":
        answer: Json = foreign.target.ask(runtime, payload)
        return answer
    return exchange.ask(runtime, endpoints.of(runtime), payload)


def _limit(runtime: Runtime) -> int:
    text = runtime.env["HARNESS_MAX_TURNS"]
    return int(text) if text.isascii() and text.isdigit() else _DEFAULT_TURNS

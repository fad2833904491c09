"""The stage `send`: ask the provider."""

from __future__ import annotations

from harness_lib.loop import compaction
from harness_lib.loop.failures import ContextError, HookError, ProviderError
from harness_lib.loop.piped import Json, Piped, as_object
from harness_lib.loop.providers import endpoints
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import accounts
from harness_lib.loop.sessions.session import SIZE_LIMIT
from harness_lib.loop.wires import exchange

_DEFAULT_TURNS = 100


def send(runtime: Runtime, piped: Piped) -> Piped:
    """Return the provider's native answer to the payload, and go on to `receive`."""
    payload = as_object(piped)
    if payload is None:
        raise HookError("no payload came in", {"error": "The stage `assemble` ended without a JSON object."})
    _check_limits(runtime)
    if compaction.is_due(runtime) and compaction.compact(runtime, payload):
        return {"next_state": "assemble"}
    runtime.requests += 1
    runtime.stream.empty()
    try:
        answer = _ask(runtime, payload)
    except ContextError as error:
        # Once: what is too long behind a summary, too, no second one makes short.
        if not runtime.kept.get("overflowed") and compaction.compact(runtime, payload):
            runtime.kept["overflowed"] = True
            runtime.requests -= 1
            return {"next_state": "assemble"}
        raise HookError(str(error), {"error": str(error)}) from error
    except ProviderError as error:
        raise HookError(str(error), {"error": str(error)}) from error
    runtime.kept["overflowed"] = False
    return {**answer, "next_state": "receive"}


def _ask(runtime: Runtime, payload: Json) -> Json:
    if endpoints.is_hosted(runtime):
        return exchange.ask(runtime, compaction.fitted(runtime, endpoints.of(runtime)), payload)
    answer: Json = endpoints.own_language(runtime).ask(runtime, payload)
    return answer


def _check_limits(runtime: Runtime) -> None:
    """Raise HookError where the session may not grow, or the turn not go on: requests, cost."""
    if runtime.session is not None and runtime.session.is_full:
        message = (
            f"The session {runtime.session.id} has more than {SIZE_LIMIT >> 20} MiB on disk, which is the "
            f"limit. Look at what is large in {runtime.session.directory}, or begin another session."
        )
        raise HookError(message, {"error": message})
    allowed = limit(runtime)
    if runtime.requests >= allowed:
        _end(
            runtime,
            "max_turns",
            f"The limit of {allowed} requests is reached (--max-turns, HARNESS_MAX_TURNS)",
        )
    most = runtime.env.get("HARNESS_MAX_COST", "")
    if not most or not runtime.requests:
        return
    account = accounts.total(runtime.turn_messages())
    if account.cost is None:
        # Going on could cost anything.
        _end(runtime, "max_cost", f"--max-cost cannot be kept: no price is known for {runtime.model}")
    elif account.cost >= float(most):
        _end(
            runtime,
            "max_cost",
            f"The limit of {most} dollars is reached (--max-cost): {account.shown()} spent",
        )


def _end(runtime: Runtime, stop: str, why: str) -> None:
    runtime.stop = stop
    message = f"{why}; resume the session to go on."
    raise HookError(message, {"error": message})


def limit(runtime: Runtime) -> int:
    """Return how many requests a turn may have."""
    text = runtime.env["HARNESS_MAX_TURNS"]
    return int(text) if text.isascii() and text.isdigit() else _DEFAULT_TURNS

"""The stages at both ends of a turn: `start`, and `error`."""

from __future__ import annotations

from harness_lib.loop.piped import Piped, as_object
from harness_lib.loop.runtime import Runtime


def start(runtime: Runtime, piped: Piped) -> Piped:  # noqa: ARG001
    """Go on to `assemble`."""
    return {**(as_object(piped) or {}), "next_state": "assemble"}


def display(runtime: Runtime, piped: Piped) -> Piped:
    """Turn the error into the output of the run."""
    error = (as_object(piped) or {}).get("error")
    text = str(error) if error else f"hook pipeline failed (check {runtime.env['HARNESS_LOG']})"
    runtime.stream.emit("error", message=text)
    return {"output": f"error: {text}"}

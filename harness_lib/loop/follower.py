"""The loop: call the hooks of a state, go where they say, until they say nothing.

No way from one state to another is built in; which states there are, the plugins decide.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness_lib.loop import discovery, pipeline
from harness_lib.loop.failures import HookError
from harness_lib.loop.piped import Json, as_object
from harness_lib.loop.runtime import Runtime

# Far more than one answer has calls. Requests have a limit of their own; this is for hooks without any.
_STATES_WITHOUT_A_REQUEST = 10_000


@dataclass(frozen=True)
class Ending:
    """What is to be printed, and whether the last state was `error`."""

    output: str
    failed: bool


def follow(runtime: Runtime, state: str = "start") -> Ending:
    """Follow states from `state` until none follows."""
    context: Json = {}
    last, idle, asked = state, 0, 0
    while state and idle < _STATES_WITHOUT_A_REQUEST:
        # Each request, and whatever follows a tool, which may have written plugins.
        if state == "assemble" or last == "tool_done":
            discovery.refresh(runtime)
        last = state
        try:
            result = as_object(pipeline.call(runtime, state, context)) or {}
        except HookError as failure:
            if state == "error":
                return Ending(str(failure), failed=True)
            state, context = "error", as_object(failure.result) or {}
            continue
        state = str(result.pop("next_state", None) or "")
        context = result
        idle = 0 if runtime.requests > asked else idle + 1
        asked = runtime.requests
    output = context.get("output")
    if output is None and last != "error":
        # As the protocol has it, but a hook that forgets to pass on what it reads shall be found.
        said = "whose hooks printed neither next_state nor output"
        runtime.log(f"hs: the turn ended in the stage {last}, {said}; see hs hooks {last}.")
    return Ending(output if isinstance(output, str) else "", failed=last == "error")

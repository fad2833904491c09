"""The stage `tool_gate`, ours: what `approve` says of a call."""

from __future__ import annotations

from harness_lib.loop import approval, outside, plugins
from harness_lib.loop.failures import HookError
from harness_lib.loop.piped import Piped, as_object
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.secret_files import REFUSED


def decide(runtime: Runtime, piped: Piped) -> Piped:
    """Let what only reads the project run, and everything where nobody wants to be asked.

    Credentials are read by no tool, whatever was asked for.
    """
    call = as_object(piped) or {}
    name = str(call.get("name") or "")
    # The calls of a subagent come to a gate of their own.
    reads = name == "agent" or plugins.only_reads(runtime, name)
    if reads and (secret := outside.secrets(runtime, call.get("input") or {})):
        return {**call, "decision": "deny", "reason": f"{secret[0]} {REFUSED}"}
    try:
        mode = approval.mode(runtime)
    except approval.UnknownModeError as error:
        raise HookError(str(error), {"error": str(error)}) from error
    if mode == "auto" or (reads and not (away := outside.directories(runtime, call.get("input") or {}))):
        return call
    if call.get("decision") == "deny":
        return call
    if reads:
        return {**call, "decision": "ask", "reason": f"It reads outside of the project: {away}"}
    if mode == "ask":
        return {**call, "decision": "ask"}
    return {**call, "decision": "deny", "reason": "approve=read-only: nothing may be changed here"}

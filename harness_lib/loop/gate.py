"""The stage `tool_gate`: whether a call may run, asked before every tool, whoever wrote it.

Gates stand one behind another. The strictest of what they say counts, so that none can take back
another's no, and one that breaks is a no: a gate that is not there any more must not be an open one.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness_lib.loop import pipeline
from harness_lib.loop.failures import HookError
from harness_lib.loop.piped import Json, as_object
from harness_lib.loop.runtime import Runtime

STAGE = "tool_gate"
_STRICTNESS = ("allow", "ask", "deny")


@dataclass(frozen=True)
class Verdict:
    """What the gates have said; `input` is the input of the call as they leave it to run."""

    decision: str
    reason: str
    input: Json


def ask(runtime: Runtime, call: Json) -> Verdict:
    """Return what the gates say to `call`, which has id, name and input."""
    stage = runtime.stage
    try:
        return _ask(runtime.at(STAGE), call)
    finally:
        runtime.at(stage)


def _ask(runtime: Runtime, call: Json) -> Verdict:
    passed: Json = {key: call.get(key) for key in ("id", "name", "input")}
    verdict = Verdict("allow", "", passed["input"] or {})
    for plugin in runtime.table.of("hooks.d", STAGE):
        try:
            reply = as_object(plugin.target(runtime, passed))
            problem = "" if reply is not None else "printed no JSON object"
        except HookError as failure:
            reply, problem = None, str(failure)
        if reply is None:
            runtime.log(f"[harness] {pipeline.failure_line(plugin, problem)}")
            return Verdict("deny", f"the gate {plugin.name} {problem}", verdict.input)
        verdict = _stricter(verdict, reply)
        passed = {**passed, "input": verdict.input, "decision": verdict.decision, "reason": verdict.reason}
    return verdict


def _stricter(before: Verdict, reply: Json) -> Verdict:
    tool_input = reply.get("input", before.input)
    decision = reply.get("decision") or before.decision
    if decision not in _STRICTNESS or not isinstance(tool_input, dict):
        return Verdict("deny", f"a gate said what no gate can say: {str(decision)[:100]}", before.input)
    if _STRICTNESS.index(decision) > _STRICTNESS.index(before.decision):
        return Verdict(decision, str(reply.get("reason") or ""), tool_input)
    return Verdict(before.decision, before.reason, tool_input)

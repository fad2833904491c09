"""The stage `tool_gate`: whether a call may run, asked before every tool, built-in or not.

Its hooks, the permission hooks, run one after another, and the strictest decision counts: none can take back
a denial of another. A hook that fails denies the call.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from harness_lib.errors import ConfigError
from harness_lib.loop import permissions, plugins, trust
from harness_lib.loop.permissions import Ruling
from harness_lib.loop.piped import HookError, Json, as_object
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.tools import skills
from harness_lib.loop.trust import REFUSED, is_secret

STAGE = "tool_gate"
_STRICTNESS = ("allow", "ask", "deny")
_LONGEST = 4096
# The name of the input in which every built-in tool takes a file, existing or not.
_PATH = "path"


class Verdict(NamedTuple):
    """The decision of the permission hooks; `input` is the input with which the call runs.

    `agreed`: the user has allowed it, by a rule or when asked.
    """

    decision: str
    reason: str
    input: Json
    agreed: bool = False


def ask(runtime: Runtime, call: Json) -> Verdict:
    """Return what the permission hooks say to `call`, which has id, name and input."""
    stage = runtime.stage
    passed = call
    if not isinstance(passed["input"], dict):
        return Verdict("deny", "the input of the call is not a JSON object", {})
    verdict = Verdict("allow", "", passed["input"])
    hooks = list(runtime.table.of("hooks.d", STAGE))
    ours = next((at for at, plugin in enumerate(hooks) if plugin.target is approve), len(hooks))
    if any(not plugin.is_ours for plugin in hooks[ours:]):
        # A later hook may change the input that runs, so the built-in hook is asked about that, too.
        hooks.append(hooks[ours])
    for plugin in hooks:
        try:
            runtime.stage = STAGE
            reply = as_object(plugin.target(runtime, passed))
            problem = "" if reply is not None else "printed no JSON object"
        except HookError as failure:
            reply, problem = None, str(failure)
        finally:
            runtime.stage = stage
        if reply is None:
            runtime.log(f"[harness] {plugins.failure_line(plugin, problem)}")
            return Verdict("deny", f"the permission hook {plugin.name} {problem}", verdict.input)
        verdict = _stricter(verdict, reply)
        passed = {**passed, "input": verdict.input, "decision": verdict.decision, "reason": verdict.reason}
    return verdict


def _stricter(before: Verdict, reply: Json) -> Verdict:
    decision, tool_input = reply.get("decision") or before.decision, reply.get("input")
    tool_input = before.input if tool_input is None else tool_input
    if decision not in _STRICTNESS:
        problem = f"a permission hook gave an unknown decision: {str(decision)[:100]}"
        return Verdict("deny", problem, before.input)
    if not isinstance(tool_input, dict):
        return Verdict("deny", "a permission hook gave an input that is not a JSON object", before.input)
    if _STRICTNESS.index(decision) > _STRICTNESS.index(before.decision):
        return Verdict(decision, str(reply.get("reason") or ""), tool_input)
    return Verdict(before.decision, before.reason, tool_input)


def approve(runtime: Runtime, call: Json) -> Json:
    """Decide by the rules and the approval mode; tools that only read the project may run.

    Credentials are read by no tool, whatever was asked for.
    """
    name = str(call.get("name") or "")
    # A subagent asks permission hooks about its own calls.
    reads = name == "agent" or plugins.only_reads(runtime, name)
    named = _paths(runtime, call.get("input") or {}) if reads else ()
    if secret := next((path for path in named if is_secret(path)), None):
        return {**call, "decision": "deny", "reason": f"{secret} {REFUSED}"}
    if call.get("decision") == "deny":
        return call
    try:
        ruling = _ruling(runtime, call, reads=reads)
    except ConfigError as error:
        raise HookError(str(error)) from error
    if not ruling.decision:
        return call
    return {**call, "decision": ruling.decision, "reason": ruling.reason or call.get("reason") or ""}


def _ruling(runtime: Runtime, call: Json, *, reads: bool) -> Ruling:
    """Return what rules and the mode say to `call`; no decision where it may run."""
    mode = trust.setting(runtime, "approve")
    ruling = permissions.decide(runtime, call)
    if mode == "read-only" and not reads and ruling.decision != "deny":
        return Ruling("deny", "approve=read-only: nothing may be changed here")
    if ruling.decision in {"ask", "deny"}:
        return ruling
    if ruling.decision == "allow" or mode == "auto":
        return Ruling()
    away = outside_project(runtime, call.get("input") or {}) if reads else ""
    if reads and not away:
        return Ruling()
    return Ruling("ask", f"It reads outside of the project: {away}" if away else "")


def outside_project(runtime: Runtime, tool_input: Json) -> str:
    """Return the directories outside of the project that `tool_input` leads to; "" for none."""
    real = [Path(os.path.realpath(path)) for path in _paths(runtime, tool_input)]
    if not real:
        return ""
    # Those of the session and of skills may be read unasked, too.
    inside = [trust.project_root(runtime, runtime.work_directory).resolve()]
    inside += [runtime.session.directory.resolve()] if runtime.session else []
    inside += [skill.path.parent.resolve() for skill in skills.every(runtime).values()]
    away = {str(path.parent) for path in real if not any(path.is_relative_to(each) for each in inside)}
    return ", ".join(sorted(away))


def _paths(runtime: Runtime, value: Any, key: str = "") -> Iterator[Path]:
    """Yield the paths in a value of JSON: what a tool calls `path`, and whatever else names a file."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _paths(runtime, inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(runtime, inner, key)
    elif isinstance(value, str) and 0 < len(value) < _LONGEST and value.isprintable():
        path = runtime.place(value)
        if key == _PATH or os.path.lexists(path):
            yield path

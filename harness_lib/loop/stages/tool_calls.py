"""The stages `tool_exec` and `tool_done`: run the first call of the queue, save what it came to."""

from __future__ import annotations

from harness_lib.loop import approval, gate, outside, plugins, repetition, side_by_side
from harness_lib.loop.asking import Question
from harness_lib.loop.failures import HookError
from harness_lib.loop.names import is_name
from harness_lib.loop.piped import Json, Piped, as_object
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import Runtime

_SHOWN_LINES = 30
_SPENT = ("tokens_in", "tokens_out", "cost")

# The input that was run, and what came of it.
Outcome = tuple[Json, Result]


def execute(runtime: Runtime, piped: Piped) -> Piped:
    """Run the first call and go on to `tool_done` with its result and the calls that are left."""
    queue = (as_object(piped) or {}).get("tool_calls")
    if not isinstance(queue, list) or not queue or not isinstance(queue[0], dict):
        raise HookError("no tool calls came in", {"error": "The stage `tool_exec` got no tool calls."})
    call: Json = queue[0]
    name = str(call.get("name") or "")
    tool_input, result = _outcome(runtime, queue)
    show(runtime, name, tool_input, result)
    return {
        "call_id": call.get("id", ""),
        "name": name,
        "input": tool_input,
        "result": result.text,
        "error": result.error,
        **result.spent,
        "tool_calls": queue[1:],
        "next_state": "tool_done",
    }


def _outcome(runtime: Runtime, queue: list[Json]) -> Outcome:
    """Return what the first call has come to; what may run beside it runs with it, and is kept for later."""
    # Hosts may give the same id to calls of different answers.
    answer = (runtime.first, runtime.requests)
    of, ready = runtime.kept.get("ready") or (answer, [])
    if of != answer or not ready or ready[0][0] != queue[0]:
        calls = side_by_side.first(runtime, queue)
        ready = list(zip(calls, _run_all(runtime, calls), strict=True))
    runtime.kept["ready"] = answer, ready[1:]
    outcome: Outcome = ready[0][1]
    return outcome


def _run_all(runtime: Runtime, calls: list[Json]) -> list[Outcome]:
    """Ask the gates about each of `calls`, then run those that may; return the outcomes in their order."""
    verdicts = [decide(runtime, call) for call in calls]
    for call, verdict in zip(calls, verdicts, strict=True):
        if verdict.decision == "allow":
            runtime.stream.emit(
                "tool_run",
                id=str(call.get("id") or ""),
                name=str(call.get("name") or ""),
                input=verdict.input,
            )

    def work(place: int) -> Outcome:
        verdict = verdicts[place]
        if verdict.decision != "allow":
            return verdict.input, _denied(verdict)
        return verdict.input, run(runtime, str(calls[place].get("name") or ""), verdict.input)

    most = side_by_side.limit(runtime, calls[0])
    return side_by_side.run(runtime, range(len(calls)), work, most)


def decide(runtime: Runtime, call: Json) -> gate.Verdict:
    """Return what the gates say to `call`, or a person to whom they leave it: allow or deny."""
    verdict = gate.ask(runtime, call)
    if verdict.decision != "ask":
        return verdict
    who = runtime.session.id if runtime.session and runtime.env.get("HARNESS_PARENT") else ""
    name, call_id = str(call.get("name") or ""), str(call.get("id") or "")
    place = outside.directories(runtime, verdict.input)
    answer = approval.put(runtime, Question(name, verdict.input, verdict.reason, who, call_id, place))
    return gate.Verdict("allow" if answer.allowed else "deny", answer.reason, verdict.input)


def _denied(verdict: gate.Verdict) -> Result:
    """Return what the model is told of a call that may not run."""
    return Result(f"error: denied: {verdict.reason or 'no reason was given'}", error=True)


def run(runtime: Runtime, name: str, tool_input: Json) -> Result:
    """Run the tool `name`."""
    tool = plugins.tool(runtime, name) if is_name(name) else None
    if tool is None:
        return Result(f"error: tool '{name}' not found", error=True)
    return tool.execute(runtime, tool_input)


def save(runtime: Runtime, piped: Piped) -> Piped:
    """Save a result; go on with the next call, or ask the model again."""
    done = as_object(piped)
    if done is None:
        raise HookError("no result came in", {"error": "The stage `tool_exec` ended without a JSON object."})
    record(runtime, done)
    left = done.get("tool_calls") or []
    if repetition.is_endless(runtime, done):
        runtime.kept["endless"] = str(done.get("name", ""))
    if not left and (name := runtime.kept.pop("endless", "")):
        # Behind the last call of the answer: a history with open ones would be told as interrupted.
        message = (
            f"The same call of {name} has had the same result {repetition.MOST} times; the turn ends. "
            "Say what to do differently to go on."
        )
        raise HookError(message, {"error": message})
    return {"next_state": "tool_exec", "tool_calls": left} if left else {"next_state": "assemble"}


def record(runtime: Runtime, done: Json) -> None:
    """Write the result of a call into the session."""
    error = "true" if done.get("error") in {True, "true"} else "false"
    call_id, name = str(done.get("call_id", "")), str(done.get("name", ""))
    seq = ""
    if runtime.session is not None:
        spent = {key: str(done[key]) for key in _SPENT if key in done}
        fields = {"call_id": call_id, "tool": name, "error": error, **spent}
        seq = f"{runtime.session.append('tool_result', fields, str(done.get('result', ''))).seq:04d}"
    runtime.stream.emit("tool_done", id=call_id, name=name, seq=seq, error=error)


def show(runtime: Runtime, name: str, tool_input: Json, result: Result) -> None:
    """Show people the call and the beginning of its result."""
    head = (
        [str(tool_input["command"])]
        if name == "bash" and "command" in tool_input
        else [f"{k}={v}" for k, v in tool_input.items()]
    )
    lines = result.text.splitlines()
    more = [f"... ({len(lines) - _SHOWN_LINES} more lines)"] if len(lines) > _SHOWN_LINES else []
    shown = [f"  {line}" for text in head for line in text.splitlines()]
    text = "\n".join(
        [f"--- {name} ---", *shown, *lines[:_SHOWN_LINES], *more, *(["(error)"] if result.error else [])]
    )
    runtime.log(text)
    runtime.stream.emit("tool_output", text=text)

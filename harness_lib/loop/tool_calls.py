"""The stages `tool_exec` and `tool_done`: run the first call of the queue, save its result.

Calls of one answer that only read, and subagents, run at the same time. Everything else is run in the order
of the answer, and so is everything where a hook of a source stands before the tools: it is promised to see
each call before it runs. A model that goes round in circles is ended: each request would cost.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from itertools import takewhile

from harness_lib.errors import HarnessError
from harness_lib.loop import confined, context, mcp_servers, plugins, processes
from harness_lib.loop.piped import HookError, Json, are_objects, dumps
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.tools import asking, builtin
from harness_lib.sha256 import digest

_SHOWN_LINES = 30
_SHOWN_COLUMNS = 1000
_PRINTED_LINES = 8
_SPENT = ("tokens_in", "tokens_out", "cost")
# The input with which a tool ran, and its result.
Outcome = tuple[Json, Result]
Decided = tuple[Json, asking.Verdict]
_READERS = 8
SUBAGENTS = 4
MOST = 5


def execute(runtime: Runtime, payload: Json) -> Json:
    """Run the first call and go on to `tool_done` with its result and the calls that are left."""
    given = payload.get("tool_calls")
    if not given or not are_objects(given):
        raise HookError("no tool calls came in", {"error": "The stage `tool_exec` got no tool calls."})
    # A hook may have made them.
    queue: list[Json] = [
        {
            "id": str(each.get("id") or ""),
            "name": str(each.get("name") or ""),
            "input": each.get("input") or {},
        }
        for each in given
    ]
    call = queue[0]
    try:
        tool_input, result = _outcome(runtime, queue)
    except processes.Interrupted as interrupted:
        _keep_printed(runtime, call, interrupted.printed)
        raise
    show(runtime, call["name"], tool_input, result)
    return {
        "call_id": call["id"],
        "name": call["name"],
        "input": tool_input,
        "result": result.text,
        "error": result.error,
        **result.spent,
        "tool_calls": given[1:],
        "next_state": "tool_done",
    }


def _keep_printed(runtime: Runtime, call: Json, printed: str) -> None:
    """Show and record what a tool had printed when it was interrupted, if there is something."""
    # An error about a session that cannot be written must not hide the interruption.
    with processes.uninterrupted(), suppress(HarnessError):
        if printed:
            ending = f"[{context.INTERRUPTED}]"
            last = printed.split("\n")[-_PRINTED_LINES:]
            show(runtime, call["name"], call["input"], Result("\n".join([*last, ending])))
            done = {"call_id": call["id"], "name": call["name"], "error": True}
            record(runtime, {**done, "result": f"{printed}\n{ending}"})


def _outcome(runtime: Runtime, queue: list[Json]) -> Outcome:
    """Return the outcome of the first call; run the calls that may run at the same time, and keep theirs."""
    # Hosts may give the same id to calls of different answers.
    answer = (runtime.first, runtime.requests)
    of, ready = runtime.kept.get("ready") or (answer, [])
    if of != answer or not ready or ready[0][0] != queue[0]:
        kind, calls = _kind(runtime, queue[0]), queue[:1]
        if kind and runtime.table.is_ours("tool_exec"):
            calls = list(takewhile(lambda call: _kind(runtime, call) == kind, queue))
        decided = [(call, asking.decide(runtime, call)) for call in calls]
        most = SUBAGENTS if kind == "agent" else _READERS
        outcomes = _run_at_once(runtime, decided, most) if calls[1:] else [_run(runtime, decided[0])]
        ready = list(zip(calls, outcomes, strict=True))
    runtime.kept["ready"] = answer, ready[1:]
    outcome: Outcome = ready[0][1]
    return outcome


def _run(runtime: Runtime, decided: Decided) -> Outcome:
    """Run the call if it may."""
    call, verdict = decided
    if verdict.decision != "allow":
        why = verdict.reason or "no reason was given"
        return verdict.input, Result(f"error: denied: {why}", error=True)
    tool = plugins.tool(runtime, call["name"])
    if tool is None:
        return verdict.input, Result(f"error: tool '{call['name']}' not found", error=True)
    builtin.CALL.set(call["id"])
    with confined.within(agreed=verdict.agreed):
        return verdict.input, tool.execute(runtime, verdict.input)


def _run_at_once(runtime: Runtime, calls: list[Decided], most: int) -> list[Outcome]:
    """Return the outcome of each of `calls`, in their order; at most `most` run at once.

    Ctrl-C ends the programs of all of them before it goes on as Interrupted; said twice, at once.
    """
    # Imported here: most answers have one call.
    from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait  # noqa: PLC0415

    stopped = threading.Event()

    def run(decided: Decided) -> Outcome:
        with processes.ended_by(stopped):
            return _run(runtime, decided)

    with ThreadPoolExecutor(min(most, len(calls))) as pool:
        try:
            futures = [pool.submit(run, each) for each in calls]
            wait(futures, return_when=FIRST_EXCEPTION)
            return [future.result() for future in futures]
        except BaseException:
            stopped.set()
            mcp_servers.cancel(runtime)
            try:
                pool.shutdown(cancel_futures=True)
            except processes.Interrupted:
                processes.kill_all()
                raise
            raise


def save(runtime: Runtime, done: Json) -> Json:
    """Save a result; go on with the next call, or ask the model again."""
    record(runtime, done)
    left = done.get("tool_calls") or []
    if is_endless(runtime, done):
        runtime.kept["endless"] = str(done.get("name", ""))
    if not left and (name := runtime.kept.pop("endless", "")):
        # After the last call of the answer: a call without a result would count as interrupted.
        message = (
            f"The same call of {name} has had the same result {MOST} times; the turn ends. "
            "Say what to do differently to go on."
        )
        raise HookError(message)
    return {"next_state": "tool_exec", "tool_calls": left} if left else {"next_state": "assemble"}


def record(runtime: Runtime, done: Json) -> None:
    """Write the result of a call into the session."""
    error = "true" if str(done.get("error")).lower() == "true" else "false"
    call_id, name = str(done.get("call_id", "")), str(done.get("name", ""))
    spent = {key: str(done[key]) for key in _SPENT if key in done}
    fields = {"call_id": call_id, "tool": name, "error": error, **spent}
    seq = runtime.session.append("tool_result", fields, str(done.get("result", ""))).seq
    runtime.stream.emit("tool_done", id=call_id, name=name, seq=f"{seq:04d}", error=error)


def show(runtime: Runtime, name: str, tool_input: Json, result: Result) -> None:
    """Show people the call and the beginning of its result."""
    head = (
        [str(tool_input["command"])]
        if name == "bash" and "command" in tool_input
        else [f"{k}={v}" for k, v in tool_input.items()]
    )
    shown = [f"  {line}" for line in _beginning([line for text in head for line in text.splitlines()])]
    failed = ["(error)"] if result.error else []
    text = "\n".join([f"--- {name} ---", *shown, *_beginning(result.text.splitlines()), *failed])
    runtime.log(text)
    runtime.stream.emit("tool_output", text=text)


def _beginning(lines: list[str]) -> list[str]:
    """Return the first of `lines`, and of each the beginning; people read no more while it runs."""
    shown = [line[:_SHOWN_COLUMNS] + "..." * (len(line) > _SHOWN_COLUMNS) for line in lines[:_SHOWN_LINES]]
    left = len(lines) - len(shown)
    return [*shown, *([f"... ({left} more lines)"] if left else [])]


def _kind(runtime: Runtime, call: Json) -> str:
    plugin = runtime.table.find("tools", call["name"])
    if call["name"] == "agent" and plugin and plugin.is_ours:
        # Under a cost limit each has to know what the one before has spent.
        return "" if runtime.env.get("HARNESS_MAX_COST") else "agent"
    return "reads" if plugins.only_reads(runtime, call["name"]) else ""


def is_endless(runtime: Runtime, done: Json) -> bool:
    """Record the outcome of a call; return whether it was so in MOST answers, with nothing new in between."""
    turn, answers = runtime.kept.get("outcomes") or (0, {})
    # The answers in which each outcome of the turn was so since the last new one; one counts once.
    since: dict[str, set[int]] = answers if turn == runtime.first else {}
    result = builtin.PLACE.sub("", str(done.get("result", "")))
    text = dumps([done.get("name"), done.get("input"), result, bool(done.get("error"))])
    outcome = digest(text.encode())
    if outcome not in since:
        for each in since.values():
            each.clear()
    since.setdefault(outcome, set()).add(runtime.requests)
    runtime.kept["outcomes"] = runtime.first, since
    return len(since[outcome]) >= MOST

"""One turn: what the user says goes into the session, and states are followed until there is an answer.

No way from one state to another is built in; which states there are, the plugins decide.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from harness_lib.loop import context, discovery, piped, plugins
from harness_lib.loop.context import Account
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.tools import skills

# Far more than one answer has calls. Requests have a limit of their own; this is for hooks without any.
_STATES_WITHOUT_A_REQUEST = 10_000
# How the names of the limits begin that end a turn.
_LIMIT = "max_"


class Turn(NamedTuple):
    """How a turn ended; `stop` is the reason in a word, `error` is empty if it was answered."""

    output: str = ""
    stop: str = "error"
    error: str = ""
    session: str = ""
    account: Account = Account()


def take(runtime: Runtime, message: str, *, at_once: bool = False) -> Turn:
    """Say `message` in the run's session and return how the turn ended.

    `at_once`: nothing was waited for since the plugins were looked for, so that is not done again.
    """
    if not at_once:
        runtime.is_fresh = False
        runtime.found = {}
    messages = runtime.session.messages()
    runtime.first = messages[-1].seq + 1 if messages else 1
    runtime.requests, runtime.stop, runtime.stream.said = 0, "", []
    if message.strip():
        runtime.session.append("user", {}, skills.called(runtime, message))
    try:
        ending = follow(runtime)
        said, output = ("".join(text.split()) for text in ("".join(runtime.stream.said), ending.output))
        if not (ending.failed or said.endswith(output)):
            # Providers that are programs do not stream to us, and hooks may change an answer.
            runtime.stream.emit("text", text=ending.output)
    finally:
        if runtime.account_file:
            # For the hs whose subagent this is, however it ends.
            with suppress(OSError):
                fields = piped.dumps(context.account_fields(runtime.spent()))
                Path(runtime.account_file).write_text(fields, encoding="utf-8")
        # The prompt and editors have to know that no more events will come, whatever the reason.
        runtime.stream.emit("done")
    account = runtime.spent()
    if ending.failed:
        error = ending.output.removeprefix("error: ") or "a hook failed"
        limited = runtime.stop if runtime.stop.startswith(_LIMIT) else "error"
        return Turn(stop=limited, error=error, session=runtime.session.id, account=account)
    return Turn(ending.output, runtime.stop or "end", session=runtime.session.id, account=account)


class Ending(NamedTuple):
    """The output to print, and whether the last state was `error`."""

    output: str
    failed: bool


def follow(runtime: Runtime, state: str = "start") -> Ending:
    """Follow states from `state` until none follows."""
    context: piped.Json = {}
    last, idle, asked = "", 0, 0
    # The error that ends a turn is on standard error, too, unless a hook changes what it says.
    is_told = runtime.env["HARNESS_LOG"] == "/dev/stderr" and runtime.table.is_ours("error")
    while state and idle < _STATES_WITHOUT_A_REQUEST:
        # Before the turn and each request, and after each tool, which may have written plugins.
        if not runtime.is_fresh and (last in {"", "tool_done"} or state == "assemble"):
            discovery.refresh(runtime)
        last = state
        runtime.is_fresh &= state in {"start", "assemble"} and runtime.table.is_ours(state)
        try:
            context = plugins.call(runtime, state, context, is_told=is_told)
        except piped.HookError as failure:
            if state == "error":
                return Ending(str(failure), failed=True)
            state, context = "error", failure.reason
            continue
        # No hook of `error` takes a limit back.
        limited = state == "error" and runtime.stop.startswith(_LIMIT)
        state = str((not limited and context.pop("next_state", None)) or "")
        idle = 0 if runtime.requests > asked else idle + 1
        asked = runtime.requests
    if state:
        said = f"{idle} states have followed each other without a request, the last is {last}"
        return Ending(f"{said}; see hs hooks {last}.", failed=True)
    output = context.get("output")
    if not isinstance(output, str) and last != "error":
        # As the protocol has it, but a hook that forgets to pass on what it reads shall be found.
        said = "whose hooks printed neither next_state nor output"
        runtime.log(f"hs: the turn ended in the stage {last}, {said}; see hs hooks {last}.")
    return Ending(output if isinstance(output, str) else "", failed=last == "error")

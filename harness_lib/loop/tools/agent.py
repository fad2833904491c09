"""The tool `agent`: run a subagent, another hs with its own task and session."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.loop import context, disk, permissions, processes, trust
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import ACCOUNT_FILE
from harness_lib.loop.tools import asking, builtin
from harness_lib.system.install import launcher

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime

# What the last line of an hs that has failed begins with.
_COMPLAINTS = ("error: ", "hs: ")


def _execute(runtime: Runtime, tool_input: Json) -> Result:
    prompt = builtin.text_of(tool_input, "prompt")
    if not prompt.strip():
        raise builtin.ToolError("prompt is required")
    env = _environment(runtime, tool_input)
    # "Always" also covers the calls of a subagent.
    asker = (lambda question: asking.put(runtime, question)) if runtime.asker else None
    with asking.served(asker) as address, tempfile.TemporaryDirectory(prefix="hs-") as directory:
        account_file, log = Path(directory, "account.json"), Path(directory, "log")
        env |= {ACCOUNT_FILE: str(account_file), **({asking.VARIABLE: address} if address else {})}
        try:
            done = processes.run(
                [*launcher.hs(), "agent"],
                env=env,
                cwd=runtime.work_directory,
                # Not an argument: every user can read those, and they are limited to 128 KiB.
                stdin=prompt.encode("utf-8", "replace"),
                # One of its own: several may run at once.
                log=str(log),
                notes=runtime.session.directory if runtime.session else None,
            )
        finally:
            why = _kept(runtime, log)
        # Unknown if it was killed before it could tell.
        unknown = context.account_fields(context.Account(cost=None)) if done.code < 0 else {}
        spent: dict[str, str] = disk.read_object(account_file) or unknown
    text = builtin.read_clipped(runtime, done.output).rstrip("\n")
    if done.code != 0:
        failure = f"{text}\n[the subagent failed with exit code {done.code}{why}]".strip()
        return Result(failure, error=True, spent=spent)
    return Result(text or "subagent completed with no output", spent=spent)


def _kept(runtime: Runtime, log: Path) -> str:
    """Append the `log` of a subagent to that of the session; return the error in its last line, or ""."""
    with suppress(OSError), log.open("rb") as written:
        if runtime.session:
            with disk.appending(runtime.session.directory / "subagents.log") as kept:
                shutil.copyfileobj(written, kept)
    last = disk.end_of(log, 4096).rpartition("\n")[2]
    return f": {last.partition(': ')[2]}" if last.startswith(_COMPLAINTS) else ""


def _left(runtime: Runtime) -> dict[str, str]:
    """Return what is left of the cost limit for a subagent."""
    most = runtime.env.get("HARNESS_MAX_COST", "")
    spent = runtime.spent().cost
    if not most or spent is None:
        return {}
    left = float(most) - spent
    if left <= 0:
        raise builtin.ToolError(f"the limit of {most} dollars is reached (--max-cost)")
    return {"HARNESS_MAX_COST": f"{left:.6f}"}


def _environment(runtime: Runtime, tool_input: Json) -> dict[str, str]:
    level = disk.number(runtime.env.get("HARNESS_LEVEL", "")) + 1
    if level > disk.number(runtime.env.get("HARNESS_DEPTH", ""), 3):
        raise builtin.ToolError("subagents may go no deeper (HARNESS_DEPTH); do the work yourself")
    provider, model = str(tool_input.get("provider") or ""), str(tool_input.get("model") or "")
    return {
        **runtime.env,
        **_left(runtime),
        **permissions.for_subagents(runtime),
        # Another provider has other models.
        "HARNESS_PROVIDER": provider or runtime.provider,
        "HARNESS_MODEL": model or ("" if provider else runtime.model),
        "HARNESS_APPROVE": trust.setting(runtime, "approve"),
        "HARNESS_SANDBOX": trust.setting(runtime, "sandbox"),
        "HARNESS_LEVEL": str(level),
        "HARNESS_PARENT": runtime.session.id,
        # Its answer is what it prints, and not all that it says on the way.
        "HARNESS_STREAM": "",
    }


TOOL = builtin.Builtin(
    name="agent",
    description=(
        "Give a task to another agent, which starts without this conversation and has the same tools. "
        "Returns its answer. The prompt must hold everything that it needs to know."
    ),
    inputs={
        "prompt": "The task",
        "model?": "Another model",
        "provider?": "Another provider",
    },
    function=_execute,
)

"""The tool `agent`: another hs with a task of its own, in a session of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from harness_lib.loop import approval, asking, processes
from harness_lib.loop.plugins import Result
from harness_lib.loop.tools import clip
from harness_lib.loop.tools.builtin import Builtin, ToolError, text_of
from harness_lib.system import program

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime

_DEFAULT_DEPTH = 3


def _execute(runtime: Runtime, given: Json) -> Result:
    prompt = text_of(given, "prompt")
    if not prompt.strip():
        raise ToolError("prompt is required")
    with asking.served(runtime.asker) as address:
        done = processes.run(
            [*program.hs(), "agent"],
            env={**_environment(runtime, given), **({asking.VARIABLE: address} if address else {})},
            cwd=runtime.work_directory,
            # Not an argument: those can be read by everybody on the machine, and end at 128 KiB.
            stdin=prompt.encode("utf-8", "replace"),
            log=str(runtime.session.directory / "subagents.log") if runtime.session else os.devnull,
        )
    text = clip.read(runtime, done.output).rstrip("\n")
    if done.code != 0:
        return Result(f"{text}\n[the subagent failed with exit code {done.code}]".strip(), error=True)
    return Result(text or "subagent completed with no output")


def _environment(runtime: Runtime, given: Json) -> dict[str, str]:
    level = _number(runtime, "HARNESS_LEVEL", 0) + 1
    if level > _number(runtime, "HARNESS_DEPTH", _DEFAULT_DEPTH):
        raise ToolError("subagents may go no deeper (HARNESS_DEPTH); do the work yourself")
    provider, model = str(given.get("provider") or ""), str(given.get("model") or "")
    env = dict(runtime.env)
    if runtime.home_assumed:
        del env["HARNESS_HOME"]
    return {
        **env,
        # Another provider has other models.
        "HARNESS_PROVIDER": provider or runtime.provider,
        "HARNESS_MODEL": model or ("" if provider else runtime.model),
        "HARNESS_APPROVE": approval.mode(runtime),
        "HARNESS_LEVEL": str(level),
        "HARNESS_PARENT": runtime.session.id if runtime.session else "",
    }


def _number(runtime: Runtime, name: str, default: int) -> int:
    text = runtime.env.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else default


TOOL = Builtin(
    name="agent",
    description=(
        "Give a task to another agent, which starts without this conversation and has the same tools. "
        "Returns its answer. Say in the prompt all that it has to know."
    ),
    properties={
        "prompt": {"type": "string", "description": "The task"},
        "model": {"type": "string", "description": "Another model"},
        "provider": {"type": "string", "description": "Another provider"},
    },
    required=["prompt"],
    function=_execute,
)
